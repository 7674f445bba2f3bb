"""An agent that asks for one gated call, and a tool of every mode to ask for."""

from __future__ import annotations

from typing import Any

from django.db import connection

from hitl_approvals import Turn, agent, current_call, tool
from tests.crash.site import outside

TABLE = "crash_effect"
RETENTION = 3600


def act(mode: str, case: str, amount: int) -> dict[str, Any]:
    """Call the other side, which takes no call after its deadline."""
    call = current_call()
    key, deadline = (
        ("", None) if call is None else (call.idempotency_key, call.deadline)
    )
    outside.dawdle()
    outside.act(mode=mode, case=case, amount=amount, key=key, deadline=deadline)
    outside.dawdle()
    return {"amount": amount}


def look_up(key: str) -> Any:
    """Answer from the file, as the other side would from its own records."""
    found = outside.find(key)
    return ("absent", None) if found is None else ("done", {"amount": found["amount"]})


@tool(effect="unsafe")
def unsafe(case: str, amount: int) -> dict[str, Any]:
    """Call somebody who keeps no record of keys."""
    return act("unsafe", case, amount)


@tool(effect="idempotent", retention=RETENTION)
def idempotent(case: str, amount: int) -> dict[str, Any]:
    """Call somebody who does nothing the second time that a key comes."""
    return act("idempotent", case, amount)


@tool(effect="lookup", lookup=look_up)
def lookup(case: str, amount: int) -> dict[str, Any]:
    """Call somebody who can be asked whether a key came."""
    return act("lookup", case, amount)


@tool(effect="none")
def none(case: str, amount: int) -> dict[str, Any]:
    """Read something; a person has to allow it all the same."""
    return act("none", case, amount)


@tool(effect="transactional")
def transactional(case: str, amount: int) -> dict[str, Any]:
    """Write a row where the approvals are."""
    outside.dawdle()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} (happened_to, amount) VALUES (%s, %s)", [case, amount]
        )
    return {"amount": amount}


TOOLS = (transactional, idempotent, lookup, unsafe, none)


@agent("crashing", tools=TOOLS)
def crashing(turn: Turn, asked: dict[str, Any]) -> dict[str, Any]:
    """Ask for one call, then say what came of it."""

    def ask() -> dict[str, Any]:
        args = {"case": asked["case"], "amount": asked["amount"]}
        return {"tool_calls": [{"id": "c1", "name": asked["mode"], "args": args}]}

    def close(status: str) -> str:
        if asked["flaky"] and outside.first_time(asked["case"]):
            raise ConnectionError("The model is away.")
        return f"closed with {status}"

    reply = turn.step("ask", ask)
    (message,) = turn.call_tools(reply["tool_calls"])
    said = turn.step("close", close, message["status"])
    return {
        "status": message["status"],
        "content": message["content"],
        "said": said,
    }
