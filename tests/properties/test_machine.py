"""Drawn histories of a whole site: starts, runs that die, decisions, jumps of clocks.

After every step everything is compared: the invariants, the tables of transitions, and
what the calls did outside of the rows. At the end every turn is driven to its own.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hitl_approvals import services
from hitl_approvals.enums import DecisionType, InterruptStatus, TurnStatus
from hitl_approvals.exceptions import AlreadyDecided, KeyReused
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.properties.outside import MOODS, WHIMS, forget, opened, outside
from tests.properties.profiles import HISTORIES
from tests.properties.rows import CLOSED
from tests.properties.site import (
    CLOCKS,
    RUN_POINTS,
    TRUSTED,
    Site,
    begun_steps,
    example,
    refused,
    survived,
)

MODES = ("unsafe", "free", "idempotent", "lookup", "transactional")
NUMBERS = st.integers(min_value=0, max_value=11)
"""Picks one of what is there."""
SCRIPTS = st.lists(
    st.one_of(
        st.lists(st.sampled_from(MODES), min_size=1, max_size=3),
        st.sampled_from(["why?"]),
    ),
    min_size=1,
    max_size=2,
)
WILLING = st.sampled_from([1, 1, 1, 0])
"""Whether everything that a turn waits for is decided before it runs."""
POINTS = st.sampled_from(("", "", *RUN_POINTS))
DECISIONS = ("approve", "approve", "edit", "reject")
INTERLUDES = ("lease", "lease, run", "cancel", "deadline, lease, run", "sweep")
"""What others do while a call is under way."""


def while_some(model, *statuses):
    """Draw a rule only while a row has one of these statuses."""
    return precondition(lambda self: self.site.has(model, *statuses))


runnable = while_some(AgentTurn, "ready", "suspended")


def pick(found: list[Any], number: int) -> Any:
    return found[number % len(found)] if found else None


class Machine(RuleBasedStateMachine):
    """One example: a site in a database that is as before when it is over."""

    def __init__(self) -> None:
        super().__init__()
        forget()
        self.block = example()
        self.block.__enter__()
        self.site = Site()
        self.sound = False
        self.answers: dict[Any, tuple[str, Any]] = {}

    def teardown(self) -> None:
        try:
            if self.sound:
                self.site.drive_to_the_end()
        finally:
            self.block.__exit__(None, None, None)

    @invariant()
    def everything_holds(self) -> None:
        self.sound = False
        self.site.check()
        self.sound = True

    @initialize(script=SCRIPTS, here=st.booleans())
    def first(self, script, here):
        self.site.start(script, here=here, thread="talk", point="")

    @precondition(lambda self: len(self.site.turns) < 3)
    @rule(
        script=SCRIPTS,
        here=st.booleans(),
        thread=st.sampled_from(["talk", None]),
        point=POINTS,
    )
    def start(self, script, here, thread, point):
        self.site.start(script, here=here, thread=thread, point=point)

    @runnable
    @rule(
        number=NUMBERS,
        willing=WILLING,
        point=POINTS,
        moods=st.lists(st.sampled_from(MOODS), max_size=3),
        whim=st.sampled_from(("", "", "", "", *WHIMS)),
    )
    def run(self, number, willing, point, moods, whim):
        turn = self.turn(number, willing)
        outside.moods.extend(moods)
        outside.whim = whim
        self.site.run(turn, point)
        outside.calm_down()

    @runnable
    @rule(number=NUMBERS, willing=WILLING, point=POINTS, mood=st.sampled_from(MOODS))
    def run_and_die(self, number, willing, point, mood):
        """A worker that dies, or does not, and the next one that takes over."""
        turn = self.turn(number, willing)
        outside.moods.append(mood)
        self.site.run(turn, point)
        outside.calm_down()
        self.site.jump("lease", turn)
        services.sweep()
        self.site.jump("next run", turn)
        self.site.run(turn)

    @runnable
    @rule(
        number=NUMBERS,
        willing=WILLING,
        interlude=st.sampled_from(INTERLUDES),
        before=st.booleans(),
        mood=st.sampled_from(MOODS),
    )
    def run_while_others_act(self, number, willing, interlude, before, mood):
        """A call that takes long: its lease lapses, another worker comes, a cancel."""
        turn = self.turn(number, willing)

        def meanwhile() -> None:
            outside.overslept |= "deadline" in interlude and begun_steps(turn)
            for what in interlude.split(", "):
                self.meanwhile(turn, what)

        setattr(outside, "before" if before else "after", meanwhile)
        outside.moods.append(mood)
        self.site.run(turn)
        outside.calm_down()

    def meanwhile(self, turn, what):
        if what == "cancel":
            refused(lambda: services.cancel(turn, **TRUSTED))
        elif what == "sweep":
            services.sweep()
        elif what == "run":
            services.sweep()
            self.site.jump("next run", turn)
            self.site.run(turn)
        else:
            self.site.jump(what, turn)

    @while_some(PendingInterrupt, "pending")
    @rule(
        number=NUMBERS,
        decision=st.sampled_from(DECISIONS),
        amount=st.integers(min_value=1, max_value=3),
        seen=st.sampled_from([0, 0, 0, -1]),
        key=st.sampled_from([None, "a", "b"]),
        point=st.sampled_from(["", "", "decide.before_commit", "decide.after_commit"]),
    )
    def decide(self, number, decision, amount, seen, key, point):
        row = pick(self.site.interrupts(InterruptStatus.PENDING), number)
        if row is None:
            return
        body = self.body(row, decision, amount)
        options = {**TRUSTED, "key": key, "revision": row.revision + seen}
        error = refused(
            lambda: survived(lambda: services.decide(row.pk, body, **options), point)
        )
        after = PendingInterrupt.objects.get(pk=row.pk)
        died_before = point == "decide.before_commit" and error is None
        stays = seen != 0 or died_before or after.status == InterruptStatus.PENDING
        assert (after.status == InterruptStatus.PENDING) is stays
        if after.status == InterruptStatus.DECIDED and key is not None:
            self.answers[row.pk] = (key, body)

    def body(self, row, decision, amount):
        if row.kind == "question":
            if decision == "reject":
                return {"type": "reject", "reason": "no"}
            return {"type": "respond", "value": amount}
        if decision == "edit":
            args = {**row.args, "amount": amount}
            return {"type": "edit", "args": args}
        if decision == "reject":
            return {"type": "reject", "reason": "no"}
        return {"type": "approve"}

    @while_some(PendingInterrupt, "decided")
    @rule(number=NUMBERS, same=st.booleans())
    def decide_again(self, number, same):
        """The same request again finds its answer; another one finds who was faster."""
        row = pick(self.site.interrupts(InterruptStatus.DECIDED), number)
        if row is None or row.decision == DecisionType.EXPIRE:
            return
        key, body = self.answers.get(row.pk, ("none", {"type": "approve"}))
        if same and row.pk in self.answers and row.decision_key is not None:
            receipt = services.decide(row.pk, body, key=key, **TRUSTED)
            assert receipt.replayed
            return
        error = refused(
            lambda: services.decide(
                row.pk, {"type": "reject", "reason": "other"}, key=key, **TRUSTED
            )
        )
        assert isinstance(error, AlreadyDecided | KeyReused)

    @while_some(PendingInterrupt, "in_doubt")
    @rule(
        number=NUMBERS,
        answer=st.sampled_from(["happened", "run_again", "give_up"]),
        point=st.sampled_from(["", "", "settle.before_commit", "settle.after_commit"]),
    )
    def settle(self, number, answer, point):
        row = pick(self.site.interrupts(InterruptStatus.IN_DOUBT), number)
        if row is not None:
            refused(
                lambda: survived(
                    lambda: services.settle(row.pk, answer, **TRUSTED), point
                )
            )

    @precondition(lambda self: len(self.site.turns) > 1)
    @rule(number=NUMBERS)
    def cancel(self, number):
        if number < len(self.site.turns):
            turn = self.turn(number)
            refused(lambda: services.cancel(turn, **TRUSTED))

    @while_some(AgentTurn, "needs_attention", "failed")
    @rule(number=NUMBERS, verb=st.sampled_from(["retry", "retry", "restart"]))
    def try_anew(self, number, verb):
        stopped = AgentTurn.objects.filter(
            pk__in=self.site.turns,
            status__in=[TurnStatus.NEEDS_ATTENTION, TurnStatus.FAILED],
        )
        turn = pick(list(stopped.order_by("created_at", "pk")), number)
        if turn is not None:
            refused(lambda: getattr(services, verb)(turn.pk, **TRUSTED))

    @while_some(PendingInterrupt, "decided")
    @rule(number=NUMBERS)
    def take_back(self, number):
        row = pick(self.site.interrupts(InterruptStatus.DECIDED), number)
        if row is not None:
            refused(lambda: services.re_review(row.pk, **TRUSTED))

    @rule(
        point=st.sampled_from(["", "", "revoke.before_commit", "revoke.after_commit"])
    )
    def sweep(self, point):
        survived(services.sweep, point)

    @rule(number=NUMBERS, clock=st.sampled_from(CLOCKS))
    def jump(self, number, clock):
        self.site.jump(clock, self.turn(number))
        services.sweep()

    def turn(self, number, willing=0):
        """Pick a turn; with people willing it may run, whatever it waited for."""
        open_ = AgentTurn.objects.filter(pk__in=self.site.turns)
        open_ = open_.exclude(status__in=CLOSED).order_by("created_at", "pk")
        turn = pick(list(open_.values_list("pk", flat=True)) or self.site.turns, number)
        if willing:
            self.site.approve_all(turn)
            self.site.jump("next run", turn)
        return turn


@pytest.mark.django_db
def test_drawn_histories_keep_every_promise(settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 3}

    with opened():
        run_state_machine_as_test(Machine, settings=HISTORIES)
