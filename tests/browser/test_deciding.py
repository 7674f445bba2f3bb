"""Every flow of the desk in a real browser against a real server, with scripts and without."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from hitl_approvals import services
from hitl_approvals.decisions import Approve
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.testing import run_owed
from tests.admin.scenes import (
    REFUND,
    ask,
    call,
    charge_in_doubt,
    key_of,
    refund,
    url,
)
from tests.browser.conftest import OpenAs

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCRIPTS = pytest.mark.parametrize(
    "scripts", [True, False], ids=["scripts", "no scripts"]
)


def now(row: PendingInterrupt) -> PendingInterrupt:
    row.refresh_from_db()
    return row


@SCRIPTS
def test_approve(open_as: OpenAs, reviewer: User, scripts: bool) -> None:
    row = refund()
    page = open_as(reviewer, java_script_enabled=scripts)
    page.click("a.desk-tool")
    page.click(".desk-panel button[value=approve]")
    expect(page.locator(".desk-note").first).to_contain_text("You approved desk_refund")

    assert now(row).decision == "approve"
    run_owed()
    assert now(row).status == "resolved"


@SCRIPTS
def test_edit_is_confirmed(open_as: OpenAs, reviewer: User, scripts: bool) -> None:
    row = refund()
    page = open_as(reviewer, url(row), java_script_enabled=scripts)
    page.click("text=Edit, then approve…")
    page.fill(f"#id_{key_of(row, 'amount')}", "120.00")
    page.click(".desk-foot button[value=review]")
    expect(page.locator(".desk-diff ins")).to_have_text("120.00")
    page.click("button:has-text('Approve the edit and run')")
    page.wait_for_url("**/?done=*")

    assert (now(row).decision, '"120.00"' in str(row.decision_args_text)) == (
        "edit",
        True,
    )


BROKEN = """cells => cells.flatMap(cell => {
    const found = [];
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (const word of node.data.matchAll(/\\S+/g)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            if (range.getClientRects().length > 1) found.push(word[0]);
        }
    }
    if (cell.scrollWidth > cell.clientWidth) found.push(`too wide: ${cell.innerText}`);
    return found;
})"""
"""The words of cells that are broken between two letters, and cells too small."""


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", [1440, 1280, 1024, 800, 390, 320])
def test_no_word_of_ours_is_broken_where_an_edit_is_confirmed(
    open_as: OpenAs, reviewer: User, width: int, language: str
) -> None:
    given = {**REFUND, "book_on": None}
    del given["note"]
    row = call("desk_refund", given)
    size = {"width": width, "height": 900}
    page = open_as(reviewer, url(row, "edit"), viewport=size, locale=language)
    page.fill(f"#id_{key_of(row, 'amount')}", "120.00")
    page.fill(f"#id_{key_of(row, 'note')}", "x" * 190)
    page.fill(f"#id_{key_of(row, 'book_on')}", "2026-12-02T09:30")
    page.uncheck(f"input[name='{key_of(row, 'book_on__null')}']")
    items = key_of(row, "items")
    page.click(f"button[name=drop][value='{items}:1']")
    expect(page.locator(f"#id_{items}_1_p1")).to_have_count(0)
    page.click(".desk-foot button[value=review]")
    page.wait_for_selector(".desk-diff ins")

    # Without room for columns the head of the table is for screen readers only.
    heads = ".desk-diff thead th, " if width >= 1280 else ""
    cells = page.locator(f"{heads}.desk-diff .desk-difference")
    values = page.locator(".desk-diff td[data-label]")

    said = {"en": {"added", "left out"}, "de": {"hinzugefügt", "weggelassen"}}
    assert said[language] <= set(cells.all_inner_texts())
    assert cells.evaluate_all(BROKEN) == []
    assert "x" * 190 in values.evaluate_all(BROKEN)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@SCRIPTS
def test_reject_needs_a_reason(open_as: OpenAs, reviewer: User, scripts: bool) -> None:
    row = refund()
    page = open_as(reviewer, url(row), java_script_enabled=scripts)
    page.click(".desk-panel button[value=reject]")
    expect(page.locator("#faults")).to_contain_text("Nothing was recorded.")
    expect(page.locator("#faults")).to_be_focused() if scripts else None
    page.fill("#reason", "The order was never paid.")
    page.click(".desk-panel button[value=reject]")
    page.wait_for_url("**/?done=*")

    assert (now(row).decision, row.reason) == ("reject", "The order was never paid.")


@SCRIPTS
def test_answer_a_question(open_as: OpenAs, reviewer: User, scripts: bool) -> None:
    row = ask("Which of the two orders?", {"type": "string", "minLength": 3})
    page = open_as(reviewer, url(row), java_script_enabled=scripts)
    field = page.locator(
        "#decide textarea:not(#reason), #decide input[type=text]"
    ).first
    field.fill("no")
    page.click("button[value=respond]")
    expect(page.locator("#faults")).to_contain_text("All you typed is still here.")
    assert field.input_value() == "no"
    field.fill("The second one")
    page.click("button[value=respond]")
    page.wait_for_url("**/?done=*")

    assert now(row).decision_value == "The second one"


@SCRIPTS
def test_settle_a_doubt(open_as: OpenAs, settler: User, scripts: bool) -> None:
    row = charge_in_doubt()
    page = open_as(settler, url(row), java_script_enabled=scripts)
    road = page.locator(".desk-road", has_text="It happened")
    road.locator("textarea[name=result]").fill('{"charge": "ch_1"}')
    road.locator("text=Read it as JSON").click()
    road.locator("button").click()
    expect(page.locator("#faults")).to_contain_text("Nothing was recorded.")
    assert road.locator("textarea[name=result]").input_value() == '{"charge": "ch_1"}'
    road.locator("textarea[name=note]").fill("The bank's log shows the key.")
    with page.expect_navigation():
        road.locator("button").click()

    assert now(row).status == "resolved"


@SCRIPTS
def test_decide_several(open_as: OpenAs, reviewer: User, scripts: bool) -> None:
    rows = [refund(order_id=f"A-{number}") for number in range(3)]
    page = open_as(reviewer, java_script_enabled=scripts)
    for row in rows[:2]:
        page.check(f"input[name=chosen][value='{row.pk}']")
    page.click("#bulk button[value=approve]")
    expect(page.locator(".desk-batch > li")).to_have_count(2)
    assert {now(row).status for row in rows} == {"pending"}
    page.click("button:has-text('Approve the ticked calls')")
    expect(page.locator("h1")).to_contain_text("2 calls approved")

    assert [now(row).status for row in rows] == ["decided", "decided", "pending"]


@SCRIPTS
def test_claim_keeps_others_away_and_release_lets_them(
    open_as: OpenAs, reviewer: User, other_reviewer: User, scripts: bool
) -> None:
    row = refund()
    page = open_as(reviewer, url(row), java_script_enabled=scripts)
    other = open_as(other_reviewer, url(row), java_script_enabled=scripts)
    page.locator("button[value=claim]").first.click()
    expect(page.locator(".desk-meta")).to_contain_text("You hold it until")
    other.locator(".desk-panel button[value=approve]").click()
    expect(other.locator(".desk")).to_contain_text("tom.weber")
    assert now(row).status == "pending"
    page.locator("button[value=release]").first.click()
    expect(page.locator("button[value=claim]").first).to_be_visible()
    other.goto(url(row))
    other.locator(".desk-panel button[value=approve]").click()
    other.wait_for_url("**/?done=*")

    assert now(row).decided_by == other_reviewer


def test_retry_a_stuck_turn(open_as: OpenAs, boss: User) -> None:
    turn = refund().turn
    assert turn is not None
    services.decide(PendingInterrupt.objects.get().pk, Approve(), by=None, via="python")
    AgentTurn.objects.update(status="needs_attention", last_error="it broke")
    page = open_as(boss, url(turn, model="agentturn"))
    with page.expect_navigation():
        page.locator("button:has-text('Try again')").first.click()

    assert AgentTurn.objects.get(pk=turn.pk).status != "needs_attention"


def test_a_viewer_sees_and_has_no_button(open_as: OpenAs, viewer: User) -> None:
    row = refund()
    page = open_as(viewer, url(row))

    expect(page.locator("h1")).to_contain_text("desk_refund")
    expect(page.locator(".desk-note")).to_contain_text("Can decide interrupts")
    assert page.locator("button[name=decision]").count() == 0
    page.goto(url(row, "edit"))
    assert page.locator("button[value=review]").count() == 0


def test_a_stranger_sees_nothing(open_as: OpenAs, stranger: User) -> None:
    row = refund()
    page = open_as(stranger)

    expect(page.locator("h1")).to_contain_text("You may not do this")
    answer = page.goto(url(row))
    assert answer is not None
    assert answer.status == 404
    assert "desk_refund" not in page.content()


def test_nobody_is_sent_to_the_log_in(open_as: OpenAs) -> None:
    page = open_as(None, url(refund()))

    expect(page.locator("#id_username")).to_be_visible()
