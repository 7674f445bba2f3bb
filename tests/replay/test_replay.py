"""Every idempotent write is sent again after a crash: one answer, one effect, one event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token

from hitl_approvals.services.clients import create_client
from tests.concurrency.doors import VERBS
from tests.concurrency.situations import Situation
from tests.replay.dying_site import ANSWER, COMMIT, Died, DyingSite, Reply

pytestmark = pytest.mark.django_db(transaction=True)

CALLS: dict[str, tuple[str, ...]] = {
    "nothing": ("start",),
    "waiting": (
        *("approve", "reject", "edit", "bulk", "claim", "assign", "cancel", "fork"),
    ),
    "asked": ("respond",),
    "in hand": ("release",),
    "in doubt": ("happened", "run again", "give up"),
    "diverged": ("re-review", "retry", "restart"),
    "unasked": ("raise",),
    "requested": ("withdraw", "take back"),
    "remote approved": ("consume",),
    "refused": ("consume",),
    "fetched": ("succeeded", "failed", "unknown", "give back"),
}
"""Each write where it can be done; the names are those of the race table."""
MADE = {"raise": (201, 200), "fork": (201, 200), "start": (202, 202)}
"""What the first answer says where it is not 200, and the one to a repeat."""


@dataclass
class Client:
    """Sends one write of a situation to a real server, as often as it takes."""

    site: DyingSite
    place: Situation
    verb: str
    headers: dict[str, str]

    def send(self, *, death: str = "") -> Reply:
        verb, place = VERBS[self.verb], self.place
        key = place.fill(verb.key) or f"key of {place.ref}"
        return self.site.post(
            f"/api/{place.fill(verb.path)}",
            place.fill(verb.body),
            death=death,
            **{"Idempotency-Key": key, **self.headers},
        )

    def lose(self, death: str) -> None:
        with pytest.raises(Died):
            self.send(death=death)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[DyingSite]:
    made = DyingSite(tmp_path)
    yield made
    made.close()


@pytest.fixture
def client(site: DyingSite) -> Any:
    people = [User.objects.create_superuser(name) for name in ("first", "second")]
    people.append(User.objects.create_superuser("third"))
    agent, token = create_client("billing", by=None)
    person = Token.objects.create(user=people[0])

    def make(situation: str, verb: str) -> Client:
        place = Situation(situation, people, agent, token)
        credentials = f"Bearer {token}" if VERBS[verb].client else f"Token {person.key}"
        return Client(site, place, verb, {"Authorization": credentials})

    return make


def _calls() -> list[Any]:
    return [
        pytest.param(situation, verb, id=f"{situation}-{verb}")
        for situation, verbs in CALLS.items()
        for verb in verbs
    ]


def test_every_write_that_a_person_or_an_agent_may_repeat_is_here() -> None:
    clock = {name for name, verb in VERBS.items() if verb.acts is not None}
    variants = {"consume too", "raise other", "start other"}

    played = {verb for verbs in CALLS.values() for verb in verbs}

    assert played == set(VERBS) - clock - variants


@pytest.mark.parametrize(("situation", "verb"), _calls())
def test_a_write_is_sent_until_it_is_answered_and_done_once(
    client: Any, situation: str, verb: str
) -> None:
    one: Client = client(situation, verb)
    before = one.place.left()

    one.lose(COMMIT)
    unchanged = one.place.left()
    one.lose(ANSWER)
    after = one.place.left()
    again = one.send()
    once_more = one.send()

    assert unchanged == before
    assert after != before
    assert one.place.left() == after
    assert _is_repeat(verb, again), again
    assert again == once_more
    _same_answer(one.site.kept, again.body)


@pytest.mark.parametrize("situation", ["unasked", "waiting"])
def test_what_was_not_committed_is_a_new_request_when_it_is_sent_again(
    client: Any, situation: str
) -> None:
    verb = CALLS[situation][0]
    one: Client = client(situation, verb)

    one.lose(COMMIT)
    first = one.send()
    again = one.send()

    assert (first.status, first.replayed) == (MADE.get(verb, (200, 0))[0], "false")
    assert _is_repeat(verb, again), again
    _same_answer(first.body, again.body)


def _is_repeat(verb: str, reply: Reply) -> bool:
    """Tell whether an answer says that all was there before."""
    if verb == "bulk":  # which says so of each decision
        return reply.status == 200 and b'"code":"replayed"' in reply.body
    expected = MADE.get(verb, (200, 200))[1]
    return (reply.status, reply.replayed) == (expected, "true")


def _same_answer(first: bytes, second: bytes) -> None:
    """A bulk's answer tells of each decision by itself whether it was there before."""
    assert first.replace(b'"recorded"', b'"replayed"') == second


def test_of_many_decisions_those_that_were_committed_are_replayed(client: Any) -> None:
    one, two = client("waiting", "bulk"), client("waiting", "bulk")
    rows = [one.place.row, two.place.row]
    approve = {"type": "approve"}
    body = {"decisions": [{"id": str(row.pk), "decision": approve} for row in rows]}
    headers = {"Idempotency-Key": "many", **one.headers}
    path = "/api/interrupts/decide/"

    with pytest.raises(Died):
        one.site.post(path, body, death="commit-2", **headers)
    again = one.site.post(path, body, **headers)

    outcomes = again.json()["outcomes"]
    assert [outcome["code"] for outcome in outcomes] == ["replayed", "recorded"]
    for place in (one.place, two.place):
        _rows, _turns, told = place.left()
        assert dict(told)["approved"] == 1
