"""What the writes of the API meet on: one turn or one request, in one state."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

from django.contrib.auth.models import User

from hitl_approvals import (
    Approve,
    Reject,
    Turn,
    TurnFailed,
    agent,
    run_turn,
    services,
    start_turn,
    tool,
)
from hitl_approvals.models import (
    AgentClient,
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from tests.support import remote
from tests.support.turns import PAST

EFFECTS: list[str] = []
_refs = count(1)


@tool(name="door_send", timeout=60)
def door_send(text: str) -> str:
    """Have an effect, and lose the line if the text says so."""
    EFFECTS.append(text)
    if text == "lost":
        raise ConnectionError("the line went dead")
    return "sent"


@agent("door", tools=[door_send])
def door(turn: Turn, prompt: str) -> Any:
    if prompt == "ask":
        return turn.interrupt({"question": "Which color?"}, key="q")
    if prompt == "fail":
        raise TurnFailed("Not possible.")
    return turn.call_tool("door_send", {"text": prompt}, id="a")["content"]


class Situation:
    """One state, made anew for each meeting, and what is left of it afterwards."""

    def __init__(
        self, name: str, people: list[User], client: AgentClient, token: str
    ) -> None:
        self.people, self.client, self.token = people, client, token
        self.ref = f"ref-{next(_refs)}"
        self.row: Any = None
        self.turn: AgentTurn | None = None
        EFFECTS.clear()
        getattr(self, "_" + name.replace(" ", "_"))()
        if self.row is not None:
            self.row.refresh_from_db()

    def fill(self, given: Any) -> Any:
        """Put this situation's ids into a path or a body."""
        if isinstance(given, str):
            row = "" if self.row is None else str(self.row.pk)
            turn = "" if self.turn is None else str(self.turn.pk)
            given = given.replace("{row}", row).replace("{turn}", turn)
            return given.replace("{ref}", self.ref)
        if isinstance(given, dict):
            return {name: self.fill(value) for name, value in given.items()}
        if isinstance(given, list):
            return [self.fill(value) for value in given]
        return given

    def left(self) -> tuple[Any, ...]:
        """Return what the rows and events say, without ids and times."""
        turns = AgentTurn.objects.filter(thread_id=self.ref)
        if self.turn is not None:
            turns |= AgentTurn.objects.filter(pk=self.turn.pk)
            turns |= AgentTurn.objects.filter(parent=self.turn.pk)
        found = PendingInterrupt.objects.filter(client_ref=self.ref)
        found |= PendingInterrupt.objects.filter(turn__in=turns.values("pk"))
        rows = sorted(
            (
                *(one.status, one.decision or "", one.decided_by_label),
                *(one.outcome_status, one.generation, one.revision),
                *(one.consume_key or "", one.assignee_id or 0, one.client_id is None),
            )
            for one in found
        )
        subjects = [one.pk for one in found] + [one.pk for one in turns]
        told = InterruptEvent.objects.filter(subject_id__in=subjects)
        return (
            tuple(rows),
            tuple(sorted((t.status, t.undecided, t.restarts) for t in turns)),
            tuple(sorted(Counter(told.values_list("type", flat=True)).items())),
        )

    def shown(self) -> tuple[Any, ...] | None:
        """Return what an answer shows of the row by now, as `doors` reads it."""
        if self.row is None:
            return None
        row = PendingInterrupt.objects.select_related("assignee").get(pk=self.row.pk)
        holder = None if row.assignee is None else row.assignee.get_username()
        return row.status, row.decision, row.decided_by_label or None, holder

    # Turns

    def _begin(self, prompt: str) -> None:
        self.turn = start_turn("door", prompt, run=True)
        self.row = PendingInterrupt.objects.filter(turn=self.turn).first()

    def _waiting(self) -> None:
        self._begin("a")

    def _asked(self) -> None:
        self._begin("ask")

    def _in_hand(self) -> None:
        self._begin("a")
        services.claim(self.row.pk, by=self.people[0], via="test")

    def _approved(self) -> None:
        self._begin("a")
        services.decide(self.row.pk, Approve(), by=None, via="test")

    def _in_doubt(self) -> None:
        self._begin("lost")
        services.decide(self.row.pk, Approve(), by=None, via="test")
        assert self.turn is not None
        assert run_turn(self.turn.pk) == "suspended"
        TurnStep.objects.filter(interrupt=self.row).update(hard_deadline=PAST)

    def _diverged(self) -> None:
        self._approved()
        assert self.turn is not None
        AgentTurn.objects.filter(pk=self.turn.pk).update(input="other")
        assert run_turn(self.turn.pk) == "needs_attention"

    def _failed(self) -> None:
        self._begin("fail")

    def _nothing(self) -> None:
        """Two writes start it, or one."""

    # Requests of a remote agent

    def _unasked(self) -> None:
        """Two writes make it, or one."""

    def _requested(self) -> None:
        self.row = remote.ask(self.client, ref=self.ref)

    def _remote_approved(self) -> None:
        self._requested()
        remote.decided(self.row)

    def _refused(self) -> None:
        self._requested()
        remote.decided(self.row, Reject("no"))

    def _fetched(self) -> None:
        self._remote_approved()
        remote.fetch(remote.fresh(self.row))

    def _remote_in_doubt(self) -> None:
        self._fetched()
        remote.report(remote.fresh(self.row), "unknown", error="timed out")
