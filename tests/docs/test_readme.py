"""The README, followed word for word in a new site."""

from __future__ import annotations

from tests.docs.blocks import README, Block, blocks_of
from tests.docs.project import Site

REVIEW = """
from hitl_approvals import Approve, run_turn, services
from hitl_approvals.models import PendingInterrupt

assert run_turn(turn.pk) == "suspended"
assert Order.objects.get(pk=7).refunded == 0
(waiting,) = PendingInterrupt.objects.all()
services.decide(waiting.pk, Approve(), by=None, via="test")
assert [run_turn(turn.pk), run_turn(turn.pk)] == ["completed", "dropped"]
assert Order.objects.get(pk=7).refunded == 120
"""


def test_readme_installs_the_app_and_its_refund_runs_once(site: Site) -> None:
    blocks = blocks_of(README)

    site.execute([*blocks, Block("after the README", 1, "python", REVIEW)])


def test_readme_leaves_nothing_for_the_system_checks_to_warn_of(site: Site) -> None:
    printed = site.manage("check", "--database", "default", "--fail-level", "WARNING")

    assert "no issues" in printed
