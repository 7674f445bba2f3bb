"""Ready-made situations for the tests of the desk."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import F
from django.test import Client
from django.urls import reverse

from hitl_approvals import services, start_turn
from hitl_approvals.decisions import Approve
from hitl_approvals.engine import run_turn
from hitl_approvals.models import AgentTurn, DbNow, PendingInterrupt
from tests.admin import agents_for_admin  # noqa: F401  registers agents and tools
from tests.admin.html_forms import as_sent, form_to

AMOUNT = "240.00"
REFUND: dict[str, Any] = {
    "order_id": "A-1042",
    "amount": AMOUNT,
    "currency": "EUR",
    "items": [{"sku": "BL-900", "quantity": 1}, {"sku": "WARR-2Y", "quantity": 2}],
    "book_on": "2026-12-01T17:00:00Z",
    "notify_customer": False,
    "note": "Blender broken on arrival",
    "payout_token": "tok_8d7e6f5a4b3c",
}


def start(
    *calls: tuple[str, dict[str, Any]], by: Any = None, **options: Any
) -> AgentTurn:
    """Start a turn that makes these calls and waits for people."""
    made = [
        {"id": f"call-{number}", "name": name, "args": args}
        for number, (name, args) in enumerate(calls)
    ]
    return start_turn(
        "desk_agent",
        options.pop("asked", "I want my money back."),
        requested_by=by,
        execute_options={"calls": made, **options},
        run=True,
    )


def refund(by: Any = None, **changes: Any) -> PendingInterrupt:
    """Return a refund that waits."""
    turn = start(("desk_refund", {**REFUND, **changes}), by=by)
    return PendingInterrupt.objects.get(turn=turn)


def call(name: str, args: dict[str, Any], **options: Any) -> PendingInterrupt:
    """Return a call of any tool that waits."""
    return PendingInterrupt.objects.get(turn=start((name, args), **options))


def ask(question: Any, schema: Any = None, by: Any = None) -> PendingInterrupt:
    """Return a question that waits."""
    turn = start(question=question, schema=schema, by=by)
    return PendingInterrupt.objects.get(turn=turn)


def charge_in_doubt(by: Any = None) -> PendingInterrupt:
    """Return a call that broke off, past its hard deadline."""
    row = call("desk_charge", {"customer": "C-20931", "amount": "89.90"}, by=by)
    services.decide(row.pk, Approve(), by=None, via="python")
    run_turn(row.turn_id)
    row.steps.update(hard_deadline=DbNow())
    row.refresh_from_db()
    assert row.status == "in_doubt"
    return row


def expire(row: PendingInterrupt) -> None:
    """Let the time to decide pass, before any sweeper looks."""
    PendingInterrupt.objects.filter(pk=row.pk).update(
        expires_at=F("requested_at") - timedelta(hours=1)
    )


def url(row: Any, page: str = "change", model: str = "pendinginterrupt") -> str:
    """Return the address of one of a row's pages."""
    return reverse(f"admin:hitl_approvals_{model}_{page}", args=[row.pk])


LIST = "/admin/hitl_approvals/pendinginterrupt/"


def send(client: Client, row: PendingInterrupt, decision: str, **changes: str) -> Any:
    """Open a row's page, change the form on it, and press a button."""
    form = form_to(client.get(url(row)), "/decide/")
    return client.post(
        form.action, as_sent({**form.fields, "decision": decision, **changes})
    )


def edit(client: Client, row: PendingInterrupt, **changes: str) -> Any:
    """Open a row's edit page, change fields by argument name, and go to step 2."""
    form = form_to(client.get(url(row, "edit")), "/edit/")
    fields = {**form.fields, "step": "review"}
    for name, value in changes.items():
        fields[key_of(row, name)] = value
    return client.post(form.action, as_sent(fields))


def confirm(client: Client, response: Any, **changes: str) -> Any:
    """Press the button of step 2."""
    form = form_to(response, "/edit/")
    return client.post(
        form.action, as_sent({**form.fields, "step": "approve", **changes})
    )


def key_of(row: PendingInterrupt, name: str) -> str:
    """Return the name of an argument's HTML field."""
    base, _, tick = name.partition("__")
    key = f"f{sorted(row.args_schema['properties']).index(base)}"
    return f"{key}-{tick}" if tick else key
