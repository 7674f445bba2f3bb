"""Drawn histories of a whole site: starts, runs that die, decisions, jumps of clocks.

After every step everything is compared: the invariants, the tables of transitions, and
what the calls did outside of the rows. At the end every turn is driven to its own.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
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
from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.exceptions import AlreadyDecided, KeyReused
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.properties.outside import MOODS, WHIMS, forget, opened, outside
from tests.properties.profiles import HISTORIES
from tests.properties.site import (
    CLOCKS,
    RUN_POINTS,
    TRUSTED,
    Site,
    begun_steps,
    example,
    may_be_under_way,
    refused,
    survived,
)
from tests.properties.watching import Watch, watched

MODES = ("unsafe", "free", "idempotent", "lookup", "transactional")
BATCHES = st.lists(st.sampled_from(MODES), min_size=1, max_size=2)
SCRIPTS = st.one_of(
    st.lists(BATCHES, min_size=1, max_size=2),
    st.tuples(st.just("why?"), BATCHES).map(list),
)
NUMBERS = st.integers(min_value=0, max_value=5)
"""Picks one of what is there."""
WILLING = st.sampled_from(["approve", "approve", "edit", ""])
"""How everything that a turn waits for is decided before it runs, if it is."""
IN_A_CALL = ("tool.after_call", "tool.after_call", "gate.after_commit")
POINTS = st.one_of(st.sampled_from(IN_A_CALL), st.sampled_from(RUN_POINTS))
INTERLUDES = (
    "lease, run",
    "deadline, lease, run",
    "lease, run, deadline, settle, run",
    "lease, run, cancel",
    "cancel",
    "cancel, deadline, sweep",
    "fork",
    "lease, run, fork",
)
"""What others do while a call is under way."""


def while_some(model, *statuses):
    """Draw a rule only while a row has one of these statuses."""
    return precondition(lambda self: self.site.has(model, *statuses))


may_run = while_some(AgentTurn, "ready", "suspended")


def pick(found: list[Any], number: int) -> Any:
    return found[number % len(found)] if found else None


class Machine(RuleBasedStateMachine):
    """One example: a site in a database that is as before when it is over."""

    watch: Watch

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
        assert not self.watch.unknown
        self.site.check()
        self.sound = True

    # Turns begin and run.

    @initialize(script=SCRIPTS)
    def first(self, script):
        self.site.start(script, here=True, thread=None, point="")

    @precondition(lambda self: self.site.open_turns() < 3)
    @rule(
        script=SCRIPTS,
        here=st.sampled_from([True, True, False]),
        thread=st.sampled_from([None, None, "talk"]),
        point=st.sampled_from(("", "", *RUN_POINTS)),
    )
    def start(self, script, here, thread, point):
        self.site.start(script, here=here, thread=thread, point=point)

    @may_run
    @rule(
        number=NUMBERS,
        willing=WILLING,
        moods=st.lists(st.sampled_from(MOODS), max_size=3),
        whim=st.sampled_from(("", "", "", "", *WHIMS)),
    )
    def run(self, number, willing, moods, whim):
        turn = self.ready_turn(number, willing)
        outside.moods.extend(moods)
        outside.whim = whim
        self.site.run(turn)
        outside.calm_down()

    @may_run
    @rule(number=NUMBERS, willing=WILLING, point=POINTS)
    def run_and_die(self, number, willing, point):
        self.site.run(self.ready_turn(number, willing), point)

    @while_some(AgentTurn, "running")
    @rule(number=NUMBERS, late=st.booleans(), mood=st.sampled_from(MOODS))
    def take_over(self, number, late, mood):
        """The next worker comes, before or after a call's hard deadline."""
        turn = pick(self.site.turns_in("running"), number)
        for clock in ("lease", "deadline") if late else ("lease",):
            self.site.jump(clock, turn)
        services.sweep()
        self.site.jump("next run", turn)
        outside.moods.append(mood)
        self.site.run(turn)
        outside.calm_down()

    @may_run
    @rule(
        number=NUMBERS,
        willing=WILLING,
        interlude=st.sampled_from(INTERLUDES),
        before=st.booleans(),
        mood=st.sampled_from(MOODS),
    )
    def run_while_others_act(self, number, willing, interlude, before, mood):
        """A call that takes long: its lease lapses, another worker comes, a cancel."""
        turn = self.ready_turn(number, willing)

        def meanwhile() -> None:
            outside.overslept |= "deadline" in interlude and begun_steps(turn)
            for what in interlude.split(", "):
                self.act(turn, what)

        setattr(outside, "before" if before else "after", meanwhile)
        outside.moods.append(mood)
        self.site.run(turn)
        outside.calm_down()

    def act(self, turn, what):
        if what == "cancel":
            refused(lambda: services.cancel(turn, **TRUSTED))
        elif what == "fork":
            self.site.fork(turn, 0)
        elif what == "sweep":
            services.sweep()
        elif what == "settle":
            for row in self.site.interrupts(InterruptStatus.IN_DOUBT):
                self.settled(row, "run_again")
        elif what == "run":
            services.sweep()
            self.site.jump("next run", turn)
            self.site.run(turn)
        else:
            self.site.jump(what, turn)

    @precondition(lambda self: self.site.open_turns() < 3)
    @rule(number=NUMBERS, point=st.integers(min_value=0, max_value=9))
    def fork(self, number, point):
        """Start anew from some point of any turn, whatever became of it."""
        self.site.fork(pick(self.site.turns, number), point)

    # People decide.

    @while_some(PendingInterrupt, "pending")
    @rule(
        number=NUMBERS,
        decision=st.sampled_from(["approve", "edit", "reject"]),
        amount=st.integers(min_value=1, max_value=3),
        seen=st.sampled_from([0, 0, 0, -1]),
        key=st.sampled_from([None, "a", "b"]),
        point=st.sampled_from(["", "", "decide.before_commit", "decide.after_commit"]),
    )
    def decide(self, number, decision, amount, seen, key, point):
        row = pick(self.site.interrupts(InterruptStatus.PENDING), number)
        body = self.body(row, decision, amount)
        options = {**TRUSTED, "key": key, "revision": row.revision + seen}

        refused(
            lambda: survived(lambda: services.decide(row.pk, body, **options), point)
        )

        after = PendingInterrupt.objects.get(pk=row.pk)
        decided = after.status == InterruptStatus.DECIDED
        # A row whose time to decide has passed is refused as well.
        assert not (decided and (seen or point == "decide.before_commit"))
        assert decided or seen or point == "decide.before_commit" or row.expires_at
        if decided and key is not None:
            self.answers[row.pk] = (key, body)

    def body(self, row, decision, amount):
        if decision == "reject":
            return {"type": "reject", "reason": "no"}
        if row.kind == "question":
            return {"type": "respond", "value": amount}
        if decision == "edit":
            return {"type": "edit", "args": {**row.args, "amount": amount}}
        return {"type": "approve"}

    @while_some(PendingInterrupt, "decided")
    @rule(number=NUMBERS, same=st.booleans())
    def decide_again(self, number, same):
        """The same request again finds its answer; another one finds who was faster."""
        row = pick(self.site.interrupts(InterruptStatus.DECIDED), number)
        if row.decision == DecisionType.EXPIRE:
            return
        key, body = self.answers.get(row.pk, ("none", None))
        if same and body is not None and row.decision_key is not None:
            assert services.decide(row.pk, body, key=key, **TRUSTED).replayed
            return
        other = {"type": "reject", "reason": "another"}
        error = refused(lambda: services.decide(row.pk, other, key=key, **TRUSTED))
        assert isinstance(error, AlreadyDecided | KeyReused)

    @while_some(PendingInterrupt, "in_doubt")
    @rule(
        number=NUMBERS,
        answer=st.sampled_from(["happened", "run_again", "run_again", "give_up"]),
        late=st.booleans(),
        point=st.sampled_from(["", "", "settle.before_commit", "settle.after_commit"]),
    )
    def settle(self, number, answer, late, point):
        row = pick(self.site.interrupts(InterruptStatus.IN_DOUBT), number)
        if late:
            self.site.jump("deadline", row.turn_id)
        self.settled(row, answer, point)

    def settled(self, row, answer, point=""):
        early = may_be_under_way(row)
        refused(
            lambda: survived(lambda: services.settle(row.pk, answer, **TRUSTED), point)
        )
        row.refresh_from_db(fields=["status"])
        assert not (answer == "run_again" and early) or row.status == "in_doubt"

    @while_some(PendingInterrupt, "pending", "in_doubt")
    @rule(number=NUMBERS, verb=st.sampled_from(["claim", "claim", "release", "assign"]))
    def hand_on(self, number, verb):
        """Somebody takes a row in hand or lets it go: nothing else moves."""
        waiting = self.site.interrupts(InterruptStatus.PENDING)
        row = pick([*waiting, *self.site.interrupts(InterruptStatus.IN_DOUBT)], number)
        holder, _made = User.objects.get_or_create(username="holder", is_superuser=True)
        moved = ("status", "revision", "generation", "turn__undecided")
        found = PendingInterrupt.objects.filter(pk=row.pk).values_list(*moved)
        before = found.get()

        if verb == "assign":
            refused(lambda: services.assign(row.pk, holder, **TRUSTED))
        else:
            doing = {**TRUSTED, "by": holder}
            refused(lambda: getattr(services, verb)(row.pk, **doing))

        assert found.get() == before

    @while_some(PendingInterrupt, "decided")
    @rule(number=NUMBERS)
    def take_back(self, number):
        row = pick(self.site.interrupts(InterruptStatus.DECIDED), number)
        refused(lambda: services.re_review(row.pk, **TRUSTED))

    @while_some(AgentTurn, "needs_attention", "failed")
    @rule(
        number=NUMBERS,
        late=st.booleans(),
        verb=st.sampled_from(["retry", "retry", "restart", "cancel"]),
    )
    def deal_with(self, number, late, verb):
        """Try a stopped turn anew, before or after its calls were put in doubt."""
        turn = pick(self.site.turns_in("needs_attention", "failed"), number)
        if late:
            self.site.jump("deadline", turn)
            services.sweep()
        refused(lambda: getattr(services, verb)(turn, **TRUSTED))

    # Time passes.

    @rule(
        number=NUMBERS,
        clock=st.sampled_from(CLOCKS),
        point=st.sampled_from(["", "", "revoke.before_commit", "revoke.after_commit"]),
    )
    def let_time_pass(self, number, clock, point):
        self.site.jump(clock, pick(self.site.turns, number))
        survived(services.sweep, point)

    def ready_turn(self, number, willing):
        """Pick a turn; with people willing it may run, whatever it waited for."""
        turn = pick(self.site.turns_in("ready", "suspended"), number)
        if willing:
            self.site.decide_all(turn, willing)
        self.site.jump("next run", turn)
        return turn


@pytest.mark.django_db
def test_drawn_histories_keep_every_promise(settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 3}

    with opened(), watched() as Machine.watch:
        run_state_machine_as_test(Machine, settings=HISTORIES)
