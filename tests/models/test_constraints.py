"""The database refuses rows that the state machine has no name for, whoever writes."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import IntegrityError, transaction
from django.db.models import CheckConstraint

from hitl_approvals import Reject
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    IdempotencyRecord,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from tests.support.agents import call
from tests.support.turns import (
    begin,
    begin_owed,
    decide,
    decide_and_resume,
    only,
    steps,
)

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")


def ready():
    return begin_owed([MAIL])


def suspended():
    return begin([MAIL])


def pending():
    return only(suspended())


def decided(decision=None):
    row = pending()
    decide(row, decision)
    return row


def rejected():
    return decided(Reject("no"))


def resolved():
    turn = suspended()
    decide_and_resume(turn)
    return only(turn)


def tool_step():
    return steps(resolved().turn)[0]


def model_step():
    return steps(suspended(), kind="model")[0]


CASES = {
    "hitl_turn_status_check": (ready, {"status": "odd"}),
    "hitl_turn_undecided_check": (ready, {"undecided": 1}),
    "hitl_turn_lease_check": (ready, {"lease_until": DbNow()}),
    "hitl_turn_final_check": (ready, {"finished_at": DbNow()}),
    "hitl_turn_due_check": (ready, {"next_run_at": None}),
    "hitl_turn_blocked_check": (suspended, {"blocked": True}),
    "hitl_int_status_check": (pending, {"status": "odd"}),
    "hitl_int_kind_check": (pending, {"kind": "odd"}),
    "hitl_int_decision_check": (decided, {"decision": "odd"}),
    "hitl_int_owner_check": (pending, {"turn": None}),
    "hitl_int_call_check": (pending, {"args_digest": ""}),
    "hitl_int_pending_check": (pending, {"decided_at": DbNow()}),
    "hitl_int_decided_check": (decided, {"decided_at": None}),
    "hitl_int_resolved_check": (resolved, {"resolved_at": None}),
    "hitl_int_may_run_check": (decided, {"decision_digest": ""}),
    "hitl_int_reason_check": (rejected, {"reason": ""}),
    "hitl_int_edit_check": (decided, {"decision_args_text": "{}"}),
    "hitl_int_consumed_check": (pending, {"consumed_at": DbNow()}),
    "hitl_int_generation_check": (pending, {"generation": 5}),
    "hitl_step_status_check": (tool_step, {"status": "odd"}),
    "hitl_step_kind_check": (tool_step, {"kind": "odd"}),
    "hitl_step_started_check": (model_step, {"status": "started"}),
}
ALSO = {"hitl_int_kind_check": "hitl_int_call_check"}
"""What the same bad row breaks too; databases differ in which they name."""


@pytest.mark.parametrize("name", CASES)
def test_the_database_refuses_a_bad_row_by_name(world, name):
    make, changes = CASES[name]
    row = make()

    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        type(row).objects.filter(pk=row.pk).update(**changes)

    assert name in str(refusal.value) or ALSO.get(name, name) in str(refusal.value)


def test_every_check_constraint_has_a_bad_row_above():
    models = apps.get_app_config("hitl_approvals").get_models()
    names = {
        constraint.name
        for model in models
        for constraint in model._meta.constraints
        if isinstance(constraint, CheckConstraint)
    }

    assert names == set(CASES)


def refuse(work):
    with pytest.raises(IntegrityError), transaction.atomic():
        work()


def test_one_turn_holds_a_thread(world):
    first, second = suspended(), suspended()

    refuse(
        lambda: AgentTurn.objects.filter(pk=second.pk).update(
            active_thread=first.active_thread
        )
    )


def test_a_start_key_names_one_turn(world):
    turn = begin_owed([MAIL], key="k")

    refuse(
        lambda: AgentTurn.objects.filter(pk=ready().pk).update(start_key=turn.start_key)
    )


def test_a_call_has_one_interrupt(world):
    first, second = pending(), pending()

    refuse(
        lambda: PendingInterrupt.objects.filter(pk=second.pk).update(
            dedupe_key=first.dedupe_key
        )
    )


def test_a_call_has_one_step_a_generation(world):
    step = tool_step()
    twin = TurnStep(
        turn_id=step.turn_id,
        key=step.key,
        generation=step.generation,
        position=9,
        kind="tool",
        name="mail",
        status="succeeded",
    )

    refuse(lambda: twin.save(force_insert=True))
    twin.generation = 2
    twin.save(force_insert=True)


def test_an_idempotency_key_names_one_step(world):
    first, second = tool_step(), tool_step()

    refuse(
        lambda: TurnStep.objects.filter(pk=second.pk).update(
            idempotency_key=first.idempotency_key
        )
    )


def test_two_events_cannot_have_one_place_in_a_chain(world):
    event = InterruptEvent.objects.filter(interrupt_id=pending().pk).get()
    event.pk = InterruptEvent().pk

    refuse(lambda: event.save(force_insert=True))


def test_a_request_key_has_one_stored_answer(db):
    def record():
        IdempotencyRecord.objects.create(
            scope="s", key="k", body_digest="d", response_status=200, response={}
        )

    record()
    refuse(record)


def test_rows_that_others_point_to_cannot_be_deleted(world):
    row = resolved()

    for one in (row.turn, row, row.queue):
        with pytest.raises(IntegrityError):
            one.delete()
