"""A DBOS application that the tests start and kill: `dbos_app.py <url> <log>`.

Imports no Django.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from dbos import DBOS

from hitl_approvals.engines.dbos import Approvals, AsyncApprovals
from tests.engines import contract_model

QUEUE = "hitl-tests"


def note(entry: Any) -> None:
    with Path(sys.argv[2]).open("a") as log:
        log.write(json.dumps(entry) + "\n")


@DBOS.step()
def ask_model(entry: Any) -> Any:
    """Stand for the model: what it replies is recorded by the engine."""
    note(entry)
    return entry


@DBOS.workflow(name="scripted")
def scripted(script: list[Any]) -> list[Any]:
    """Play a script: lists of calls, questions, and failures."""
    approvals = Approvals()
    told = []
    for entry in script:
        reply = ask_model(entry)
        if isinstance(reply, list):
            results = approvals.call_tools(reply, reason="the script says so")
            told.append([results[one["id"]] for one in reply])
        elif "ask" in reply:
            told.append(approvals.ask(reply["ask"], response_schema=reply["schema"]))
        else:
            raise RuntimeError(reply["fail"])
    return told


@DBOS.workflow(name="scripted_async")
async def scripted_async(script: list[Any]) -> list[Any]:
    """Play a script in an async workflow."""
    approvals = AsyncApprovals()
    told: list[Any] = []
    for reply in script:
        if isinstance(reply, list):
            results = await approvals.call_tools(reply)
            told.append([results[one["id"]] for one in reply])
        else:
            asked = await approvals.ask(reply["ask"])
            told.append(asked)
    return told


@DBOS.workflow(name="not_json")
def not_json(script: list[Any]) -> Any:
    return {1, 2}


@DBOS.step()
def play_script(given: Any, number: int, told: list[Any]) -> Any:
    """Play the contract's model."""
    return contract_model.play(given, number, told)


@DBOS.workflow(name="contract")
def contract(prompt: str) -> Any:
    """Loop over model and tools, as the contract wants it."""
    approvals = Approvals()
    given = DBOS.retrieve_workflow(DBOS.workflow_id or "").get_status().attributes or {}
    if "question" in given:
        asked = given["question"]
        answer = approvals.ask(asked["payload"], response_schema=asked["schema"])
        return answer["value"]
    told: list[Any] = []
    number = 0
    while True:
        reply = play_script(given, number, told)
        number += 1
        if not reply["tool_calls"]:
            return reply["text"]
        results = approvals.call_tools(reply["tool_calls"], reason=reply["text"])
        told += [
            [one["id"], results[one["id"]]["message"]["content"]]
            for one in reply["tool_calls"]
        ]


def main() -> None:
    DBOS(
        config={
            "name": "hitl-tests",
            "system_database_url": sys.argv[1],
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": "one",
            # A listener that lost its connection looks again after a minute only.
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": 0.05,
        }
    )
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=0.05)
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
