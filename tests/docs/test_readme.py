"""The README, followed word for word in a new site."""

from __future__ import annotations

from tests.docs.blocks import README, Block, blocks_of
from tests.docs.project import Site

REVIEW = """
from django.contrib.auth.models import Permission, User
from django.test import Client
from hitl_approvals import run_turn
from hitl_approvals.models import PendingInterrupt

assert run_turn(turn.pk) == "suspended"
assert Order.objects.get(pk=7).refunded == 0

rita = User.objects.create_user("rita")
rita.user_permissions.add(Permission.objects.get(codename="decide_pendinginterrupt"))
client = Client(SERVER_NAME="localhost")
client.force_login(rita)
(waiting,) = client.get("/api/interrupts/").json()["results"]
assert waiting["args"] == {"order_id": 7, "amount": "120"}
decided = client.post(
    f"/api/interrupts/{waiting['id']}/approve/", {}, content_type="application/json"
)
assert decided.status_code == 200, decided.content

assert [run_turn(turn.pk), run_turn(turn.pk)] == ["completed", "dropped"]
assert Order.objects.get(pk=7).refunded == 120
"""


def test_readme_installs_the_app_and_its_refund_runs_once(site: Site) -> None:
    blocks = blocks_of(README)

    site.execute([*blocks, Block("after the README", 1, "python", REVIEW)])


def test_readme_leaves_nothing_for_the_system_checks_to_warn_of(site: Site) -> None:
    printed = site.manage("check", "--database", "default", "--fail-level", "WARNING")

    assert "no issues" in printed
