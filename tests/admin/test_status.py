from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from hitl_approvals import services, start_turn
from hitl_approvals.decisions import Approve
from hitl_approvals.figures.status import status
from hitl_approvals.models import AgentTurn, DbNow, ReviewQueue, SweepMark
from tests.admin.scenes import LIST, call, charge_in_doubt, refund

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.breaks_invariants,  # times are moved
]
TAG = Template("{% load hitl_approvals %}[{% hitl_status %}]")


def rendered(user: Any) -> str:
    request = RequestFactory().get("/admin/")
    request.user = user
    return TAG.render(Context({"request": request}))


def test_it_says_what_is_open_owed_in_doubt_and_stuck(
    reviewer: User, boss: User
) -> None:
    refund()
    row = refund()
    services.decide(row.pk, Approve(), by=None, via="python")
    AgentTurn.objects.filter(pk=row.turn_id).update(
        next_run_at=DbNow() - timedelta(minutes=5)
    )
    charge_in_doubt()
    stuck = start_turn("desk_agent", "x", execute_options={"calls": []})
    AgentTurn.objects.filter(pk=stuck.pk).update(status="needs_attention")
    SweepMark.objects.all().delete()
    SweepMark.objects.create(name="sweeper", swept_at=DbNow() - timedelta(seconds=3))

    found, all_of_it = status(reviewer), status(boss)

    assert found is not None
    assert all_of_it is not None
    assert (found.open, found.in_doubt, found.owed) == (2, 1, 1)
    assert found.owed_for is not None
    assert timedelta(minutes=5) <= found.owed_for < timedelta(minutes=7)
    assert found.swept is not None
    assert timedelta(seconds=2) <= found.swept < timedelta(minutes=1)
    assert not found.swept_late
    assert [(one.slug, one.count) for one in found.queues] == [("default", 2)]
    # Whose turns one may not see does not show in a count of them either.
    assert (found.attention, all_of_it.attention) == (0, 1)


def test_each_person_sees_the_own_queues(
    reviewer: User, viewer: User, other_reviewer: User, stranger: User
) -> None:
    ReviewQueue.objects.create(slug="vault", title="The vault").users.add(
        other_reviewer
    )
    call("desk_careful", {"what": "x"})
    refund()

    pages = [rendered(one) for one in (reviewer, viewer, other_reviewer)]

    for page in pages[:2]:
        assert "1 open, the oldest for" in page
        assert "vault" not in page
    assert "2 open, the oldest for" in pages[2]
    assert 'href="/admin/hitl_approvals/pendinginterrupt/?queue=vault"' in pages[2]
    assert "The vault" in pages[2]
    nothing = [rendered(stranger), rendered(AnonymousUser()), TAG.render(Context({}))]
    assert [page.split() for page in nothing] == [["[", "]"]] * 3


def test_a_sweeper_that_stays_away_is_said_loudly(reviewer: User) -> None:
    never = rendered(reviewer)
    SweepMark.objects.create(name="sweeper", swept_at=DbNow() - timedelta(hours=2))
    late = rendered(reviewer)
    SweepMark.objects.update(swept_at=DbNow())

    assert "no sweeper has ever come by" in never
    assert 'class="desk-status-urgent">a sweeper came by 2 h ago' in late
    assert "desk-status-urgent" not in rendered(reviewer)
    assert "Nothing is open." in late


def test_a_queues_title_is_text(boss: User) -> None:
    ReviewQueue.objects.filter(pk="default").update(title="<b>bold</b>")
    refund()

    page = rendered(boss)

    assert "<b>" not in page
    assert "&lt;b&gt;bold" in page


def test_the_line_is_two_queries_beside_those_of_the_rights(boss: User) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            status(boss)
        return len(found)

    empty = queries()
    refund()
    for number in range(25):
        ReviewQueue.objects.create(slug=f"q-{number}")

    assert queries() == empty == 2
    found = status(boss)
    assert found is not None
    assert found.more_queues


def test_it_stands_on_the_desk_and_on_the_page_of_numbers(
    desk: Client, viewer: User, login: Callable[..., Client]
) -> None:
    refund()

    for client in (desk, login(viewer)):
        for address in (LIST, f"{LIST}numbers/"):
            assert "1 open, the oldest for" in client.get(address).content.decode()
    assert f'href="{LIST}numbers/"' in desk.get(LIST).content.decode()


def test_the_index_of_the_documentation_shows_it(
    desk: Client,
    viewer: User,
    other_reviewer: User,
    login: Callable[..., Client],
    tmp_path: Path,
    settings: Any,
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/operate.md").read_text()
    (block,) = re.findall(
        r"^```html\+django\n(.*?)^```$", page, re.DOTALL | re.MULTILINE
    )
    (tmp_path / "admin").mkdir()
    (tmp_path / "admin" / "index.html").write_text(block)
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    refund()
    stranger = User.objects.create_user("stranger", is_staff=True)

    for client in (desk, login(viewer)):
        html = client.get("/admin/").content.decode()
        assert "1 open, the oldest for" in html
        assert "hitl_approvals/desk.css" in html
    unseen = login(stranger).get("/admin/").content.decode()
    assert "desk-status" not in unseen
