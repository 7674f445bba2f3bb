"""What the tests of a kind of agent stand on: hooks, turns, people, other processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from hitl_approvals import Approve, run_turn, services, start_turn
from hitl_approvals.agents.capabilities import Capabilities, capabilities_of
from hitl_approvals.auditing import Verification
from hitl_approvals.decisions import Decision
from hitl_approvals.enums import ASIDE, InterruptStatus
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.registry import Tool, registry
from hitl_approvals.testing import agent_child
from hitl_approvals.testing import agent_contract_rows as waits
from hitl_approvals.testing import agent_contract_world as world
from hitl_approvals.testing.agent_contract_processes import Ended, OtherProcesses
from hitl_approvals.testing.failpoints import VARIABLE as FAILPOINT

INPUT = "go"
"""What every turn of the contract is asked."""
WAITING = (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT)
OVER = (InterruptStatus.RESOLVED, InterruptStatus.CANCELLED)


class AgentContractHarness:
    """Set `kind` and override `make_agent`; the rest as far as the kind differs."""

    pytestmark = pytest.mark.django_db(transaction=True)

    kind: ClassVar[str] = "function"
    """As in `@agent(kind=...)`."""
    preload: ClassVar[Sequence[str]] = ()
    """Modules that take long to import: loaded once for all the other processes."""
    _others: ClassVar[OtherProcesses | None] = None

    # What a kind of agent has to say

    def make_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: world.Script
    ) -> None:
        """Register an agent of the kind, whose model plays the script.

        Its model calls `script.play(number, told)` for each reply, where `number` counts
        the replies in the conversation it is handed, and `told` holds the id and the text
        of every tool result in it. Called in other processes too, on a fresh instance.
        """
        raise NotImplementedError

    def make_asking_agent(
        self, name: str, payload: Any, response_schema: dict[str, Any]
    ) -> None:
        """Register an agent that asks a person this, and whose output is the answer.

        For kinds that declare `questions`.
        """
        raise NotImplementedError

    def make_stubborn_agent(
        self, name: str, tools: Sequence[Tool[Any, Any]], script: world.Script
    ) -> bool:
        """Register an agent that swallows whatever stops it; False if there is no way."""
        return False

    def in_another_process(self) -> str:
        """Return where another process finds this class, as `module:Class`."""
        return f"{type(self).__module__}:{type(self).__qualname__}"

    @property
    def capabilities(self) -> Capabilities:
        """What the kind declares."""
        return capabilities_of(self.kind)

    # Turns

    def set_up(self, folder: Path) -> None:
        """Begin a test whose effects are counted in this folder."""
        self.name = f"contract-{uuid4().hex[:8]}"
        self.folder = folder
        self.script = world.Script([])

    @pytest.fixture(autouse=True)
    def _contract(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        settings: Any,
    ) -> Iterator[None]:
        self.set_up(tmp_path)
        monkeypatch.setenv(world.VARIABLE, str(tmp_path / "world"))
        settings.HITL_APPROVALS = agent_child.SETTINGS
        before = dict(registry.agents)
        yield
        registry.agents.clear()
        registry.agents.update(before)

    @classmethod
    def teardown_class(cls) -> None:
        if cls._others is not None:
            cls._others.close()
            cls._others = None

    def declare(
        self,
        name: str,
        tools: Sequence[Tool[Any, Any]],
        script: world.Script,
        *,
        version: str = "1",
        accepts: Sequence[str] = (),
    ) -> None:
        """Register the agent in this process, in a version of it."""
        registry.agents.pop(name, None)
        self.make_agent(name, tools, script)
        registry.agents[name] = replace(
            registry.agents[name], version=version, accepts=tuple(accepts)
        )

    def start(self, *replies: Sequence[Any], run: bool = True) -> AgentTurn:
        """Start a turn whose model asks for these calls, one list a reply."""
        written = [{"text": "I will.", "tool_calls": list(calls)} for calls in replies]
        self.script = world.Script(written)
        self.declare(self.name, world.tools(), self.script)
        return start_turn(self.name, INPUT, run=run)

    def start_registered(self) -> AgentTurn:
        """Start the agent of this test as it is registered, up to its first pause."""
        return start_turn(self.name, INPUT, run=True)

    def go_on(self, turn: AgentTurn) -> str:
        """Run an owed turn here and read it anew."""
        waits.make_due(turn)
        outcome = run_turn(turn.pk)
        turn.refresh_from_db()
        return outcome

    def elsewhere(
        self,
        turn: AgentTurn,
        *,
        processes: int = 1,
        upgraded: bool = False,
        tools: Sequence[str] = world.NAMES,
        version: str = "1",
        accepts: Sequence[str] = (),
        killed_at: str = "",
    ) -> list[Ended]:
        """Run an owed turn in other processes, which begin at the same moment.

        Args:
            turn: It is read anew afterwards.
            processes: How many.
            upgraded: Whether the unsafe tool takes one more argument there.
            tools: What the agent has there.
            version: Of the agent there.
            accepts: Older versions that it takes there.
            killed_at: A failpoint at which the process is killed.
        """
        environment = {world.VARIABLE: str(self.folder / "world")}
        if killed_at:
            mark = self.folder / f"{uuid4().hex}.mark"
            environment[FAILPOINT] = f"{killed_at}:kill:{mark}"
        run = {
            "turn": str(turn.pk),
            "agent": self.name,
            "script": list(self.script),
            "environment": environment,
            "upgraded": upgraded,
            "tools": list(tools),
            "version": version,
            "accepts": list(accepts),
        }
        waits.make_due(turn)
        if type(self)._others is None:  # noqa: SLF001  one for all tests of a class
            type(self)._others = OtherProcesses(self.in_another_process())  # noqa: SLF001
        others = type(self)._others  # noqa: SLF001
        assert others is not None
        ended = others.play([run] * processes)
        turn.refresh_from_db()
        return ended

    def recover(self, turn: AgentTurn) -> None:
        """Notice that the worker of a turn is gone, and that its call is over."""
        assert turn.status == "running", turn.status
        waits.go_silent(turn)
        waits.pass_deadlines(turn)
        turn.refresh_from_db()
        assert turn.status == "ready", turn.status

    # People

    def rows(self, turn: AgentTurn) -> list[PendingInterrupt]:
        """Return the interrupts of a turn in the order of asking."""
        found = PendingInterrupt.objects.filter(turn=turn.pk)
        return list(found.order_by("requested_at", "position", "pk"))

    def only(self, turn: AgentTurn) -> PendingInterrupt:
        """Return the one interrupt of a turn."""
        rows = self.rows(turn)
        assert len(rows) == 1, (len(rows), turn.status, turn.last_error)
        return rows[0]

    def waiting(self, turn: AgentTurn) -> list[PendingInterrupt]:
        """Return what waits for a person."""
        return [row for row in self.rows(turn) if row.status in WAITING]

    def decide(self, row: PendingInterrupt, decision: Decision | None = None) -> None:
        """Decide as trusted code; an approval unless the test says otherwise."""
        services.decide(row.pk, decision or Approve(), by=None, via="contract")

    def decide_all(self, turn: AgentTurn, decision: Decision | None = None) -> None:
        """Decide everything that waits in the same way."""
        for row in self.waiting(turn):
            self.decide(row, decision)

    # What came of it

    def effects(self, name: str) -> list[tuple[str, int]]:
        """Return what a tool did, in order: the item and the amount of each time."""
        return world.effects(name)

    def asked(self) -> list[int]:
        """Return which replies the model was really asked for, in order."""
        return [one["number"] for one in world.noted("asked")]

    def told(self) -> list[tuple[str, str]]:
        """Return the tool results that the model saw last: the call's id and the text."""
        last = world.noted("asked")[-1]
        return [(call_id, text) for call_id, text in last["told"]]

    def events(self, row: PendingInterrupt) -> list[str]:
        """Return the types of an interrupt's events, oldest first."""
        found = InterruptEvent.objects.filter(subject_id=row.pk)
        return list(found.order_by("sequence").values_list("type", flat=True))

    def tool_steps(self, turn: AgentTurn) -> list[str]:
        """Return the status of each tool call in the ledger."""
        found = TurnStep.objects.filter(turn=turn.pk, kind="tool")
        return list(found.order_by("position").values_list("status", flat=True))

    def assert_completed(self, turn: AgentTurn, *outcomes: str) -> None:
        """Assert that a turn is over, and how each of its interrupts ended, in order."""
        turn.refresh_from_db()
        said = (turn.status, turn.last_error)
        assert turn.status == "completed", said
        assert [row.outcome_status for row in self.rows(turn)] == list(outcomes)
        self.assert_settled_once(turn)

    def assert_settled_once(self, turn: AgentTurn) -> None:
        """Assert that everything asked was settled exactly once, and the trail is whole."""
        for row in self.rows(turn):
            assert row.status in OVER, (row.tool_name, row.status)
            told = InterruptEvent.objects.filter(subject_id=row.pk, status__in=OVER)
            assert told.exclude(type__in=ASIDE).count() == 1, self.events(row)
        faults = [one for one in Verification().findings() if one.is_fault]
        assert faults == []
