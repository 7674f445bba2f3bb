"""Every write of the REST API as one verb: where it goes, what it says, who sends it.

Sends and reads, judges nothing. The clock's own moves are verbs too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rest_framework.test import APIClient

from hitl_approvals import run_turn, services
from hitl_approvals.models import PendingInterrupt
from tests.support.turns import PAST

if TYPE_CHECKING:
    from tests.concurrency.situations import Situation

REPLAYED = "Idempotency-Replayed"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one side of a meeting was told, as far as two runs can be compared."""

    status: int = 0
    """HTTP status; 0 for the clock and the worker, who are told nothing."""
    code: str = ""
    replayed: bool = False
    shown: tuple[Any, ...] | None = None
    """Of a refusal: status, decision and decider of the interrupt that its body shows."""
    text: str = ""
    """The end of the body, for whoever reads a failure."""

    @property
    def core(self) -> tuple[int, str, bool]:
        return self.status, self.code, self.replayed

    @property
    def word(self) -> str:
        """What stands in a table."""
        if not self.status:
            return "done"
        return f"{self.status} {self.code or ('replayed' if self.replayed else '')}"


@dataclass(frozen=True, slots=True)
class Verb:
    """One write. `{row}`, `{turn}` and `{ref}` of path and body are the situation's."""

    path: str = ""
    body: Any = None
    key: str = ""
    """The only key that fits; a free verb takes the key of its side."""
    client: bool = False
    """Sent by the remote agent, else by a person."""
    acts: Callable[[Situation], None] | None = None
    """What the clock or a worker does instead of sending."""

    @property
    def free(self) -> bool:
        return not (self.key or self.acts)


def _passes(column: str) -> Callable[[Situation], None]:
    def act(place: Situation) -> None:
        mine = PendingInterrupt.objects.filter(
            pk=place.row.pk, status__in=("pending", "decided")
        )
        mine.filter(**{f"{column}__isnull": False}).update(**{column: PAST})
        services.sweep()

    return act


def _works(place: Situation) -> None:
    assert place.turn is not None
    run_turn(place.turn.pk)


ROW, TURN = "interrupts/{row}/", "turns/{turn}/"
ASKED = {"tool_name": "refund", "args": {"order": "7"}}

VERBS: dict[str, Verb] = {
    "approve": Verb(ROW + "approve/", {}),
    "reject": Verb(ROW + "reject/", {"reason": "no"}),
    "edit": Verb(ROW + "edit/", {"args": {"text": "b"}}),
    "respond": Verb(ROW + "respond/", {"value": "blue"}),
    "bulk": Verb(
        "interrupts/decide/",
        {"decisions": [{"id": "{row}", "decision": {"type": "approve"}}]},
    ),
    "claim": Verb(ROW + "claim/", {}),
    "release": Verb(ROW + "release/", {}),
    "assign": Verb(ROW + "assign/", {"to": "third"}),
    "re-review": Verb(ROW + "re-review/", {}),
    "happened": Verb(ROW + "settle/", {"answer": "happened", "result": "sent"}),
    "run again": Verb(ROW + "settle/", {"answer": "run_again"}),
    "give up": Verb(ROW + "settle/", {"answer": "give_up"}),
    "take back": Verb(ROW + "cancel/", {}),
    "start": Verb("turns/", {"agent": "door", "input": "a", "thread_id": "{ref}"}),
    "start other": Verb(
        "turns/", {"agent": "door", "input": "b", "thread_id": "{ref}"}
    ),
    "cancel": Verb(TURN + "cancel/", {}),
    "retry": Verb(TURN + "retry/", {}),
    "restart": Verb(TURN + "restart/", {}),
    "fork": Verb(TURN + "fork/", {}),
    "raise": Verb("interrupts/", ASKED, key="{ref}", client=True),
    "raise other": Verb(
        "interrupts/", {**ASKED, "args": {"order": "8"}}, key="{ref}", client=True
    ),
    "consume": Verb(ROW + "consume/", {}, key="k", client=True),
    "consume too": Verb(ROW + "consume/", {}, key="other", client=True),
    "succeeded": Verb(ROW + "outcome/", {"status": "succeeded"}, key="k", client=True),
    "failed": Verb(ROW + "outcome/", {"status": "failed"}, key="k", client=True),
    "unknown": Verb(ROW + "outcome/", {"status": "unknown"}, key="k", client=True),
    "give back": Verb(ROW + "give-back/", {}, key="k", client=True),
    "withdraw": Verb(ROW + "cancel/", {}, client=True),
    "expire": Verb(acts=_passes("expires_at")),
    "lapse": Verb(acts=_passes("execute_by")),
    "doubt": Verb(acts=_passes("outcome_due")),
    "run": Verb(acts=_works),
}
"""By the names that the tables use."""
DECIDING = {"approve", "reject", "edit", "respond", "bulk"}
TIMED = {"expire", "lapse", "doubt"}
"""Two moves in one: the moment passes, and then a sweeper comes by."""


def send(verb: Verb, place: Situation, *, person: int, key: str) -> Answer:
    """Send a write as one of the people, or as the remote agent, and read the answer."""
    if verb.acts is not None:
        verb.acts(place)
        return Answer()
    client = APIClient(raise_request_exception=False)
    headers = {"Idempotency-Key": place.fill(verb.key) or key}
    if verb.client:
        headers["Authorization"] = f"Bearer {place.token}"
    else:
        client.force_authenticate(place.people[person])
    response: Any = client.post(
        f"/api/{place.fill(verb.path)}",
        place.fill(verb.body),
        format="json",
        headers=headers,
    )
    return _read(response)


def _read(response: Any) -> Answer:
    replayed = response.headers.get(REPLAYED) == "true"
    text = response.content.decode()[-400:]
    if not response.headers["Content-Type"].startswith("application/json"):
        return Answer(response.status_code, text=text)
    body = response.json()
    if response.status_code == 200 and "outcomes" in body:
        (body,) = body["outcomes"]
        done = body["status"] == 200
        return Answer(
            body["status"],
            "" if done else body["code"],
            body["code"] == "replayed",
            None if done else _shown(body),
            text,
        )
    if response.status_code < 300:
        return Answer(response.status_code, replayed=replayed, text=text)
    return Answer(response.status_code, body["code"], False, _shown(body), text)


def _shown(body: Any) -> tuple[Any, ...] | None:
    row = body["interrupt"]
    if row is None:
        return None
    return row["status"], row["decision"], row["decided_by"], row["assignee"]
