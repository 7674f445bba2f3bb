"""Who asks, and what there is to ask about: made in the site's own process.

    python -m tests.schema.people

Prints the tokens as JSON.
"""

from __future__ import annotations

import json
from typing import Any

import django

KEY = "schema"
"""Under which decisions are fetched, here and in half of all requests."""
EACH = 12
COMPLAINT = "Order A-1002 arrived broken. Refund 240.00 EUR and write to the customer."


def raise_in_every_state(client: Any) -> None:
    """Requests of a remote agent: open, decided, fetched, done, and in doubt."""
    from hitl_approvals import Approve, services

    call = {"tool_name": "refund", "args": {"order": "A-1002"}, "via": "test"}
    for number in range(5 * EACH):
        kind, ref = number % 5, f"seed-{number}"
        if kind == 0:
            services.raise_remote(
                client, ref=ref, kind="question", payload="Which colour?", via="test"
            )
            continue
        row = services.raise_remote(client, ref=ref, **call).interrupt_id
        if kind == 1:
            continue
        services.decide(row, Approve(), by=None, via="test")
        if kind == 2:
            continue
        services.consume(row, client=client, key=KEY, via="test")
        if kind == 4:
            services.report_outcome(
                row, client=client, key=KEY, status="unknown", via="test"
            )


def main() -> None:
    django.setup()
    from django.contrib.auth.models import Permission, User
    from django.core.management import call_command
    from rest_framework.authtoken.models import Token

    from example_project.demo.people import seed_people
    from example_project.shop.seeds import seed_orders
    from hitl_approvals import services, start_turn

    call_command("migrate", verbosity=0)
    seed_people()
    seed_orders()
    ours = Permission.objects.filter(content_type__app_label="hitl_approvals")
    rita = User.objects.get(username="rita")
    rita.user_permissions.set(ours.exclude(codename="add_agentturn"))
    sam = User.objects.get(username="sam")
    unlimited = {"open": None, "per_minute": None, "waiting": None}
    billing, token = services.create_client("billing", limits=unlimited, by=None)
    _, other = services.create_client("other", limits=unlimited, by=None)
    raise_in_every_state(billing)
    for _ in range(20):
        start_turn("support", COMPLAINT, requested_by=sam)
    print(
        json.dumps(
            {
                "reviewer": f"Token {Token.objects.get(user=rita).key}",
                "backend": f"Token {Token.objects.get(user=sam).key}",
                "client": f"Bearer {token}",
                "other": f"Bearer {other}",
            }
        )
    )


if __name__ == "__main__":
    main()
