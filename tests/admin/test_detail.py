"""The page of a call: what it says of every value, and how it stays small."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitl_approvals import services
from hitl_approvals.admin import arguments, dates, shapes, values
from hitl_approvals.decisions import Approve, Edit
from hitl_approvals.engine import run_turn
from hitl_approvals.models import PendingInterrupt
from tests.admin.scenes import REFUND, ask, call, refund, start, url

pytestmark = pytest.mark.django_db(transaction=True)

MILLION = 1_000_000


def page_of(client: Client, row: PendingInterrupt, page: str = "change") -> str:
    response = client.get(url(row, page))
    assert response.status_code == 200
    return str(response.content.decode())


def saved(client: Client, row: PendingInterrupt, part: str = "arguments") -> Any:
    response = client.get(f"{url(row, 'full')}?part={part}")
    assert response.status_code == 200
    return response


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("2026-12-01T17:00:00Z", "1 Dec 2026, 18:00", "17:00 UTC"),
        ("2026-12-01T23:30:00Z", "2 Dec 2026, 00:30", "1 Dec 2026, 23:30 UTC"),
        (
            "2026-12-01T17:00:05.25+05:00",
            "1 Dec 2026, 13:00:05.25",
            "12:00:05.25 UTC, written as 2026-12-01T17:00:05.25+05:00",
        ),
        ("2026-12-01T17:00:00", "1 Dec 2026, 17:00", "no time zone given"),
    ],
)
def test_a_moment_is_shown_on_the_reviewers_clock_with_utc_beside_it(
    desk: Client, text: str, words: str, hint: str
) -> None:
    with timezone.override("Europe/Berlin"):
        page = dates.moment_html(text) or ""
    row = refund(book_on="2026-12-01T17:00:00Z")

    assert "18:00</time>" in page_of(desk, row)
    assert f'<time datetime="{text}" title="{text}">{words}</time>' in page
    assert f'<span class="desk-hint">{hint}</span>' in page


def test_moments_inside_of_lists_and_objects_are_read_as_moments() -> None:
    moment = {"type": "string", "format": "date-time"}
    item = {"type": "object", "properties": {"at": moment, "note": {"type": "string"}}}
    schema = {"type": "array", "items": {"$ref": "#/$defs/Item"}}
    root = {"$defs": {"Item": item}}
    value = [{"at": "2026-12-01T17:00:00Z", "note": "2026-12-01T17:00:00Z"}]

    with timezone.override("Europe/Berlin"):
        html = values.render(value, values.Tally(), schema=schema, root=root)

    assert html.count("1 Dec 2026, 18:00</time>") == 1
    assert html.count(">2026-12-01T17:00:00Z<") == 1


@pytest.mark.parametrize(
    "text", ["soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z", "٢026-12-01"]
)
def test_what_is_no_plain_moment_is_shown_as_it_was_written(text: str) -> None:
    shown = dates.moment_html(text)

    assert shown is None or text in shown
    assert dates.day_html(text) is None


def test_units_and_bounds_of_the_schema_are_said() -> None:
    schema = {"type": "integer", "unit": "minutes", "minimum": 1, "maximum": 90}

    shape = shapes.read(schema, schema)

    assert shape.words == "whole number, exact, in minutes"
    assert shape.limits == "at least 1, at most 90"


def test_choices_are_called_what_the_schema_calls_them() -> None:
    titled = {"oneOf": [{"const": "a", "title": "Air"}, {"const": "s", "title": "Sea"}]}
    listed = {"enum": ["a", "s"], "x-labels": ["Air", "Sea"]}

    for schema in (titled, listed):
        shape = shapes.read(schema, schema)
        assert shape.choices == ("a", "s")
        assert shape.labels == ("Air", "Sea")
        assert shape.words == "one of Air, Sea"


def test_all_of_what_is_shown_in_part_can_be_saved_as_text(desk: Client) -> None:
    args = {"text": "x\u202e" * 5000, "data": {"a": list(range(300)), "n": 2**70}}
    row = call("desk_anything", args)

    page = page_of(desk, row)
    response = saved(desk, row)

    assert f'href="{url(row, "full")}?part=arguments">All in full</a>' in page
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"].startswith("attachment; filename=")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]
    assert json.loads(response.content) == args
    assert "\u202e" not in response.content.decode()


def test_secrets_are_left_out_of_the_text_too(desk: Client) -> None:
    token = REFUND["payout_token"]
    messages = [
        {"role": "user", "content": {"quoted": [f'"{token}"']}},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"name": "desk_refund", "args": {"payout_token": "tok_of_another"}},
                {"function": {"name": "elsewhere", "arguments": '{"pin": "8841"}'}},
            ],
        },
    ]
    row = PendingInterrupt.objects.get(
        turn=start(("desk_refund", REFUND), messages=messages, asked=f"use {token}")
    )

    pages = [
        page_of(desk, row),
        saved(desk, row).content.decode(),
        saved(desk, row, "conversation").content.decode(),
    ]

    for page in pages:
        for secret in (token, "tok_of_another", "8841"):
            assert secret not in page
    assert "[asks for: elsewhere]" in pages[0]
    assert json.loads(pages[1])["payout_token"] == "[hidden]"


def test_only_who_may_see_a_call_may_save_it(
    viewer: User, stranger: User, login: Any, client: Client
) -> None:
    row = refund()

    assert saved(login(viewer), row).status_code == 200
    assert login(stranger).get(url(row, "full")).status_code in (403, 404)
    assert client.get(url(row, "full")).status_code == 302
    assert login(viewer).post(url(row, "full")).status_code == 405
    for part in ("answer", "question", "decided", "../../etc/passwd"):
        response = login(viewer).get(url(row, "full"), {"part": part})
        assert response.status_code == 404


def test_an_edit_that_was_decided_can_be_saved_as_well(desk: Client) -> None:
    row = call("desk_anything", {"text": "a"})
    services.decide(row.pk, Edit({"text": "b" * 9000}), by=None, via="python")

    assert json.loads(saved(desk, row, "decided").content) == {"text": "b" * 9000}


def test_a_long_question_can_be_read_in_full(desk: Client) -> None:
    row = ask({"list": list(range(50))})

    assert "The question in full" in page_of(desk, row)
    assert json.loads(saved(desk, row, "question").content) == {"list": [*range(50)]}


def test_the_conversation_shows_roles_calls_and_results_and_is_bounded(
    desk: Client,
) -> None:
    calls = [{"id": "c", "name": "desk_refund", "args": {"order_id": "A-7"}}]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"message {number}"} for number in range(70)
    ]
    messages += [
        {"role": "assistant", "content": "I look", "tool_calls": calls},
        {"role": "tool", "name": "lookup", "content": {"paid": "240.00"}},
    ]
    row = call("desk_anything", {}, messages=messages)

    page = page_of(desk, row)

    assert (
        "[asks for: desk_refund with {&quot;order_id&quot;: &quot;A-7&quot;}]" in page
    )
    assert "tool result" in page
    assert "<code>lookup</code>" in page
    assert "Show the 44 messages before these" in page
    assert "message 21<" not in page
    assert "message 22<" in page
    assert "22 messages before these are not shown" in page
    assert len(json.loads(saved(desk, row, "conversation").content)["messages"]) == 72


def test_an_original_and_its_fork_lead_to_each_other(boss: User, login: Any) -> None:
    row = refund()
    fork = services.fork(row.turn_id, at=row.pk, by=boss)
    copy = PendingInterrupt.objects.get(turn=fork)
    client = login(boss)

    assert f'href="{url(copy)}"' in page_of(client, row)
    assert f'href="{url(row)}"' in page_of(client, copy)


def test_steps_that_ran_without_approval_are_told(desk: Client) -> None:
    turn = start(*[("desk_look", {"what": "a"})] * 23, ("desk_refund", REFUND))
    row = PendingInterrupt.objects.get(turn=turn)

    page = page_of(desk, row)

    assert page.count("<code>desk_look</code></dt><dd>ran at <time") == 20
    assert "3 steps before these stand on the page of the turn." in page


# As JSON text; the column holds an escape of six characters for what cannot be seen.
HUGE: dict[str, dict[str, Any]] = {
    "one text of 3 MB": {"text": "x" * (3 * MILLION)},
    "1 MB of what cannot be seen": {"text": "\u202ea\u200b" * (MILLION // 7)},
    "1 MB of what needs escapes": {"data": ["<'\"&>" * (MILLION // 5)]},
    "1 MB of other letters": {"text": "東京" * (MILLION // 6)},
    "5,000 keys": {"data": {f"key {number}": number for number in range(5000)}},
    "4,000 texts": {"data": ["\u202e" * 100] * 4000},
    "lists in lists": {"data": [[[["x" * 15] * 20] * 20] * 20] * 8},
}
"""All but the keys hold a megabyte or more, several times what a page may have."""


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for number in range(levels):
        value = [value] if number % 2 else {"in": value}
    return value


@pytest.mark.parametrize("name", [*HUGE, "100 levels"])
def test_a_huge_value_makes_a_small_page(
    desk: Client, settings: Any, name: str
) -> None:
    settings.HITL_APPROVALS = {
        **settings.HITL_APPROVALS,
        "MAX_PAYLOAD_BYTES": 40 * MILLION,
        "MAX_DEPTH": 120,
    }
    args = HUGE.get(name, {"data": deep(100)})
    row = call("desk_anything", args)

    page = page_of(desk, row)

    assert len(page.encode()) < MILLION // 4
    assert "shown in part" in page
    assert json.loads(saved(desk, row).content) == args


def test_ten_thousand_arguments_are_counted() -> None:
    args = {f"argument {number}": number for number in range(10_000)}
    table = arguments.table(
        arguments.CallArguments(
            given=args,
            order=list(args),
            schema={},
            secret=frozenset({"argument 9999"}),
            fixed=frozenset(),
            intact=True,
            digest="",
        )
    )

    assert len(table.rows) == arguments.MOST_ROWS
    assert table.in_part == 9900
    assert table.summary == "10000 arguments, 9900 not shown, 1 hidden, secret"


WHEN = "The turn goes on when each of them is decided."


def test_what_a_turn_waits_for_is_said_while_it_waits(desk: Client) -> None:
    turn = start(*[("desk_hurry", {"service": name}) for name in "ab"])
    first, second = PendingInterrupt.objects.filter(turn=turn).order_by("position")

    services.decide(first.pk, Approve(), by=None, via="python")
    waiting = [page_of(desk, row) for row in (first, second)]
    services.decide(second.pk, Approve(), by=None, via="python")
    due = page_of(desk, first)
    run_turn(turn.pk)
    over = [page_of(desk, row) for row in (first, second)]

    assert [WHEN in page for page in waiting] == [True, True]
    assert [WHEN in page for page in (due, *over)] == [False, False, False]
    assert all("The other calls of this turn" in page for page in over)


def test_a_turn_that_was_cancelled_is_not_said_to_go_on(desk: Client) -> None:
    turn = start(*[("desk_hurry", {"service": name}) for name in "ab"])
    services.cancel(turn.pk, by=None, via="python")

    for row in PendingInterrupt.objects.filter(turn=turn):
        assert WHEN not in page_of(desk, row)
