"""The OpenAPI document: valid, stable in its names, and equal with the code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.urls import include, path
from drf_spectacular import drainage
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from drf_spectacular.validation import validate_schema
from openapi_spec_validator import validate
from rest_framework.test import APIClient

from hitl_approvals.api import errors, serializers
from hitl_approvals.api.schema import answers, refusals
from hitl_approvals.api.schema.document import document
from hitl_approvals.api.schema.operations import OPERATIONS
from hitl_approvals.api.urls import router
from hitl_approvals.models import InterruptEvent
from hitl_approvals.webhooks.events import WebhookEvent, is_of_an_interrupt
from hitl_approvals.webhooks.payloads import message
from tests.api import scenes
from tests.api.conformance import assert_fits
from tests.api.remote_scenes import Agent

OPERATION_IDS = {
    "queues_list",
    "turns_events",
    "turns_steps",
    "interrupts_approve",
    "interrupts_assign",
    "interrupts_cancel",
    "interrupts_claim",
    "interrupts_consume",
    "interrupts_decide_many",
    "interrupts_edit",
    "interrupts_events",
    "interrupts_give_back",
    "interrupts_list",
    "interrupts_outcome",
    "interrupts_raise",
    "interrupts_re_review",
    "interrupts_read",
    "interrupts_reject",
    "interrupts_release",
    "interrupts_respond",
    "interrupts_settle",
    "schema_read",
    "stats_read",
    "turns_cancel",
    "turns_fork",
    "turns_list",
    "turns_read",
    "turns_restart",
    "turns_retry",
    "turns_start",
}
"""Generated clients name their functions by these; one that is renamed breaks them."""
WRITTEN = Path(__file__).resolve().parents[2] / "docs/reference/api/openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")

urlpatterns = [path("<str:tenant>/v1/", include("hitl_approvals.api.urls"))]


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return document("/api")


def operations(described: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        operation["operationId"]: (address, operation)
        for address, methods in described["paths"].items()
        for method, operation in methods.items()
        if method in METHODS
    }


def resolved(described: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in shape:
        node: Any = described
        for part in shape["$ref"].removeprefix("#/").split("/"):
            node = node[part]
        shape = node
    return shape


def test_the_document_is_valid(described):
    assert described["openapi"].startswith("3.1.")
    validate(described)


def test_the_names_of_operations_are_stable(described):
    assert set(operations(described)) == OPERATION_IDS


def test_the_written_copy_is_this_document(described):
    assert json.loads(WRITTEN.read_text()) == described, "make schema"


def test_every_endpoint_and_method_is_described(described):
    served = {
        (route.url, method)
        for prefix, viewset, basename in router.registry
        for route in router.get_routes(viewset)
        for method in router.get_method_map(viewset, route.mapping)
    }
    shown = {
        (f"/{prefix}{address}", method)
        for prefix, viewset, basename in router.registry
        for route in router.get_routes(viewset)
        for method in router.get_method_map(viewset, route.mapping)
        for address in [
            re.sub(r"^\^?\{prefix\}|\$$", "", route.url)
            .replace("{lookup}", "{id}")
            .replace("{trailing_slash}", "/")
        ]
    }

    assert served
    assert shown == {
        (address, method)
        for address, methods in described["paths"].items()
        for method in methods
    }
    assert {known.id for known in OPERATIONS.values()} == OPERATION_IDS


@pytest.mark.django_db
def test_bodies_take_the_fields_that_the_code_reads(described, client_of):
    """Ask the code: it names the fields that it knows to whoever sends another."""
    agent, superuser = Agent(), client_of("superuser")
    checked = 0
    for name, (address, operation) in operations(described).items():
        if "requestBody" not in operation:
            continue
        clients_alone = all("clientToken" in one for one in operation["security"])
        caller = agent.http if clients_alone else superuser
        answer = caller.post(
            f"/api{address}".replace("{id}", str(uuid4())),
            {"no_such_field": 1},
            format="json",
            headers={"Idempotency-Key": str(uuid4())},
        )
        assert answer.status_code == 400, (name, answer.json())
        (fault,) = answer.json()["errors"]
        known = re.findall(r'"(\w+)"', fault["message"])
        shape = resolved(
            described,
            operation["requestBody"]["content"]["application/json"]["schema"],
        )
        assert set(shape["properties"]) == set(known), name
        assert shape["additionalProperties"] is False
        checked += 1
    assert checked == sum(name.partition("_")[2] not in READS for name in OPERATION_IDS)


READS = ("list", "read", "events", "steps")


def test_answers_have_the_fields_that_the_code_writes(described):
    schemas = described["components"]["schemas"]
    for component, serializer in (
        ("Interrupt", serializers.InterruptSerializer),
        ("ListedInterrupt", serializers.InterruptListSerializer),
        ("Turn", serializers.TurnSerializer),
        ("ListedTurn", serializers.TurnListSerializer),
    ):
        fields = list(serializer().fields)
        assert list(schemas[component]["properties"]) == fields
        assert schemas[component]["required"] == fields
    # What a method makes has to be said; and what is said has to be there.
    for serializer, known in (
        (serializers.InterruptSerializer, answers.INTERRUPT),
        (serializers.TurnSerializer, answers.TURN),
    ):
        made = {
            name
            for name, field in serializer().fields.items()
            if type(field).__name__ in ("SerializerMethodField", "Json")
        }
        assert made <= set(known) <= set(serializer().fields)


def test_every_code_stands_under_its_status(described):
    shown = {
        (int(name.removeprefix("Refusal")), code)
        for name, shape in described["components"]["schemas"].items()
        if name.startswith("Refusal")
        for code in shape["properties"]["code"]["enum"]
    }

    assert shown == {
        (status, code) for status, codes in refusals.codes().items() for code in codes
    }
    assert {status for status, _ in shown} >= {
        errors.status_of(error()) for error in errors.STATUS
    }


def test_a_query_parameter_that_a_list_reads_is_described(described):
    for _, viewset, basename in router.registry:
        found = operations(described)
        known = OPERATIONS.get((basename, "list"))
        if known is None or known.id not in found:
            continue
        shown = {
            one["name"]
            for one in found[known.id][1].get("parameters", ())
            if "name" in one
        }
        filterset = getattr(viewset, "filterset_class", None)
        read = set() if filterset is None else set(filterset.base_filters)
        if viewset.pagination_class is not None:
            paging = viewset.pagination_class().get_schema_operation_parameters(
                viewset()
            )
            read |= {one["name"] for one in paging}
        assert shown >= read, known.id


@pytest.mark.django_db
def test_messages_are_what_is_sent(described):
    row = scenes.resolved()
    interrupt = InterruptEvent.objects.filter(subject_id=row.pk)
    turn = InterruptEvent.objects.get(subject_id=row.turn_id, type="turn_completed")

    assert set(described["webhooks"]) == {str(event) for event in WebhookEvent}
    for event in WebhookEvent:
        posted = described["webhooks"][str(event)]["post"]
        shape = posted["requestBody"]["content"]["application/json"]["schema"]
        of = row if is_of_an_interrupt(event) else row.turn
        for one in interrupt if of is row else [turn]:
            for include_args in (True, False):
                sent = message(event, one, of, include_args=include_args)
                assert_fits(
                    shape["$ref"].rpartition("/")[2], json.loads(json.dumps(sent))
                )


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_it_holds_where_it_is_asked_for(client_of):
    answer = client_of("viewer").get("/acme/v1/schema/")

    assert answer.status_code == 200
    assert answer["X-Request-ID"]
    assert answer.json()["servers"] == [{"url": "/acme/v1"}]
    assert "/interrupts/{id}/" in answer.json()["paths"]


@pytest.mark.django_db
def test_it_is_not_for_strangers():
    assert APIClient().get("/api/schema/").status_code == 401


@pytest.mark.parametrize("version", ["3.0.3", "3.1.1"])
def test_it_fits_into_a_document_of_the_site(version):
    """By drf-spectacular's own generator, in either version, and without a warning."""
    with patched_settings({"OAS_VERSION": version}):
        drainage.reset_generator_stats()
        written = SchemaGenerator(urlconf="tests.urls").get_schema(public=True)
        validate_schema(written)

    assert not drainage.GENERATOR_STATS
    assert written["openapi"] == version
    assert set(operations(written)) >= OPERATION_IDS


def test_the_api_is_whole_without_it():
    program = (
        "import sys\n"
        "sys.modules['drf_spectacular'] = None\n"
        "import django\n"
        "from django.conf import settings\n"
        "settings.REST_FRAMEWORK = {}\n"
        "django.setup()\n"
        "from hitl_approvals.api.urls import router\n"
        "assert 'interrupt' in {basename for _, _, basename in router.registry}\n"
        "assert 'schema' not in {basename for _, _, basename in router.registry}\n"
        "assert not [m for m in sys.modules if m.startswith('drf_spectacular.')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
