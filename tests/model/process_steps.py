"""Which failpoint kills a process at which move: the crash matrix, by the models' words.

Every label of every model stands in exactly one of these tables, and every failpoint of
the package in the first.
"""

from __future__ import annotations

from tests.model import remote, thread
from tests.model.turn import labels

_DECIDE = ("decide.before_commit", "decide.after_commit")
_SETTLE = ("settle.before_commit", "settle.after_commit")
_GATE = ("gate.before_commit", "gate.after_commit")
_RECORD = ("record.before_commit", "record.after_commit")
_SUSPEND = ("suspend.before_commit", "suspend.after_commit")
_END = ("end.before_commit", "end.after_commit")
_RELEASE = ("release.before_commit", "release.after_commit")
_ASIDE = ("aside.before_commit", "aside.after_commit")
_REMOTE = ("remote.before_commit", "remote.after_commit")

POINTS_OF: dict[str, tuple[str, ...]] = {
    labels.APPROVES: _DECIDE,
    labels.EDITS: _DECIDE,
    labels.REFUSES: _DECIDE,
    labels.ANSWERS: _DECIDE,
    labels.EXPIRES: _DECIDE,
    labels.SETTLES_HAPPENED: _SETTLE,
    labels.SETTLES_AGAIN: _SETTLE,
    labels.SETTLES_GIVEN_UP: _SETTLE,
    labels.ANNOUNCES: ("announce.before_publish",),
    labels.REVOKES: ("revoke.before_commit", "revoke.after_commit"),
    labels.CLAIMS: ("claim.after_commit",),
    labels.ASKS_MODEL: ("model.after_reply",),
    labels.GATE: _GATE,
    labels.AGAIN: _GATE,
    labels.ACTS: ("tool.after_call",),
    labels.RECORDS: _RECORD,
    labels.RECORDS_FOUND: _RECORD,
    labels.TOOL_FAILED: _RECORD,
    labels.TRANSACTION: ("transaction.after_body", "transaction.after_commit"),
    labels.SUSPENDS: _SUSPEND,
    labels.NOTHING_OPEN: _SUSPEND,
    labels.COMPLETES: _END,
    labels.FAILS: _END,
    labels.ASKS_NO_MORE: _END,
    labels.RAISES: _RELEASE,
    labels.TAKEN: _RELEASE,
    labels.DEFERS: _RELEASE,
    labels.REQUEST: ("request.before_commit", "request.after_commit"),
    labels.HOLDS: _ASIDE,
    remote.HOLDS_REMOTE: _ASIDE,
    remote.RAISES_REMOTE: ("raise.before_commit", "raise.after_commit"),
    remote.WITHDRAWS: _REMOTE,
    remote.LAPSES_REMOTE: _REMOTE,
    remote.OUTCOME_DUE: _REMOTE,
    remote.CONSUMES: _REMOTE,
    remote.CONSUMES_REFUSAL: _REMOTE,
    remote.GIVES_BACK: _REMOTE,
    remote.REPORTS: _REMOTE,
    remote.REPORTS_UNKNOWN: _REMOTE,
    remote.REPORTS_LATE: _REMOTE,
    remote.DECIDES_REMOTE: _DECIDE,
    remote.EXPIRES_REMOTE: _DECIDE,
    remote.SETTLES_REMOTE: _SETTLE,
    remote.GIVES_UP_REMOTE: _SETTLE,
}
"""Moves that a process of ours makes, and the failpoints that stand at them."""

_ONE_COMMIT = (
    "one transaction and nothing after it: killed before its commit it did not happen, "
    "killed after it the process has nothing more to do"
)
_THEN_STOPS = "one transaction, after which the run does nothing more but end"
_LIKE_A_START = "one transaction, before and after which the call stays as it was found"

WITHOUT_POINT: dict[str, str] = {
    labels.START_OWED: _ONE_COMMIT,
    labels.START_HERE: "what the claim shows, a start that is claimed at once shows too",
    labels.RETRIES: _ONE_COMMIT,
    labels.RESTARTS: _ONE_COMMIT,
    labels.TAKES_BACK: _ONE_COMMIT,
    labels.CANCELS: _ONE_COMMIT,
    labels.LAPSES: _ONE_COMMIT,
    labels.DOUBTS: _ONE_COMMIT,
    labels.UNCLAIMED: _ONE_COMMIT,
    labels.DIVERGES: _THEN_STOPS,
    labels.FORGERY_FOUND: _THEN_STOPS,
    labels.TOO_LATE: _THEN_STOPS,
    labels.LOOKS_UP: _LIKE_A_START,
    labels.LOOKS_IN_VAIN: _LIKE_A_START,
    labels.RECORDS_ABSENT: "the gate that follows it at once has points",
    labels.NEVER_STARTED: "lost, the step stays `started`: as if killed in the body",
    labels.TRANSACTION_FAILED: "lost, nothing is on record: as if killed in the body",
    thread.FLAGS: _ONE_COMMIT,
    thread.STARTS_BLOCKED: _ONE_COMMIT,
    thread.UNBLOCKS: _ONE_COMMIT,
}
"""Moves of our processes at which no failpoint stands, and why none is needed."""

_THREAD = "the turn's model makes this move in detail"
_READS = "writes nothing"
_OUTSIDE = "not a process of ours"

OTHERS: dict[str, str] = {
    labels.KILLED: "what a failpoint does",
    labels.REPLAYS: _READS,
    labels.STOPS: _READS,
    labels.ROWS_MOVED: _READS,
    labels.LATE_AT_GATE: _READS,
    labels.WORLD_CHANGED: _READS,
    labels.CANNOT_ASK: _READS,
    labels.TOO_EARLY: _READS,
    labels.TRANSACTION_PUT_OFF: _READS,
    labels.RAISES_AFTER: "the tool's own error",
    labels.RAISES_BEFORE: "the tool's own error",
    labels.EXECUTE_BY: _OUTSIDE,
    labels.FORGES: _OUTSIDE,
    thread.STARTS: _THREAD,
    thread.STARTS_HERE: _THREAD,
    thread.STARTS_HOLDING: _THREAD,
    thread.CLAIMS_THREAD: _THREAD,
    thread.ENDS: _THREAD,
    thread.LEAVES: _THREAD,
    thread.STUCK: _THREAD,
    thread.DOUBT_FOUND: _THREAD,
    thread.LAPSE: _THREAD,
    thread.DECIDED_ALL: _THREAD,
    thread.SETTLED_ALL: _THREAD,
    thread.RETRIED: _THREAD,
    thread.CANCELLED_ONE: _THREAD,
    thread.MEETS: _READS,
    thread.MEETS_AT_START: _READS,
    thread.CLAIMER_KILLED: "what a failpoint does",
    remote.REPEATS_KEY: _READS,
    remote.TIME_PASSES: _OUTSIDE,
    remote.ANSWER_LOST: _OUTSIDE,
    remote.ACTS_REMOTELY: _OUTSIDE,
    remote.CANNOT_TELL: _OUTSIDE,
    remote.CLIENT_KILLED: "a process of the client; one of ours is killed in "
    "tests/stores/test_django.py",
}
"""Moves that no process of ours makes, or that leave no trace."""

ONLY_IN_MUTANTS = (
    labels.REPEATS,
    labels.STALE_FORM,
    labels.CLAIMS_TOO,
    labels.RUNS_OTHER,
    labels.RUNS_FORGED,
)
"""Moves that nothing makes while every guard is in place."""
