"""The row of a remote agent: raised, decided, consumed, its outcome reported.

Two processes of the client, each with a key of its own. A killed one comes back with a
new key, since it cannot know whether it acted; a living one repeats its key when the
answer was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from hitl_approvals.enums import InterruptStatus
from tests.model.explore import (
    PEOPLE,
    SYSTEM,
    TROUBLE,
    Change,
    Flaw,
    Move,
    Reachable,
)

PENDING = InterruptStatus.PENDING.value
DECIDED = InterruptStatus.DECIDED.value
IN_DOUBT = InterruptStatus.IN_DOUBT.value
RESOLVED = InterruptStatus.RESOLVED.value
WITHDRAWN = InterruptStatus.CANCELLED.value
APPROVE, REFUSE = "approve", "refuse"

# What a process of the client is at.
IDLE, ASKED, MAY_ACT, ACTED = range(4)
MOST_KEYS = 3

RAISES_REMOTE = "raises an interrupt for a remote agent"
DECIDES_REMOTE = "decides for a remote agent"
EXPIRES_REMOTE = "lets a remote request expire"
WITHDRAWS = "withdraws its request"
TIME_PASSES = "the time to consume the approval passes"
LAPSES_REMOTE = "withdraws an approval that nobody consumed"
HOLDS_REMOTE = "puts an approval in doubt that may have been fetched"
OUTCOME_DUE = "puts a call without a report in doubt"
SETTLES_REMOTE = "settles the doubt of a remote call"
GIVES_UP_REMOTE = "gives a remote call up"
CONSUMES = "consumes the decision"
CONSUMES_REFUSAL = "consumes a refusal"
ANSWER_LOST = "consumes the decision, the answer is lost"
REPEATS_KEY = "asks again with its key"
ACTS_REMOTELY = "acts"
GIVES_BACK = "gives back what it did not act on"
CANNOT_TELL = "cannot tell whether it acted"
REPORTS = "reports the outcome"
REPORTS_UNKNOWN = "reports that it does not know"
REPORTS_LATE = "reports too late"
CLIENT_KILLED = "dies"
LABELS = (
    RAISES_REMOTE,
    DECIDES_REMOTE,
    EXPIRES_REMOTE,
    WITHDRAWS,
    TIME_PASSES,
    LAPSES_REMOTE,
    HOLDS_REMOTE,
    OUTCOME_DUE,
    SETTLES_REMOTE,
    GIVES_UP_REMOTE,
    CONSUMES,
    CONSUMES_REFUSAL,
    ANSWER_LOST,
    REPEATS_KEY,
    ACTS_REMOTELY,
    GIVES_BACK,
    CANNOT_TELL,
    REPORTS,
    REPORTS_UNKNOWN,
    REPORTS_LATE,
    CLIENT_KILLED,
)

ONE_DECISION = "one decision for a remote request"
ONE_RESOLUTION = "a remote request is resolved once"
ONE_EFFECT = "a remote approval has one effect"
ONLY_APPROVED = "nothing acts without an approval"
NO_DOUBT_OVER_REFUSAL = "a refusal is never in doubt"
NOTHING_HIDDEN = "nothing is withdrawn over a call that ran or may run"
IN_TIME_REMOTE = "nothing is consumed after `execute_by`"
RESTS_REMOTE = "by itself, a remote request ends or waits for a person"
ENDS_REMOTE = "if people are willing, a remote request ends"

GUARDS = {
    "lapse": "an approval that nobody consumed in time is withdrawn",
    "lapse_asks_consumed": "a consumed one is not",
    "withdraw_asks_consumed": "a client cannot withdraw what it consumed",
    "refusal_ends": "consuming a refusal resolves it",
    "outcome_due": "a report that stays away is a doubt",
    "decide_asks_pending": "a decision finds its interrupt pending",
    "consume_asks_first": "a decision is consumed by one key",
    "consume_asks_time": "an approval is consumed before `execute_by`",
    "report_asks_decided": "a report finds its interrupt decided",
    "unused_given_back": "a process gives back only what it did not act on",
    "settled_ends": "a doubt of a remote call never runs again",
}


class Row(NamedTuple):
    """The interrupt, two processes of the client, and what happened so far."""

    status: str
    decision: str
    key: int
    """Of the process that consumed the decision; 0 if none did."""
    late: bool
    given_up: bool
    effects: int
    decisions: int
    resolutions: int
    clients: tuple[tuple[int, int], ...]
    """For each of the two processes what it is at, and its key."""
    next_key: int
    crashes: int


@dataclass(frozen=True)
class RemoteModel:
    """Every order in which everything may happen to one remote row."""

    without: str = ""

    @property
    def name(self) -> str:
        return "remote" + f" without {self.without}" * bool(self.without)

    @property
    def promises(self) -> list[Reachable[Row]]:
        ended = (RESOLVED, WITHDRAWN)
        return [
            Reachable(
                RESTS_REMOTE,
                SYSTEM,
                lambda row: row.status in (PENDING, IN_DOUBT, *ended),
            ),
            Reachable(ENDS_REMOTE, SYSTEM + PEOPLE, lambda row: row.status in ended),
        ]

    def initial(self) -> Row:
        return Row("", "", 0, False, False, 0, 0, 0, ((IDLE, 0), (IDLE, 0)), 1, 2)

    def moves(self, row: Row) -> Iterator[Move[Row]]:
        if not row.status:
            after = row._replace(status=PENDING)
            yield Move(SYSTEM, RAISES_REMOTE, "client", after)
            return
        yield from chain(self._decided(row), self._timed(row), self._settled(row))
        for number, (phase, key) in enumerate(row.clients):
            if phase == IDLE:
                yield from self._consumed(row, number)
            else:
                yield from self._performed(row, number, phase, key)

    def changes(self, before: Row, after: Row) -> Iterator[Change]:
        if before.status != after.status:
            yield "interrupt", before.status, after.status

    def flaw_of(self, before: Row, move: Move[Row]) -> Flaw | None:
        if before.late and before.key == 0 and move.state.key != 0:
            return Flaw(IN_TIME_REMOTE, move.who)
        return None

    def flaw_in(self, row: Row) -> Flaw | None:
        under_way = any(phase != IDLE for phase, _key in row.clients)
        unseen = row.status == WITHDRAWN and not row.given_up
        broken = {
            ONE_DECISION: row.decisions > 1,
            ONE_RESOLUTION: row.resolutions > 1,
            ONE_EFFECT: row.effects > 1,
            ONLY_APPROVED: row.effects > 0 and row.decision != APPROVE,
            NO_DOUBT_OVER_REFUSAL: row.status == IN_DOUBT and row.decision != APPROVE,
            NOTHING_HIDDEN: unseen and (row.effects > 0 or under_way),
        }
        for promise, is_broken in broken.items():
            if is_broken:
                return Flaw(promise, repr(row))
        return None

    def _lacks(self, guard: str) -> bool:
        return guard in self.without.split()

    def _decided(self, row: Row) -> Iterator[Move[Row]]:
        again = row.status == DECIDED and self._lacks("decide_asks_pending")
        if row.status != PENDING and not again:
            return
        for kind, label, decision in (
            (PEOPLE, DECIDES_REMOTE, APPROVE),
            (PEOPLE, DECIDES_REMOTE, REFUSE),
            (PEOPLE, EXPIRES_REMOTE, REFUSE),
        ):
            after = row._replace(
                status=DECIDED, decision=decision, decisions=row.decisions + 1
            )
            yield Move(kind, label, "rita", after)

    def _timed(self, row: Row) -> Iterator[Move[Row]]:
        free = not row.key or self._lacks("withdraw_asks_consumed")
        if row.status == PENDING or (row.status == DECIDED and free):
            yield Move(TROUBLE, WITHDRAWS, "client", row._replace(status=WITHDRAWN))
        if row.status != DECIDED:
            return
        if row.decision == APPROVE and not row.late:
            yield Move(TROUBLE, TIME_PASSES, "clock", row._replace(late=True))
        unused = not row.key or self._lacks("lapse_asks_consumed")
        if row.late and unused and not self._lacks("lapse"):
            after = row._replace(status=WITHDRAWN)
            yield Move(SYSTEM, LAPSES_REMOTE, "sweeper", after)
        if row.decision == APPROVE and not row.key:
            # After a failover, by the command.
            after = row._replace(status=IN_DOUBT)
            yield Move(TROUBLE, HOLDS_REMOTE, "operator", after)
        if row.key and not self._lacks("outcome_due"):
            yield Move(SYSTEM, OUTCOME_DUE, "sweeper", row._replace(status=IN_DOUBT))

    def _settled(self, row: Row) -> Iterator[Move[Row]]:
        if row.status != IN_DOUBT:
            return
        after = row._replace(status=RESOLVED, resolutions=row.resolutions + 1)
        yield Move(PEOPLE, SETTLES_REMOTE, "sina", after)
        after = row._replace(status=WITHDRAWN, given_up=True)
        yield Move(PEOPLE, GIVES_UP_REMOTE, "sina", after)
        if self._lacks("settled_ends"):
            after = row._replace(status=DECIDED, key=0, late=False)
            yield Move(PEOPLE, SETTLES_REMOTE, "sina", after)

    def _consumed(self, row: Row, number: int) -> Iterator[Move[Row]]:
        first = not row.key or self._lacks("consume_asks_first")
        in_time = not row.late or self._lacks("consume_asks_time")
        if row.status != DECIDED or not (first and in_time):
            return
        if row.next_key > MOST_KEYS:
            return
        who = f"client {number}"
        key = row.next_key
        taken = row._replace(key=key, next_key=key + 1)
        if row.decision == REFUSE and not self._lacks("refusal_ends"):
            after = taken._replace(status=RESOLVED, resolutions=row.resolutions + 1)
            yield Move(SYSTEM, CONSUMES_REFUSAL, who, after)
            return
        at = MAY_ACT if row.decision == APPROVE else ACTED
        yield Move(SYSTEM, CONSUMES, who, _client(taken, number, at, key))
        yield Move(TROUBLE, ANSWER_LOST, who, _client(taken, number, ASKED, key))

    def _performed(
        self, row: Row, number: int, phase: int, key: int
    ) -> Iterator[Move[Row]]:
        who = f"client {number}"
        if row.crashes:
            after = _client(row, number, IDLE, 0)._replace(crashes=row.crashes - 1)
            yield Move(TROUBLE, CLIENT_KILLED, who, after)
        if phase == ASKED:
            # The same key gets the same answer, whatever the clock says by now.
            at = MAY_ACT if row.decision == APPROVE else ACTED
            mine = row.key == key
            after = _client(row, number, at if mine else IDLE, key if mine else 0)
            yield Move(SYSTEM, REPEATS_KEY, who, after)
        elif phase == MAY_ACT:
            yield from self._given_back(row, number, key)
            acted = _client(row, number, ACTED, key)._replace(effects=row.effects + 1)
            yield Move(SYSTEM, ACTS_REMOTELY, who, acted)
            for after in (acted, _client(row, number, ACTED, key)):
                yield Move(TROUBLE, CANNOT_TELL, who, after)
        else:
            yield from self._reported(row, number, key)
            if self._lacks("unused_given_back"):
                yield from self._given_back(row, number, key)

    def _given_back(self, row: Row, number: int, key: int) -> Iterator[Move[Row]]:
        # While there is a key left to fetch it with: the model has few of them.
        another = row.next_key <= MOST_KEYS
        if row.status == DECIDED and row.key == key and another:
            after = _client(row, number, IDLE, 0)._replace(key=0)
            yield Move(TROUBLE, GIVES_BACK, f"client {number}", after)

    def _reported(self, row: Row, number: int, key: int) -> Iterator[Move[Row]]:
        who = f"client {number}"
        done = _client(row, number, IDLE, 0)
        open_ = row.status == DECIDED or self._lacks("report_asks_decided")
        if row.key != key or not open_:
            yield Move(SYSTEM, REPORTS_LATE, who, done)
            return
        after = done._replace(status=RESOLVED, resolutions=row.resolutions + 1)
        yield Move(SYSTEM, REPORTS, who, after)
        if row.status == DECIDED:
            yield Move(TROUBLE, REPORTS_UNKNOWN, who, done._replace(status=IN_DOUBT))


def _client(row: Row, number: int, phase: int, key: int) -> Row:
    clients = list(row.clients)
    clients[number] = (phase, key)
    return row._replace(clients=tuple(clients))


MUTANTS = {
    "lapse": RESTS_REMOTE,
    "lapse_asks_consumed": NOTHING_HIDDEN,
    "withdraw_asks_consumed": NOTHING_HIDDEN,
    "refusal_ends": NO_DOUBT_OVER_REFUSAL,
    "outcome_due": RESTS_REMOTE,
    "decide_asks_pending": ONE_DECISION,
    "consume_asks_first": ONE_EFFECT,
    "consume_asks_time": IN_TIME_REMOTE,
    "report_asks_decided": ONE_RESOLUTION,
    "settled_ends": NOTHING_HIDDEN,
    "unused_given_back": NOTHING_HIDDEN,
}
"""Guards left out, and the promise that breaks then."""
