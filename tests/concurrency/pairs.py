"""Verbs that can meet on one row, and the situations in which they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connections

from hitl_approvals import (
    Approve,
    Edit,
    Reject,
    Turn,
    agent,
    run_turn,
    services,
    start_turn,
    tool,
)
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.models import (
    AgentTurn,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)

PAST = db_now_plus(timedelta(seconds=-2))
EFFECTS: list[str] = []
INSIDE = threading.Event()
GO_ON = threading.Event()
HOLD = threading.Event()
"""Set while the next call is to wait inside the tool's body."""


@tool(name="pair_send", timeout=60)
def pair_send(text: str) -> str:
    """Have an effect, and wait inside it if the test says so."""
    EFFECTS.append(text)
    if HOLD.is_set():
        HOLD.clear()
        INSIDE.set()
        assert GO_ON.wait(30)
    return "sent"


@agent("pair", tools=[pair_send])
def pair(turn: Turn, prompt: str) -> Any:
    return turn.call_tool("pair_send", {"text": "a"}, id="a")["content"]


class Scene:
    """One turn, its interrupt, and the verbs that may meet on it."""

    def __init__(self) -> None:
        EFFECTS.clear()
        for event in (INSIDE, GO_ON, HOLD):
            event.clear()
        self.turn = start_turn("pair", "go", run=True)
        self.row = PendingInterrupt.objects.get(turn=self.turn)
        self.worker: threading.Thread | None = None
        self.outcome: list[Any] = []

    # Situations

    def approved(self) -> Scene:
        services.decide(self.row.pk, Approve(), by=None, via="test")
        return self

    def in_the_tool(self, *, silent: bool = True) -> Scene:
        """A worker stands inside the tool's body; its lease is over if it is silent."""
        self.approved()
        HOLD.set()
        self.worker = threading.Thread(target=self._work)
        self.worker.start()
        assert INSIDE.wait(30)
        if silent:
            self._turn().update(lease_until=PAST)
        return self

    def in_doubt(self) -> Scene:
        """A second worker found the call begun; the first is still inside it."""
        self.in_the_tool()
        services.sweep()
        self._turn().update(next_run_at=PAST)
        assert run_turn(self.turn.pk) == "suspended"
        TurnStep.objects.filter(turn=self.turn, kind="tool").update(hard_deadline=PAST)
        return self

    def stuck(self) -> Scene:
        """The call is begun, past its time, and nobody runs the turn any more."""
        self.in_the_tool()
        services.cancel(self.turn.pk, by=None, via="test")
        TurnStep.objects.filter(turn=self.turn, kind="tool").update(hard_deadline=PAST)
        return self

    def _turn(self) -> Any:
        return AgentTurn.objects.filter(pk=self.turn.pk)

    def _work(self) -> None:
        try:
            self.outcome.append(run_turn(self.turn.pk))
        except Exception as error:  # noqa: BLE001  told to the test
            self.outcome.append(error)
        finally:
            connections.close_all()

    # Verbs

    def verb(self, name: str) -> Callable[[], Any]:
        decide = partial(services.decide, self.row.pk, by=None, via="test")
        settle = partial(services.settle, self.row.pk, by=None, via="test")
        verbs: dict[str, Callable[[], Any]] = {
            "approve": partial(decide, Approve()),
            "reject": partial(decide, Reject("no")),
            "edit": partial(decide, Edit({"text": "b"})),
            "expire": self._expire,
            "lapse": self._lapse,
            "cancel": partial(services.cancel, self.turn.pk, by=None, via="test"),
            "claim": partial(run_turn, self.turn.pk),
            "record": self.record,
            "revoke": services.sweep,
            "raise": services.sweep,
            "retry": partial(services.retry, self.turn.pk, by=None, via="test"),
            "settle happened": partial(settle, "happened", result="sent"),
            "settle run again": partial(settle, "run_again"),
            "settle give up": partial(settle, "give_up"),
        }
        return verbs[name]

    def record(self) -> None:
        """Let the worker out of the tool: it records what it did."""
        GO_ON.set()
        if self.worker is not None:
            self.worker.join(30)
            assert not self.worker.is_alive()

    def _expire(self) -> None:
        PendingInterrupt.objects.filter(pk=self.row.pk, status="pending").update(
            expires_at=PAST
        )
        services.sweep()

    def _lapse(self) -> None:
        PendingInterrupt.objects.filter(pk=self.row.pk, status="decided").update(
            execute_by=PAST
        )
        services.sweep()

    # The end

    def finish(self) -> str:
        """Do what workers, sweepers and people would, until the turn has ended."""
        self.record()
        for _round in range(20):
            turn = AgentTurn.objects.get(pk=self.turn.pk)
            if turn.status in ("completed", "failed", "cancelled"):
                services.sweep()
                return turn.status
            self._turn().filter(status="running").update(lease_until=PAST)
            self._turn().filter(status="ready").update(next_run_at=PAST)
            TurnStep.objects.filter(turn=self.turn, status="started").update(
                hard_deadline=PAST
            )
            services.sweep()
            run_turn(turn.pk)
            self._be_a_person()
        raise AssertionError(f"the turn never ended: {turn.status} {turn.last_error}")

    def _be_a_person(self) -> None:
        with suppress(HitlApprovalsError):
            row = PendingInterrupt.objects.get(pk=self.row.pk)
            if row.status == "pending":
                services.decide(row.pk, Reject("enough"), by=None, via="test")
            elif row.status == "in_doubt":
                services.settle(row.pk, "happened", by=None, via="test", result="sent")
        with suppress(HitlApprovalsError):
            services.retry(self.turn.pk, by=None, via="test")
