"""The reference page is true: its examples are played, its tables compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rest_framework import exceptions as drf
from rest_framework.authtoken.models import Token
from rest_framework.test import APIClient

from hitl_approvals import engine, exceptions, services
from hitl_approvals.api import bulk, errors, following, serializers
from hitl_approvals.api.bodies import START_FIELDS
from hitl_approvals.api.interrupts import InterruptViewSet
from hitl_approvals.api.parameters import list_parameters
from hitl_approvals.api.remote_bodies import OUTCOME_FIELDS, RAISE_FIELDS
from hitl_approvals.api.schema import answers
from hitl_approvals.api.turns import TurnViewSet
from hitl_approvals.api.urls import router
from hitl_approvals.api.waiting import asking
from hitl_approvals.models import AgentClient, AgentTurn, PendingInterrupt
from hitl_approvals.services import client_limits, client_tokens
from tests.api import scenes

FOLDER = Path(__file__).resolve().parents[2] / "docs/reference/api"
PAGES = {page.stem: page.read_text() for page in sorted(FOLDER.glob("*.md"))}
BLOCK = re.compile(r"^```http\n(.*?)^```$", re.DOTALL | re.MULTILINE)
UUID = re.compile(r"019a3f6e-0000-7000-8000-\d{12}")
# The names of the page belong to whoever reads it; the registry's are the tests' own.
NAMES = {"issue_refund": "api_issue_refund", '"support"': '"api_support"'}
AGENT_TOKEN = "hac_example-token-of-the-billing-agent"


@dataclass
class Message:
    """A request or an answer as the page shows it."""

    first: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""

    @classmethod
    def read(cls, text: str) -> Message:
        head, _, body = text.partition("\n\n")
        first, *lines = head.splitlines()
        return cls(first, dict(line.split(": ", 1) for line in lines), body.strip())


def messages(page: str) -> Iterator[Message]:
    for name, own in NAMES.items():
        page = page.replace(name, own)
    return (Message.read(match[1]) for match in BLOCK.finditer(page))


def rows_of(heading: str, column: int = 0) -> list[str]:
    """Return one column of the first table below a heading of any page."""
    (section,) = (
        page.split(f"# {heading}\n", 1)[1]
        for page in PAGES.values()
        if f"# {heading}\n" in page
    )
    table = re.search(r"^\| -.*?\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert table is not None
    return [
        line.split("|")[column + 1].strip().strip("`")
        for line in table[1].strip().splitlines()
    ]


def assert_shown(told: Any, found: Any, ids: dict[str, str]) -> None:
    """Compare what the page shows with what came; it may show less, never else."""
    if isinstance(told, dict):
        for name, value in told.items():
            assert_shown(value, found[name], ids)
    elif isinstance(told, list):
        assert len(told) == len(found)
        for one, other in zip(told, found, strict=True):
            assert_shown(one, other, ids)
    elif isinstance(told, str) and UUID.search(told):
        (named,) = UUID.findall(told)
        if named == told:
            ids.setdefault(named, found)
        assert found == told.replace(named, ids[named])
    else:
        assert (type(told), told) == (type(found), found)


STORIES = {name: list(messages(page)) for name, page in PAGES.items()}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [name for name in STORIES if STORIES[name]])
def test_the_examples_of_a_page_are_true(name):
    backend = scenes.user("backend", "add_agentturn")
    reviewer = scenes.user("reviewer", "decide_pendinginterrupt")
    Token.objects.create(user=backend, key="backend-token")
    Token.objects.create(user=reviewer, key="reviewer-token")
    second = scenes.user("second", "decide_pendinginterrupt")
    Token.objects.create(user=second, key="second-reviewer-token")
    every = ("administer", "assign", "decide", "settle", "view")
    administrator = scenes.user(
        "administrator", "view_agentturn", *(f"{one}_pendinginterrupt" for one in every)
    )
    Token.objects.create(user=administrator, key="administrator-token")
    services.create_client("billing-agent", by=None)
    AgentClient.objects.update(token_digest=client_tokens.digest_of(AGENT_TOKEN))
    ids: dict[str, str] = {}
    if name == "interrupts":  # its first example finds the call of the page before it
        play(STORIES["turns"][:2], ids)
    play(STORIES[name], ids)


def diverged() -> PendingInterrupt:
    row = scenes.decided()
    other = {"calls": [scenes.call("api_refund", {"order": "B", "amount": 1})]}
    AgentTurn.objects.filter(pk=row.turn_id).update(input=other)
    assert engine.run_turn(row.turn_id) == "needs_attention"
    return row


STAGED = {
    "901": lambda: scenes.question("Which one?").pk,
    "902": lambda: scenes.in_doubt().pk,
    "903": lambda: scenes.pending().turn_id,
    "904": lambda: diverged().turn_id,
    "905": lambda: diverged().turn_id,
    "906": lambda: diverged().pk,
    "907": lambda: scenes.pending().turn_id,
}
"""Rows in a certain state, by how the pages call them."""


def play(story: list[Message], ids: dict[str, str]) -> None:
    """Send each request of a page, and compare its answer with the one shown."""

    for request, answer in zip(story[::2], story[1::2], strict=True):
        method, address, _ = request.first.split(" ")
        body = request.body
        for named in UUID.findall(address + body):
            if named not in ids and named[-3:] in STAGED:
                ids[named] = str(STAGED[named[-3:]]())
            if named not in ids:  # one that the page did not say where it came from
                turn = engine.start_turn("api_support", "again", run=True)
                ids[named] = str(turn.interrupts.get().pk)
            address = address.replace(named, ids[named])
            body = body.replace(named, ids[named])
        response = APIClient().generic(
            method, address, body, content_type="", headers=request.headers
        )
        assert answer.first.startswith(f"HTTP/1.1 {response.status_code} ")
        assert_shown(json.loads(answer.body), response.json(), ids)
        for name, value in answer.headers.items():
            assert_shown(value, response[name], ids)
        for owed in AgentTurn.objects.filter(status="ready"):
            engine.run_turn(owed.pk)


def test_the_page_lists_every_endpoint():
    shown = dict(
        zip(rows_of("REST API"), rows_of("REST API", 1), strict=True),
    )
    served = {
        f"{method.upper()} /{prefix}{path}": url_name.format(basename=basename)
        for prefix, viewset, basename in router.registry
        for route in router.get_routes(viewset)
        for method in router.get_method_map(viewset, route.mapping)
        for path, url_name in [
            (
                re.sub(r"^\^?\{prefix\}|\$$", "", route.url)
                .replace("{lookup}", "{id}")
                .replace("{trailing_slash}", "/"),
                route.name,
            )
        ]
    }

    assert shown == served


def test_every_endpoint_has_an_example_that_is_played():
    played = set()
    for story in STORIES.values():
        for request in story[::2]:
            method, address, _ = request.first.split(" ")
            path = UUID.sub("{id}", address.partition("?")[0])
            played.add(f"{method} {path.removeprefix('/api')}")

    assert set(rows_of("REST API")) - played == set()


def test_the_page_lists_every_error():
    shown = set(
        zip(map(int, rows_of("Errors")), rows_of("Errors", 1), strict=True),
    )
    own = {
        (status, error.code)
        for error, status in errors.STATUS.items()
        if error is not exceptions.NotFound
    }
    own |= {
        (404, error.code)
        for error in exceptions.NotFound.__subclasses__()
        if error is not exceptions.AgentNotFound
    }
    frameworks = {
        (each.status_code, str(each.default_code))
        for each in (
            drf.NotAuthenticated,
            drf.AuthenticationFailed,
            drf.PermissionDenied,
            drf.NotFound,
            drf.MethodNotAllowed,
            drf.NotAcceptable,
            drf.UnsupportedMediaType,
            drf.Throttled,
            errors.BadRequest,
            errors.LengthRequired,
        )
    }

    assert shown == own | frameworks


def test_the_page_lists_every_field():
    assert set(rows_of("Fields of an interrupt")) == set(
        serializers.InterruptSerializer().fields
    )
    assert set(rows_of("Fields of a turn")) == set(serializers.TurnSerializer().fields)
    assert rows_of("Start a turn") == list(START_FIELDS)
    assert rows_of("Raise an interrupt") == list(RAISE_FIELDS)
    assert rows_of("Report the outcome") == list(OUTCOME_FIELDS)
    assert rows_of("Limits") == [*client_limits.NUMBERS, client_limits.QUEUES]
    assert rows_of("Decide many") == list(bulk.FIELDS)
    assert rows_of("Events and journal of a turn") == list(answers.STEP)
    assert rows_of("Queues") == list(answers.QUEUE)
    assert rows_of("Waiting") == [asking.WAIT, asking.WHILE]
    assert rows_of("Events of an interrupt") == list(following.PARAMETERS)


def test_the_page_names_the_limit_of_many():
    assert f"more than {bulk.MOST}." in PAGES["deciding"]


@pytest.mark.parametrize(
    ("heading", "view"),
    [("List interrupts", InterruptViewSet), ("List turns", TurnViewSet)],
)
def test_the_page_lists_every_query_parameter(heading, view):
    assert rows_of(heading) == list_parameters(view())
