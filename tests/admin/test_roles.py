from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from hitl_approvals.models import PendingInterrupt, ReviewQueue
from tests.admin.html_forms import as_sent
from tests.admin.scenes import LIST, charge_in_doubt, refund, url

pytestmark = pytest.mark.django_db(transaction=True)


def guards(row: PendingInterrupt) -> dict[str, str]:
    return {"revision": str(row.revision), "key": "a-key"}


def approve(client: Client, row: PendingInterrupt) -> Any:
    return client.post(url(row, "decide"), {**guards(row), "decision": "approve"})


def test_a_viewer_sees_no_panel_but_which_right_is_missing(
    viewer: User, login: Callable[..., Client]
) -> None:
    row = refund()

    page = login(viewer).get(url(row)).content.decode()

    assert "You need the right “Can decide interrupts” to decide." in page
    assert "Approve and run" not in page
    assert 'id="decide"' not in page


def test_a_viewer_who_posts_anyway_is_told_the_missing_right(
    viewer: User, login: Callable[..., Client]
) -> None:
    row = refund()
    client = login(viewer)

    answers = [
        approve(client, row),
        client.post(url(row, "edit"), {**guards(row), "step": "approve", "args": "{}"}),
        client.get(url(row, "edit")),
    ]

    for response in answers:
        assert response.status_code == 403
        assert "Can decide interrupts" in response.content.decode()
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_stranger_finds_neither_list_nor_row(
    stranger: User, login: Callable[..., Client]
) -> None:
    row = refund()
    client = login(stranger)

    assert client.get(LIST).status_code == 403
    assert "Can view interrupt" in client.get(LIST).content.decode()
    assert client.get(url(row)).status_code == 404
    assert approve(client, row).status_code == 404
    assert client.get(url(row, "edit")).status_code == 404
    row.refresh_from_db()
    assert row.status == "pending"


def test_nobody_who_is_not_staff_gets_in(login: Callable[..., Client]) -> None:
    row = refund()
    client = login(User.objects.create_user("customer"))

    assert client.get(url(row)).status_code == 302
    assert approve(client, row).status_code == 403
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_requester_may_look_and_not_decide(
    reviewer: User, login: Callable[..., Client]
) -> None:
    row = refund(by=reviewer)
    client = login(reviewer)

    page = client.get(url(row)).content.decode()
    response = approve(client, row)

    assert "You started this turn; somebody else has to decide its calls." in page
    assert response.status_code == 403
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_requester_decides_where_the_queue_says_so(
    reviewer: User, login: Callable[..., Client]
) -> None:
    ReviewQueue.objects.filter(pk="default").update(requester_may_decide=True)
    row = refund(by=reviewer)

    assert approve(login(reviewer), row).status_code == 302


def test_a_queue_with_members_is_invisible_to_others(
    reviewer: User, other_reviewer: User, login: Callable[..., Client]
) -> None:
    row = refund()
    group = Group.objects.create(name="refunds")
    other_reviewer.groups.add(group)
    ReviewQueue.objects.get(pk="default").groups.add(group)

    outside, inside = login(reviewer), login(other_reviewer)

    assert outside.get(url(row)).status_code == 404
    assert "desk_refund</a>" not in outside.get(LIST).content.decode()
    assert "desk_refund</a>" in inside.get(LIST).content.decode()
    assert approve(inside, row).status_code == 302


def test_a_superuser_decides(boss: User, login: Callable[..., Client]) -> None:
    assert approve(login(boss), refund()).status_code == 302


def test_settling_is_a_right_of_its_own(
    reviewer: User, login: Callable[..., Client]
) -> None:
    row = charge_in_doubt()
    client = login(reviewer)

    page = client.get(url(row)).content.decode()
    response = client.post(
        url(row, "settle"), {**guards(row), "answer": "give_up", "note": "tried"}
    )

    assert "Can settle calls in doubt" in page
    assert "Give up on this call" not in page
    assert response.status_code == 403
    row.refresh_from_db()
    assert row.status == "in_doubt"


def test_nothing_is_added_deleted_or_changed_inline(
    boss: User, login: Callable[..., Client]
) -> None:
    row = refund()
    client = login(boss)

    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert PendingInterrupt.objects.filter(pk=row.pk).exists()


def test_what_was_typed_survives_an_expired_login(reviewer: User) -> None:
    row = refund()
    typed = "Three lines\nof careful\n<b>reasons</b>"

    response = Client().post(
        url(row, "decide"),
        as_sent({**guards(row), "decision": "reject", "reason": typed}),
    )

    page = response.content.decode()
    assert response.status_code == 403
    assert "You were logged out" in page
    assert "of careful\n&lt;b&gt;reasons&lt;/b&gt;" in page.replace("\r", "")
    assert urlencode({"next": url(row)}) in page
    assert "desk_refund" not in page
    row.refresh_from_db()
    assert row.status == "pending"


@pytest.mark.parametrize(
    "name", ["not-a-uuid", "7", "01a2289a-ab15-7189-a3dd-ed3ff228f90c"]
)
def test_what_is_not_there_is_not_found(desk: Client, name: str) -> None:
    assert desk.get(f"{LIST}{name}/change/").status_code == 404
