"""`manage.py hitl_client`: a token alone on its line, once; the rest beside it."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from hitl_approvals import services
from hitl_approvals.models import AgentClient, ReviewQueue

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("hitl_client", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_a_client_is_made_and_its_token_printed_alone():
    ReviewQueue.objects.create(slug="refunds")

    out, err = run("create", "billing", "--queue", "refunds", "--limits", '{"open": 5}')

    client = AgentClient.objects.get()
    assert services.authenticate(out.removesuffix("\n")) == client
    assert (client.queue_id, client.limits) == ("refunds", {"open": 5})
    assert "billing" in err
    assert out.strip() not in err


def test_a_token_is_renewed_at_once_or_with_an_overlap():
    first = run("create", "billing")[0].strip()

    second = run("rotate", "billing", "--keep-old-for", "3600")[0].strip()
    assert services.authenticate(first) == services.authenticate(second)
    third, said = run("rotate", "billing")

    assert "refused from now on" in said
    let_in = [services.authenticate(each) for each in (first, second, third.strip())]
    assert let_in == [None, None, AgentClient.objects.get()]


def test_a_client_is_revoked_and_everything_is_listed():
    token = run("create", "billing")[0].strip()
    run("create", "shipping", "--limits", '{"waiting": null}')
    services.ensure_client("inside")
    services.ensure_client("x\x1b[2J\nbilling")

    out, err = run("revoke", "billing")

    assert (out, "billing" in err) == ("", True)
    assert services.authenticate(token) is None
    lines = run("list")[0].splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "billing",
        "inside",
        "shipping",
        lines[3].split("  ")[0],
    ]
    assert "\x1b" not in lines[3]
    assert len(lines) == 4
    assert "revoked 20" in lines[0]
    assert "no token" in lines[1]
    assert lines[2].endswith("active")
    told = [json.loads(line) for line in run("list", "--json")[0].splitlines()]
    assert told[0]["revoked_at"].endswith("Z")
    assert (told[1]["token"], told[2]["limits"]) == (None, {"waiting": None})
    assert told[2]["token"].startswith("hac_")
    assert token not in json.dumps(told)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["create"],
        ["create", " "],
        ["create", "other", "--queue", "nowhere"],
        ["create", "other", "--limits", "[]"],
        ["create", "other", "--limits", "{"],
        ["create", "other", "--limits", '{"open": 0}'],
        ["create", "billing"],
        ["rotate", "nobody"],
        ["rotate", "\udcff"],
        ["rotate", "billing", "--keep-old-for", "soon"],
        ["rotate", "billing", "--keep-old-for", "1e99"],
        ["rotate", "billing", "--keep-old-for", "0"],
        ["revoke", "nobody"],
        ["delete", "billing"],
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(arguments):
    token = run("create", "billing")[0].strip()

    with pytest.raises(CommandError):
        run(*arguments)

    assert services.authenticate(token) == AgentClient.objects.get()
