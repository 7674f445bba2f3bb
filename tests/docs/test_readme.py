"""The README, followed word for word in a new site."""

from __future__ import annotations

import re

from tests.docs.blocks import README, Block, blocks_of
from tests.docs.project import Site

_CHECK = """
import os, sys, warnings
from django.core.management import execute_from_command_line
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
warnings.simplefilter("ignore")
execute_from_command_line(sys.argv)
"""

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


def test_readme_leaves_only_the_sqlite_options_for_the_system_checks(
    site: Site,
) -> None:
    (site.folder / "check.py").write_text(_CHECK)

    printed = site.run("check.py", "check", "--database", "default")

    assert re.findall(r"hitl_approvals\.[EW]\d+", printed) == ["hitl_approvals.W001"]


def test_readme_installs_the_app_in_under_thirty_lines() -> None:
    text = README.read_text()
    section = text[text.index("## Install it") : text.index("Then `python manage.py")]
    visible = re.sub(r"<!--.*?-->", "", section, flags=re.DOTALL)
    blocks = re.findall(r"```python\n(.*?)```", visible, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]

    assert 20 < len(lines) < 30
