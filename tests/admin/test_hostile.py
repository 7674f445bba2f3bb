from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals import services
from hitl_approvals.admin.text import Redactor, plain, show
from hitl_approvals.admin.values import Tally, json_text, render
from hitl_approvals.decisions import Approve, Reject
from hitl_approvals.engine import run_turn
from hitl_approvals.models import PendingInterrupt
from tests.admin.html_forms import form_to
from tests.admin.scenes import LIST, ask, call, edit, refund, start, url

pytestmark = pytest.mark.django_db(transaction=True)

NASTY = (
    "</textarea><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\"'><a href='javascript:alert(3)'>{{ 7|add:7 }}{% debug %}</a>"
    "\u202e\u200b\x00\x1b]0;"
)


class Tags(HTMLParser):
    """Every tag of a page with its attributes, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def assert_harmless(page: str) -> None:
    """No markup, no inline script or style, no invisible or turning character."""
    assert "<script>" not in page
    assert "<img src=x" not in page
    assert "<a href='javascript" not in page
    tags = Tags()
    tags.feed(page)
    for tag, attributes in tags.found:
        assert tag not in ("style", "iframe", "object", "embed", "base")
        assert tag != "script" or attributes.get("src", "").startswith("/")
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag
            if name in ("href", "src", "action", "formaction"):
                assert value.startswith(("/", "?", "#")), value
    for char in "\u202e\u200b\x00\x1b":
        assert char not in page


def nasty_rows() -> list[PendingInterrupt]:
    args = {"text": NASTY, "maybe": NASTY, "data": {NASTY: [NASTY, {NASTY: NASTY}]}}
    messages = [
        {"role": NASTY, "name": NASTY, "content": NASTY},
        {
            "role": "assistant",
            "content": [{NASTY: NASTY}],
            "tool_calls": [{"name": NASTY}],
        },
        NASTY,
    ]
    start(
        ("desk_anything", args),
        ("desk_anything", {"text": "x"}),
        asked=NASTY.replace("\x00", ""),
        messages=messages,
        reason=NASTY,
    )
    first = PendingInterrupt.objects.order_by("position").first()
    assert first is not None
    question = ask(
        {NASTY: NASTY},
        {
            "type": "object",
            "title": NASTY,
            "properties": {
                NASTY: {"type": "string", "description": NASTY, "default": NASTY},
                "choice": {"enum": [NASTY, 1], "description": NASTY},
            },
        },
    )
    return [first, question]


def test_nothing_that_an_agent_wrote_is_markup_or_invisible(desk: Client) -> None:
    for row in nasty_rows():
        page = desk.get(url(row)).content.decode()

        assert_harmless(page)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "U+202E" in page
        assert "U+0000" in page
    assert_harmless(desk.get(LIST).content.decode())
    assert_harmless(desk.get(f"{LIST}?view=all").content.decode())


def test_the_edit_pages_are_as_safe_as_the_others(desk: Client) -> None:
    row, _question = nasty_rows()

    one = desk.get(url(row, "edit"))
    two = edit(desk, row, data='"changed"')
    fault = edit(desk, row, whole="</textarea><script>alert(1)</script>")

    for response in (one, two, fault):
        assert_harmless(response.content.decode())


def test_what_reviewers_and_requesters_are_called_is_text_too(
    desk: Client, person: Any
) -> None:
    bad = person("<script>alert(1)</script>", "decide_pendinginterrupt")
    row = refund(by=bad)
    other = refund()
    form = form_to(desk.get(url(other)), "/decide/")
    services.decide(other.pk, Reject(NASTY.replace("\x00", "")), by=bad, via="admin")

    pages = [
        desk.get(url(row)),
        desk.get(LIST),
        desk.get(f"{LIST}?view=decided"),
        desk.get(url(other)),
        desk.post(form.action, {**form.fields, "decision": "reject", "reason": NASTY}),
    ]

    for response in pages:
        assert_harmless(response.content.decode())


def test_turns_and_events_are_as_safe(boss: User, login: Any) -> None:
    row, _ = nasty_rows()
    services.decide(row.pk, Reject(NASTY.replace("\x00", "")), by=boss, via="admin")
    services.cancel(
        row.turn_id, by=boss, via="admin", reason="<script>alert(1)</script>"
    )
    client = login(boss)

    base = "/admin/hitl_approvals/"
    pages = [
        client.get(f"{base}agentturn/?view=all"),
        client.get(url(row.turn, "change", "agentturn")),
        client.get(f"{base}interruptevent/"),
        *(client.get(f"{base}interruptevent/{pk}/change/") for pk in row_events(row)),
    ]

    for response in pages:
        assert response.status_code == 200
        assert_harmless(response.content.decode())


def row_events(row: PendingInterrupt) -> list[Any]:
    from hitl_approvals.models import InterruptEvent

    return list(
        InterruptEvent.objects.filter(turn_id=row.turn_id).values_list("pk", flat=True)
    )


def test_secrets_are_nowhere_on_any_page(desk: Client, boss: User, login: Any) -> None:
    token = "tok_8d7e6f5a4b3c"
    start(
        (
            "desk_refund",
            {
                "order_id": "A",
                "amount": "1",
                "currency": "EUR",
                "items": [],
                "payout_token": token,
            },
        ),
        asked=f"my token is {token}",
        messages=[{"role": "user", "content": f"use {token}!"}],
        reason=f"the token {token} is valid",
    )
    row = PendingInterrupt.objects.get()
    client = login(boss)
    before = [client.get(url(row)), client.get(LIST), client.get(url(row, "edit"))]
    services.decide(row.pk, Approve(), by=None, via="python")
    run_turn(row.turn_id)
    after = [
        client.get(url(row)),
        client.get(f"{LIST}?view=all"),
        client.get(url(row.turn, "change", "agentturn")),
    ]

    for response in before + after:
        assert response.status_code == 200
        assert token not in response.content.decode()
    page = before[0].content.decode()
    assert "secret, 16 characters" in page
    assert "[hidden]" in page


def test_numbers_are_exact_and_null_empty_and_default_look_different(
    desk: Client,
) -> None:
    row = call(
        "desk_anything",
        {"whole": 2512292042121000001, "maybe": None, "text": "", "data": 1.0},
    )

    page = desk.get(url(row)).content.decode()

    assert '<bdi class="desk-val">2512292042121000001</bdi>' in page
    assert '<bdi class="desk-val">1.0</bdi>' in page
    assert "no value (null)" in page
    assert "empty text" in page
    assert "default; the agent left it out" in page
    assert "7 arguments, all shown in full" in page


def test_what_is_shown_in_part_is_counted_and_promised(desk: Client) -> None:
    row = call("desk_anything", {"text": "x" * 5000, "data": list(range(100))})

    page = desk.get(url(row)).content.decode()

    assert "…1000 more characters" in page
    assert "and 80 more, under “As JSON”" in page
    assert "2 shown in part" in page
    assert "also those shown in part" in page
    assert "x" * 5000 in page


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain <b>", "plain &lt;b&gt;"),
        ("a\u202eb", 'a<span class="desk-code">U+202E</span>b'),
        ("\u200b" * 12, '<span class="desk-code">U+200B ×12</span>'),
        ("a\u00a0b", 'a<span class="desk-code">U+00A0</span>b'),
        ("\U000e0041", '<span class="desk-code">U+E0041</span>'),
        ("\ud800", '<span class="desk-code">U+D800</span>'),
        ("\r", '<span class="desk-code">U+000D</span>'),
        (
            "\u3164x\ufe00",
            '<span class="desk-code">U+3164</span>x<span class="desk-code">U+FE00</span>',
        ),
        ("❤️ 👩‍🚀 1️⃣", "❤️ 👩‍🚀 1️⃣"),
        ("a\ufe0fb", 'a<span class="desk-code">U+FE0F</span>b'),
        ("été 東京 שלום", "été 東京 שלום"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_its_code(text: str, html: str) -> None:
    assert show(text).html == html


def test_a_line_break_cannot_make_a_row_of_its_own() -> None:
    assert show("a\nb", one_line=True).html == 'a<span class="desk-code">↵</span>b'
    assert plain("a\nb\u202e") == "a b[U+202E]"


def test_a_text_inside_a_list_cannot_pass_for_another_value() -> None:
    html = render(["5", 5, "true", None, "", " x", "x"], Tally())

    assert "“5”" in html
    assert '<bdi class="desk-val">5</bdi>' in html
    assert "“true”" in html
    assert "“ x”" in html
    assert '<bdi class="desk-val">x</bdi>' in html


def test_json_on_a_page_reads_back_as_the_same_value() -> None:
    import json

    value = {"a\u202e": ["\x00\ud800\U0001f600", "é\u00a0", 2**70, 1.0, None]}
    text = json_text(value)

    assert json.loads(text) == value
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert "é" in text


def test_short_secrets_do_not_tear_holes_into_other_words() -> None:
    redactor = Redactor(["abc", "secret", "secret-longer"])

    assert redactor.clean("abc secret-longer secret") == "abc [hidden] [hidden]"
