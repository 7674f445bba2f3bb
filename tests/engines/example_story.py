"""Plays a part of a story on the example site: `example_story.py begin|end <file>`.

Started by the tests as processes of their own, with the agent that `SHOP_AGENT` names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import django

PROMPTS = {
    "approve": "Order A-1002 arrived broken. Refund 240.00 EUR.",
    "edit": "Order A-1003 arrived late. Refund 100.00 EUR.",
    "reject": "Order A-1003 has scratches. Refund 200.00 EUR.",
    "free": "Order A-1001 has scratches. Refund 9.90 EUR.",
}
"""What sam complains about, by what rita will decide; nobody is asked about the last."""


def begin() -> dict[str, Any]:
    """Make the site, let sam complain, and look at the queue as rita."""
    from django.contrib.auth.models import User
    from django.contrib.messages import get_messages
    from django.core.management import call_command
    from django.test import Client
    from django.urls import reverse

    from example_project.demo.people import seed_people
    from example_project.shop.seeds import seed_orders
    from hitl_approvals import start_turn

    call_command("migrate", verbosity=0, interactive=False)
    seed_orders()
    seed_people()
    sam, rita = (User.objects.get(username=name) for name in ("sam", "rita"))
    turns = {
        wanted: start_turn("support", prompt, requested_by=sam, run=True)
        for wanted, prompt in PROMPTS.items()
    }
    shop = Client(HTTP_HOST="localhost")
    shop.force_login(sam)
    complaint = {"prompt": "Where is my parcel?"}
    answer = shop.post(reverse("ask-support"), complaint)
    told = [str(message) for message in get_messages(answer.wsgi_request)]
    browser = Client(HTTP_HOST="localhost")
    browser.force_login(rita)
    page = browser.get(reverse("admin:hitl_approvals_pendinginterrupt_changelist"))
    return {
        "turns": {wanted: str(turn.pk) for wanted, turn in turns.items()},
        "kind": _kind(),
        "rows": {wanted: _rows(turn) for wanted, turn in turns.items()},
        "status": {wanted: turn.status for wanted, turn in turns.items()},
        "refunds": _refunds(),
        "queue": page.content.decode(),
        "told": told,
        "start": shop.get(answer["Location"]).content.decode(),
    }


def end(turns: dict[str, str]) -> dict[str, Any]:
    """Decide as rita, and let the turns come to their ends, each of them twice."""
    from django.contrib.auth.models import User

    from hitl_approvals import Approve, Edit, Reject, run_turn, services
    from hitl_approvals.models import AgentTurn, PendingInterrupt

    rita = User.objects.get(username="rita")
    for wanted, pk in turns.items():
        for row in PendingInterrupt.objects.filter(turn=pk, status="pending"):
            decision: Any = {
                "approve": Approve(),
                "edit": Edit({**row.args, "amount": "80.00"}, reason="as agreed"),
                "reject": Reject("Scratches are no defect."),
            }[wanted]
            services.decide(row.pk, decision, by=rita, via="test")
        run_turn(pk)
        run_turn(pk)
    found = {wanted: AgentTurn.objects.get(pk=pk) for wanted, pk in turns.items()}
    return {
        "status": {wanted: turn.status for wanted, turn in found.items()},
        "output": {wanted: turn.output for wanted, turn in found.items()},
        "errors": {wanted: turn.last_error for wanted, turn in found.items()},
        "rows": {wanted: _rows(turn) for wanted, turn in found.items()},
        "refunds": _refunds(),
    }


def _kind() -> str:
    from hitl_approvals.registry import registry

    return registry.agents["support"].kind


def _rows(turn: Any) -> list[dict[str, Any]]:
    from hitl_approvals.models import PendingInterrupt

    return [
        {
            "pk": str(row.pk),
            "tool": row.tool_name,
            "args": row.args,
            "queue": row.queue.slug if row.queue else None,
            "status": row.status,
            "reason": row.context["agent_reason"],
        }
        for row in PendingInterrupt.objects.filter(turn=turn.pk)
    ]


def _refunds() -> list[list[str]]:
    from example_project.shop.models import Refund

    found = Refund.objects.order_by("pk").values_list("order__number", "amount")
    return [[order, str(amount)] for order, amount in found]


def main() -> None:
    django.setup()
    part, file = sys.argv[1], Path(sys.argv[2])
    turns = {} if part == "begin" else json.loads(file.read_text())["turns"]
    told = begin() if part == "begin" else end(turns)
    file.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
