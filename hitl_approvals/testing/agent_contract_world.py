"""What the agents of the contract do, ask and are told: kept where a kill cannot reach it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload
from uuid import uuid4

from django.contrib.auth.models import Group

from hitl_approvals import current_call, tool
from hitl_approvals.registry import Tool, registry

VARIABLE = "HITL_CONTRACT_FILE"
"""Environment: the file to which every effect and every question to the model is added."""
DIE, LOSE, DECLINE = "die", "lose", "decline"
"""What a test may plan for the next call of a tool; see `plan`."""
ROWS = "hitl contract "
"""Begins the names of the rows that the transactional tool makes."""
Reply = Mapping[str, Any]


class Declined(Exception):
    """The other side said no: nothing happened."""


# The file


def note(what: str, **told: Any) -> None:
    """Add a line; whoever is killed afterwards has written it."""
    line = json.dumps({"what": what, "pid": os.getpid(), **told}) + "\n"
    handle = os.open(_file(), os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def noted(what: str) -> list[dict[str, Any]]:
    """Return what was noted of one kind by any process, in order."""
    if not _file().exists():
        return []
    lines = map(json.loads, _file().read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["what"] == what]


def plan(name: str, act: str) -> None:
    """Say what the next call of a tool meets, in whichever process it runs.

    `DIE`: it has its effect and the process is killed. `LOSE`: it has its effect and
    raises, so that nobody here knows. `DECLINE`: it raises with nothing done.
    """
    _planned(name).write_text(act, encoding="utf-8")


def _file() -> Path:
    return Path(os.environ[VARIABLE])


def _planned(name: str) -> Path:
    return Path(f"{_file()}.{name}")


def _take_plan(name: str) -> str:
    """Return what is planned for a tool's next call, once."""
    taken = Path(f"{_planned(name)}.taken")
    try:
        _planned(name).rename(taken)
    except FileNotFoundError:
        return ""
    return taken.read_text(encoding="utf-8")


# The tools: one for each mode of effect, all of them gated, and a free one


def _act(name: str, item: str, amount: int, *, in_row: bool = False) -> dict[str, Any]:
    act = _take_plan(name)
    if act == DECLINE:
        raise Declined("the other side said no")
    if in_row:
        Group(name=f"{ROWS}{item} {amount} {uuid4().hex}").save()
    underway = current_call()
    key = underway.idempotency_key if underway is not None else ""
    note("effect", tool=name, item=item, amount=amount, key=key)
    if act == DIE:
        os.kill(os.getpid(), signal.SIGKILL)
    if act == LOSE:
        raise TimeoutError("no answer")
    return {"done": item}


UNSAFE, IDEMPOTENT, LOOKUP, TRANSACTIONAL, READING, FREE = (
    "contract_unsafe",
    "contract_idempotent",
    "contract_lookup",
    "contract_transactional",
    "contract_reading",
    "contract_free",
)
OPTIONS: dict[str, Any] = {
    "clean_errors": [Declined],
    "fixed": ["item"],
    "expires_in": 3600,
    "execute_within": 600,
}
"""What the gated tools have in common."""


@tool(name=UNSAFE, effect="unsafe", **OPTIONS)
def unsafe(item: str, amount: int = 1) -> dict[str, Any]:
    """Do something that nobody can look up afterwards."""
    return _act(UNSAFE, item, amount)


@tool(name=IDEMPOTENT, effect="idempotent", retention=86_400, **OPTIONS)
def idempotent(item: str, amount: int = 1) -> dict[str, Any]:
    """Do something that the other side does once for a key."""
    return _act(IDEMPOTENT, item, amount)


def look_up(key: str) -> Any:
    """Ask the other side what became of a call."""
    note("lookup", key=key)
    for one in noted("effect"):
        if one["tool"] == LOOKUP and one["key"] == key:
            return "done", {"done": one["item"]}
    return "absent"


@tool(name=LOOKUP, effect="lookup", lookup=look_up, **OPTIONS)
def lookup(item: str, amount: int = 1) -> dict[str, Any]:
    """Do something that the other side can be asked about."""
    return _act(LOOKUP, item, amount)


@tool(name=TRANSACTIONAL, effect="transactional", **OPTIONS)
def transactional(item: str, amount: int = 1) -> dict[str, Any]:
    """Make a row in the site's own database."""
    return _act(TRANSACTIONAL, item, amount, in_row=True)


@tool(name=READING, effect="none", **OPTIONS)
def reading(item: str, amount: int = 1) -> dict[str, Any]:
    """Read what a person has to allow to be read."""
    return _act(READING, item, amount)


@tool(name=FREE, effect="unsafe", requires_approval=False, clean_errors=[Declined])
def free(item: str, amount: int = 1) -> dict[str, Any]:
    """Do something that nobody has to approve."""
    return _act(FREE, item, amount)


NAMES = (UNSAFE, IDEMPOTENT, LOOKUP, TRANSACTIONAL, READING, FREE)


def tools(names: Sequence[str] = NAMES) -> list[Tool[Any, Any]]:
    """Return tools by their names, as they are registered now."""
    return [registry.tools[name] for name in names]


def upgrade() -> None:
    """Declare the unsafe tool anew, as a later release would: it takes one more argument.

    For a process that ends with the test.
    """

    def later(item: str, amount: int = 1, currency: str = "EUR") -> dict[str, Any]:
        """Do something that nobody can look up afterwards, in a currency."""
        return _act(UNSAFE, item, amount)

    del registry.tools[UNSAFE]
    tool(name=UNSAFE, effect="unsafe", **OPTIONS)(later)


def effects(name: str) -> list[tuple[str, int]]:
    """Return what a tool did, in order: the item and the amount of each time."""
    if name != TRANSACTIONAL:
        found = [one for one in noted("effect") if one["tool"] == name]
        return [(one["item"], one["amount"]) for one in found]
    rows = Group.objects.filter(name__startswith=ROWS).order_by("pk")
    made = [row.name.removeprefix(ROWS).split() for row in rows]
    return [(item, int(amount)) for item, amount, _unique in made]


# The model


class Script(Sequence[Reply]):
    """Replies of a model, played by how many it has given: whatever process asks.

    Each is `{"text": ..., "tool_calls": [{"id", "name", "args"}, ...]}`.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = [dict(reply) for reply in replies]

    def play(self, number: int, told: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the reply to a conversation, and note that the model was asked.

        Args:
            number: How many replies of the model are in it.
            told: The id of the call and the text of every tool result in it, in order.
        """
        note("asked", number=number, told=[list(one) for one in told])
        if number < len(self._replies):
            return dict(self._replies[number])
        return {"text": "done", "tool_calls": []}

    @overload
    def __getitem__(self, index: int) -> Reply: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Reply]: ...
    def __getitem__(self, index: int | slice) -> Reply | Sequence[Reply]:
        return self._replies[index]

    def __len__(self) -> int:
        return len(self._replies)


def call(call_id: str, name: str, item: str, amount: int = 1) -> dict[str, Any]:
    """Return a call of one of the tools, as a model writes it."""
    return {"id": call_id, "name": name, "args": {"item": item, "amount": amount}}
