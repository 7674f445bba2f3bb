"""Every guard of the protocol, left out: which promise breaks then, or why none does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.model.explore import UNKNOWN_TRANSITION
from tests.model.turn import promises
from tests.model.turn.script import World

GUARDS = {
    "decide_asks_turn": "a decision finds its turn suspended, with something undecided",
    "decide_asks_pending": "a decision finds its interrupt pending",
    "decide_asks_revision": "a decision finds the revision that was shown",
    "decide_rolls_back": "a decision that finds no row undoes its first statement",
    "decide_compares": "what is approved or edited is compared with its digest",
    "claim": "a claim finds the turn ready",
    "fence": "every write of a run finds its own fence",
    "turn_status": "every write of a run finds the turn running",
    "revoke_raises_fence": "taking a turn from a silent worker raises the fence",
    "cancel_raises_fence": "a cancel raises the fence",
    "gate_asks_time": "the gate starts nothing whose approval has lapsed",
    "gate_compares": "the gate compares the stored arguments with the decided digest",
    "gate_runs_edit": "the gate runs a reviewer's arguments, not the proposed ones",
    "gate_compares_calls": "a call under a known key is the call on record",
    "gate_flushes": "the gate writes the reply that asked for the call",
    "again_asks_row": "a repeat under the same key finds the start that it saw",
    "take_over_asks_row": "a take-over finds the start that it saw",
    "doubt": "an unsafe call that was started is never simply called again",
    "repeat_may_have_acted": "a repeat that never left says nothing of the first start",
    "lookup_waits": "the other side is asked only after the hard deadline",
    "again_waits": '"run it again" is refused until the hard deadline',
    "doubts_wait": "the sweeper doubts a call only after its hard deadline",
    "never_started_withdraws": "a call that never started is withdrawn in a closed turn",
    "never_started_asks_fence": "only by the worker whose start stands",
    "record_asks_started": "a record finds its step started",
    "record_asks_fence": "a record finds its own fence on the step",
    "record_asks_decided": "a record finds its interrupt decided",
    "record_asks_generation": "a record finds the interrupt in its own generation",
    "record_reads_chain": "a record survives a late result in the chain of events",
    "close_reads_chain": "so does the withdrawal of what a turn leaves behind",
    "end_reads": "the end of a batch decides by the rows, not from memory",
    "doubts_with_requests": "a free call's doubt is raised with its batch's requests",
    "lapse_asks_step": "only an approval that no call was started for lapses",
    "cancel_counts": "a cancel leaves nothing undecided",
    "cancel_spares": "a cancel spares a call under way",
    "close_spares": "so does the end of a turn",
    "retry_counts": "a retry waits for open doubts",
    "settle_records": "a doubt of a stopped or closed turn can be settled",
    "announce": "the sweeper announces owed runs again",
    "revoke": "the sweeper takes turns from silent workers",
    "sweep_doubts": "the sweeper puts overdue calls of closed and stuck turns in doubt",
}
"""Each condition that the services ask, as one sentence."""


@dataclass(frozen=True)
class Mutant:
    """A world without some guards, and the promise that breaks in it."""

    world: World
    breaks: str


@dataclass(frozen=True)
class Survivor:
    """A world without a guard in which nothing breaks, and why."""

    world: World
    why: str


def _without(guards: str, script: str = "U", **options: Any) -> World:
    return World(script, without=guards, **options)


_CALM: dict[str, Any] = {"crashes": 0, "zombies": 0, "oddities": 0}

MUTANTS = [
    Mutant(_without("decide_asks_pending", "UU"), promises.COUNTED),
    Mutant(_without("decide_rolls_back", "UU"), promises.COUNTED),
    Mutant(_without("decide_asks_revision"), promises.AUTHORIZED),
    Mutant(_without("claim"), UNKNOWN_TRANSITION),
    Mutant(_without("fence"), promises.FENCED),
    Mutant(_without("fence", "T"), promises.AUTHORIZED),
    Mutant(_without("turn_status revoke_raises_fence"), UNKNOWN_TRANSITION),
    Mutant(_without("turn_status cancel_raises_fence"), UNKNOWN_TRANSITION),
    Mutant(_without("gate_asks_time"), promises.IN_TIME),
    Mutant(_without("gate_compares", forgeries=1), promises.WHAT_WAS_APPROVED),
    Mutant(_without("gate_runs_edit", edits=True), promises.WHAT_WAS_APPROVED),
    Mutant(_without("gate_compares_calls"), promises.WHAT_WAS_APPROVED),
    Mutant(_without("gate_flushes", "u"), promises.REPLY_FIRST),
    Mutant(_without("again_asks_row", "I"), UNKNOWN_TRANSITION),
    Mutant(_without("take_over_asks_row", "L"), UNKNOWN_TRANSITION),
    Mutant(_without("doubt"), promises.AUTHORIZED),
    Mutant(_without("repeat_may_have_acted", "I"), promises.HONEST),
    Mutant(_without("lookup_waits", "L", strict=True), promises.HONEST),
    Mutant(_without("again_waits", strict=True), promises.ACTED_ONCE),
    Mutant(_without("never_started_withdraws"), promises.NOTHING_LEFT),
    Mutant(_without("never_started_asks_fence", "I"), promises.NEVER_CLOSED_OVER),
    Mutant(_without("record_asks_fence", "I"), promises.HONEST),
    Mutant(
        _without("record_asks_started record_asks_generation"),
        promises.NEVER_OVER_A_START,
    ),
    Mutant(_without("record_asks_started record_asks_decided"), UNKNOWN_TRANSITION),
    Mutant(_without("record_reads_chain"), promises.ALIVE_RECORDS),
    Mutant(_without("close_reads_chain"), promises.NOTHING_LEFT),
    Mutant(_without("end_reads"), UNKNOWN_TRANSITION),
    Mutant(_without("lapse_asks_step"), promises.NEVER_OVER_A_START),
    Mutant(_without("cancel_counts"), promises.STOPPED),
    Mutant(_without("cancel_spares"), promises.NEVER_CLOSED_OVER),
    Mutant(_without("close_spares"), promises.NEVER_CLOSED_OVER),
    Mutant(_without("retry_counts"), promises.COUNTED),
    Mutant(_without("settle_records"), promises.SETTLED),
    Mutant(_without("announce"), promises.RESTS),
    Mutant(_without("revoke"), promises.RESTS),
    Mutant(_without("sweep_doubts"), promises.SHOWN),
]

SURVIVORS = [
    Survivor(
        _without("decide_asks_turn"),
        "a pending interrupt has a suspended turn: I2 says so",
    ),
    Survivor(
        _without("decide_compares", forgeries=1, edits=True, **_CALM),
        "the gate compares again; asked early, the reviewer hears of it first",
    ),
    Survivor(
        _without("turn_status", oddities=0),
        "whatever takes a turn from its worker raises the fence as well",
    ),
    Survivor(_without("revoke_raises_fence"), "the turn's status is asked too"),
    Survivor(_without("cancel_raises_fence"), "the turn's status is asked too"),
    Survivor(
        _without("record_asks_started", oddities=0),
        "a step that left `started` left its interrupt or its generation behind",
    ),
    Survivor(
        _without("record_asks_decided", oddities=0),
        "a step that is started has it decided",
    ),
    Survivor(
        _without("record_asks_generation", oddities=0),
        "the step of an older generation is not started any more",
    ),
    Survivor(
        _without("doubts_with_requests", "uU", reopenings=0),
        "the end of the next run raises it",
    ),
    Survivor(
        _without("doubts_wait", strict=True),
        '"run it again" waits for the deadline by itself',
    ),
]
