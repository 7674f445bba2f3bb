"""JSON as canonical text: the same bytes and values on every database."""

from __future__ import annotations

import math

import pytest
from django.apps import apps
from django.core import serializers
from django.db import transaction
from django.db.models import JSONField, TextField
from django.db.models.functions import Cast

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import AgentTurn, CanonicalJSONField, PendingInterrupt
from tests.support.agents import call
from tests.support.turns import begin, only

pytestmark = pytest.mark.django_db
VALUES = {
    "NUL": "a\x00b",
    "half a surrogate pair": "\ud800 end",
    "a whole pair": "🙂",
    "a big integer": 2**70,
    "a negative big integer": -(2**64) - 1,
    "a fraction": 0.1,
    "a huge fraction": 1e308,
    "keys in no order": {"b": 1, "a": {"d": 1, "c": 2}, "": None},
    "a list": [1, "1", True, None, [], {}],
    "false": False,
    "zero": 0,
    "an empty text": "",
    "an empty object": {},
    "markup": "</script><!-- ' \" \\ \u2028",
    "a long text": "ü" * 100_000,
}


def stored(value):
    turn = AgentTurn(agent="a", thread_id="t", next_run_at="2030-01-01T00:00Z")
    turn.input = value
    turn.save(force_insert=True)
    return AgentTurn.objects.annotate(text=Cast("input", TextField())).get(pk=turn.pk)


@pytest.mark.parametrize("value", VALUES.values(), ids=list(VALUES))
def test_a_value_comes_back_as_it_went_in(value):
    turn = stored(value)

    assert turn.input == value
    assert type(turn.input) is type(value)


@pytest.mark.parametrize("value", VALUES.values(), ids=list(VALUES))
def test_the_bytes_are_canonical_ascii_so_that_a_digest_holds(value):
    text = stored(value).text

    assert text == canonical.dumps(value, max_bytes=None)
    assert text.isascii()
    assert canonical.digest(text).startswith("c1:")


def test_none_is_null(world):
    turn = stored(None)

    assert turn.input is None
    assert AgentTurn.objects.filter(pk=turn.pk, input__isnull=True).exists()


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1: 2}, {1, 2}])
def test_what_is_no_json_is_refused_before_the_database(value):
    with pytest.raises(PayloadRejected), transaction.atomic():
        stored(value)

    assert AgentTurn.objects.count() == 0


def test_a_value_can_be_updated_and_compared():
    turn = stored({"a": 1})

    AgentTurn.objects.filter(pk=turn.pk).update(input={"b": 2, "a": 1})

    assert AgentTurn.objects.get(input={"a": 1, "b": 2}).pk == turn.pk


def test_defaults_are_fresh_for_every_row():
    first, second = PendingInterrupt(), PendingInterrupt()

    first.tags.append("x")

    assert second.tags == []


def test_a_fixture_carries_the_value_itself():
    turn = stored({"b": [1, None], "a": "x"})

    text = serializers.serialize("json", [turn])
    AgentTurn.objects.all().delete()
    (loaded,) = serializers.deserialize("json", text)
    loaded.save()

    assert AgentTurn.objects.get().input == {"a": "x", "b": [1, None]}


def test_every_json_column_of_ours_is_canonical_but_the_copy_for_filters():
    columns = [
        (model.__name__, field.name)
        for model in apps.get_app_config("hitl_approvals").get_models()
        for field in model._meta.get_fields()
        if isinstance(field, JSONField)
    ]

    assert columns == [("PendingInterrupt", "args")]
    field = PendingInterrupt._meta.get_field("context")
    assert isinstance(field, CanonicalJSONField)


def test_the_copy_for_filters_can_be_asked_on_every_database(world):
    turn = begin([call("mail", "m", to="a@example.org")])
    begin([call("mail", "m", to="b@example.org")])

    found = PendingInterrupt.objects.filter(args__to="a@example.org")

    assert [row.pk for row in found] == [only(turn).pk]
