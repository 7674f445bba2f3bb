"""Which process dies where: every failpoint, in every phase and mode that passes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from hitl_approvals.enums import ToolMode

MODES = tuple(
    str(mode)
    for mode in (
        ToolMode.TRANSACTIONAL,
        ToolMode.IDEMPOTENT,
        ToolMode.LOOKUP,
        ToolMode.UNSAFE,
        ToolMode.NONE,
    )
)
LEDGERED = ("idempotent", "lookup", "unsafe")
"""Modes whose calls are on record before they begin."""
SIGNALS = ("kill", "stop")
DATABASES = ("postgresql", "sqlite")
TRANSPORTS = ("celery", "worker")

GATE = ("gate.before_commit", "gate.after_commit")
CALL = "tool.after_call"
RECORD = ("record.before_commit", "record.after_commit")
SUSPEND = ("suspend.before_commit", "suspend.after_commit")

PHASES = {
    "start": "a worker takes a new turn",
    "decide": "a reviewer decides over the API",
    "resume": "a worker takes the decided turn",
    "recover": "a worker takes over from one that was killed in the call",
    "settle": "a person settles a doubt over the API",
    "again": "a worker runs the call that a person wants run again",
    "sweep": "a worker's sweeper moves what another left",
    "call": "a view asks for one call without an agent, under a key",
    "remote": "an agent elsewhere asks, fetches and reports over the API, or a sweeper ends it",
    "outside": "messages are lost, doubled, late, and out of order",
}


@dataclass(frozen=True)
class Case:
    """One turn with one gated call, and one process that dies or stops on its way."""

    phase: str
    point: str
    mode: str
    signal: str = "kill"
    database: str = "sqlite"
    transport: str = "worker"
    decision: str = "approve"
    answer: str = ""
    """How the doubt is settled that the case begins with."""
    died_at: str = ""
    """Where the worker before this one was killed."""
    fault: str = ""
    """What is broken in the product on purpose; see `faults`."""

    @property
    def row(self) -> tuple[str, str, str]:
        """Where the case stands in the table: phase, what happens, mode."""
        detail = self.answer or ("" if self.decision == "approve" else self.decision)
        if self.phase == "recover" and self.mode == "lookup":
            detail = "done" if self.died_at == CALL else "absent"
        point = f"{self.point} ({detail})" if detail else self.point
        return self.phase, point, self.mode

    @property
    def name(self) -> str:
        return " ".join([*self.row, self.signal, self.database, self.transport])

    @property
    def flaky(self) -> bool:
        """Whether the agent raises once, which is what a release needs."""
        return self.point.startswith("release.")

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def rows() -> Iterator[Case]:
    """Yield one case for every row of the table."""
    for mode in MODES:
        yield from _of_every_mode(mode)
    for mode in LEDGERED:
        for point in (*GATE, CALL, *RECORD):
            yield Case("resume", point, mode)
    for point in ("transaction.after_body", "transaction.after_commit"):
        yield Case("resume", point, "transactional")
    yield from _after_a_crash()
    yield from _beside_turns()


def _of_every_mode(mode: str) -> Iterator[Case]:
    for point in ("claim.after_commit", "model.after_reply", *SUSPEND):
        yield Case("start", point, mode)
    for decision in ("approve", "edit", "reject"):
        for point in ("decide.before_commit", "decide.after_commit"):
            yield Case("decide", point, mode, decision=decision)
    for point in (
        "claim.after_commit",
        "model.after_reply",
        "release.before_commit",
        "release.after_commit",
        "end.before_commit",
        "end.after_commit",
    ):
        yield Case("resume", point, mode)
    died_at = CALL if mode in LEDGERED else "claim.after_commit"
    for point in ("revoke.before_commit", "revoke.after_commit"):
        yield Case("sweep", point, mode, died_at=died_at)
    # Where nobody announces anything, nobody passes this point.
    yield Case("sweep", "announce.before_publish", mode, transport="celery")


def _after_a_crash() -> Iterator[Case]:
    before_call = "gate.after_commit"
    for point in (*GATE, CALL, *RECORD):
        yield Case("recover", point, "idempotent", died_at=CALL)
        yield Case("recover", point, "lookup", died_at=before_call)
        yield Case("again", point, "unsafe", died_at=before_call, answer="run_again")
    for point in RECORD:
        yield Case("recover", point, "lookup", died_at=CALL)
    for point in SUSPEND:
        yield Case("recover", point, "unsafe", died_at=CALL)
    for point in ("settle.before_commit", "settle.after_commit"):
        yield Case("settle", point, "unsafe", died_at=CALL, answer="happened")
        for answer in ("run_again", "give_up"):
            yield Case("settle", point, "unsafe", died_at=before_call, answer=answer)


REMOTE = "remote"
"""Stands for the mode of a call that is made elsewhere."""
REMOTE_MOVES = {
    "raise": ("raise",),
    "aside": ("claim",),
    "remote": (
        *("withdraw", "fetch", "fetch refusal", "give back"),
        *("succeeded", "failed", "unknown", "lapse", "overdue"),
    ),
}
"""What passes the points of each place, by the name that `remote` plays it under."""


def _beside_turns() -> Iterator[Case]:
    for end in ("before_commit", "after_commit"):
        yield Case("call", f"request.{end}", "unsafe")
        for place, moves in REMOTE_MOVES.items():
            for move in moves:
                yield Case("remote", f"{place}.{end}", REMOTE, answer=move)


def matrix() -> list[Case]:
    """Return every row with every signal, on every database, with every transport."""
    return [
        replace(case, signal=signal, database=database, transport=transport)
        for case in rows()
        for database in DATABASES
        for transport in TRANSPORTS
        for signal in SIGNALS
        if transport == "celery" or case.transport == "worker"
    ]


_TELLING = (
    ("start", "suspend.before_commit", "unsafe"),
    ("decide", "decide.after_commit", "unsafe"),
    ("resume", "gate.after_commit", "lookup"),
    ("resume", "gate.after_commit", "unsafe"),
    ("resume", "tool.after_call", "idempotent"),
    ("resume", "tool.after_call", "lookup"),
    ("resume", "tool.after_call", "unsafe"),
    ("resume", "record.before_commit", "unsafe"),
    ("resume", "transaction.after_body", "transactional"),
    ("resume", "end.before_commit", "idempotent"),
    ("remote", "raise.after_commit", REMOTE),
)


def trimmed() -> list[Case]:
    """Return the few cases that the ordinary suite plays, without a broker."""
    return [
        case
        for case in matrix()
        if (case.phase, case.point, case.mode) in _TELLING
        and case.decision == "approve"
        and case.transport == "worker"
    ]


MISFORTUNES = {
    "hints are flushed": "celery",
    "hints are doubled": "celery",
    "hints are reordered": "celery",
    "tasks are redelivered": "celery",
    "many sweep at once": "worker",
}
"""What befalls the messages between processes, and with which transport."""


def outside() -> list[Case]:
    """Return the cases in which nobody is killed and messages do not do what they should."""
    return [
        Case(
            "outside",
            point,
            mode,
            database=database,
            transport=transport,
            died_at=CALL if mode == "unsafe" else "claim.after_commit",
        )
        for point, transport in MISFORTUNES.items()
        for mode in ("unsafe", "transactional")
        for database in DATABASES
        # A transactional call that takes its time would hold SQLite's only pen.
        if (point, mode) != ("tasks are redelivered", "transactional")
    ]
