"""People: they start turns, decide, settle and cancel over HTTP, and keep what was promised.

Whoever gets no answer asks again under the same key, as a good client does.
"""

from __future__ import annotations

import json
import os
import random
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.chaos.roles import HOST
from tests.crash.cases import MODES
from tests.crash.roles import token_of
from tests.crash.site import outside

MOST_OPEN = 16
"""No more turns are started while so many requests wait."""
THREADS = ("", "", "", "", "green", "blue")
TIMEOUT = 4
PROMISES = "promises.jsonl"
CALM = "calm"
"""A file of this name tells people to start nothing more and to finish the rest."""


class Unanswered(Exception):
    """Nobody answered, however often it was asked."""


class Person:
    """Somebody in front of the site, for as long as the process lives."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self._folder = folder
        self._ports = ports

    @property
    def calm(self) -> bool:
        return (self._folder / CALM).exists()

    def live(self) -> None:
        """Do what people do until the process is killed."""
        while True:
            with suppress(Unanswered):
                self._look()
            time.sleep(random.uniform(0.02, 0.2))

    def _look(self) -> None:
        pending = self._list("pending")
        if not self.calm and len(pending) < MOST_OPEN:
            self._start()
        for row in random.sample(pending, min(len(pending), 3)):
            self._decide(row)
        for row in self._list("in_doubt"):
            # What is left in doubt at the end must be visible, so some of it is left; a
            # thread that it holds up would be another matter.
            holds_up = row["thread_id"] in THREADS
            if holds_up or (not self.calm and outside.chance(0.05)):
                self._settle(row)

    def _start(self) -> None:
        key = str(uuid4())
        calls = [
            {
                "mode": random.choice((*MODES, "free")),
                "case": f"{key}-{number}",
                "amount": 10,
            }
            for number in range(random.choice((1, 1, 2, 3)))
        ]
        asked = {
            "calls": calls,
            "question": outside.chance(0.2),
            "flaky": random.choice((0, 0, 0.3)),
        }
        body: dict[str, Any] = {"agent": "busy", "input": asked}
        thread = random.choice(THREADS)
        if thread:
            body["thread_id"] = thread
        status, answer = self._ask("asks", "POST", "turns/", body, key=key)
        if status == 202:
            self._keep("start", answer["id"])
            if outside.chance(0.03):
                self._ask("reviews", "POST", f"turns/{answer['id']}/cancel/", {})

    def _decide(self, row: dict[str, Any]) -> None:
        if not self.calm and outside.chance(0.1):
            return  # another time, perhaps too late
        body: dict[str, Any]
        if row["kind"] == "question":
            decision, body = "respond", {"value": "this one"}
        else:
            decision = random.choices(("approve", "edit", "reject"), (6, 2, 1))[0]
            body = {
                "approve": {},
                "edit": {"args": {**(row["args"] or {}), "amount": 20}},
                "reject": {"reason": "Not now."},
            }[decision]
        path = f"interrupts/{row['id']}/{decision}/"
        status, _ = self._ask("reviews", "POST", path, body, key=str(uuid4()))
        if status == 200:
            self._keep(decision, row["id"])

    def _settle(self, row: dict[str, Any]) -> None:
        """Look at what happened, and say so."""
        landed = outside.calls(row["args"]["case"])
        body: dict[str, Any] = {"answer": random.choice(("run_again", "give_up"))}
        if landed:
            body = {
                "answer": "happened",
                "result": {"amount": landed[-1]["amount"]},
            }
        path = f"interrupts/{row['id']}/settle/"
        status, _ = self._ask("reviews", "POST", path, body)
        if status == 200:
            self._keep(f"settled_{body['answer']}", row["id"])

    def _list(self, status: str) -> list[dict[str, Any]]:
        code, answer = self._ask("reviews", "GET", f"interrupts/?status={status}")
        return list(answer["results"]) if code == 200 else []

    def _ask(
        self, person: str, method: str, path: str, body: Any = None, *, key: str = ""
    ) -> tuple[int, Any]:
        """Send a request until somebody answers; only one with a key is sent again.

        Raises:
            Unanswered: Nobody did.
        """
        headers = {"Authorization": f"Token {token_of(person)}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        for _attempt in range(20 if key else 1):
            connection = HTTPConnection(
                HOST, random.choice(self._ports), timeout=TIMEOUT
            )
            try:
                content = None if body is None else json.dumps(body)
                connection.request(method, f"/api/{path}", content, headers)
                response = connection.getresponse()
                text = response.read()
                if response.status < 500:
                    return response.status, json.loads(text)
            except (OSError, HTTPException, ValueError):
                pass
            finally:
                connection.close()
            time.sleep(0.3)
        raise Unanswered

    def _keep(self, what: str, id_: str) -> None:
        """Write down what the site has promised, before anything else is done."""
        line = json.dumps({"what": what, "id": id_}) + "\n"
        handle = os.open(
            self._folder / PROMISES, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600
        )
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)
