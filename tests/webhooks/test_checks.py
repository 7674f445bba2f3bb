"""A mistake in the endpoints is named before anything is sent."""

from __future__ import annotations

import importlib.util

import pytest

from hitl_approvals import checks
from hitl_approvals.webhooks.endpoints import endpoint_of, endpoints
from tests.webhooks.conftest import OLD_SECRET, SECRET

URL = "https://hooks.example.org/approvals"
GOOD = {"url": URL, "secrets": [SECRET]}


@pytest.fixture
def found(settings):
    def check(**changes):
        settings.HITL_APPROVALS = changes
        return checks.check_webhooks(None)

    return check


def ids(messages):
    return [one.id.removeprefix("hitl_approvals.") for one in messages]


@pytest.mark.parametrize(
    "endpoint",
    [
        GOOD,
        {**GOOD, "secrets": (SECRET, OLD_SECRET)},
        {**GOOD, "events": "*"},
        {**GOOD, "events": ["interrupt.*", "turn.failed"]},
        {**GOOD, "queues": ["refunds"], "clients": "billing", "include_args": True},
        {**GOOD, "queues": None, "clients": None},
    ],
)
def test_an_endpoint_that_can_work_passes(found, endpoint):
    assert found(WEBHOOKS={"crm-2_b": endpoint}) == []
    assert found(WEBHOOKS={}) == []
    assert found() == []


@pytest.mark.parametrize(
    ("webhooks", "number"),
    [
        ([GOOD], "E011"),
        ("crm", "E011"),
        ({"crm": URL}, "E011"),
        ({"crm": {**GOOD, "uri": URL}}, "E011"),
        ({"CRM": GOOD}, "E011"),
        ({"": GOOD}, "E011"),
        ({7: GOOD}, "E011"),
        ({"x" * 56: GOOD}, "E011"),
        ({"crm\n": GOOD}, "E011"),
        ({"crm": {"secrets": [SECRET]}}, "E012"),
        ({"crm": {**GOOD, "url": "http://hooks.example.org/"}}, "E012"),
        ({"crm": {**GOOD, "url": "https://me:pw@hooks.example.org/"}}, "E012"),
        ({"crm": {"url": URL}}, "E013"),
        ({"crm": {"url": URL, "secrets": SECRET}}, "E013"),
        ({"crm": {"url": URL, "secrets": []}}, "E013"),
        ({"crm": {"url": URL, "secrets": [SECRET, "hunter2"]}}, "E013"),
        ({"crm": {**GOOD, "events": []}}, "E014"),
        ({"crm": {**GOOD, "events": ["interrupt.approved"]}}, "E014"),
        ({"crm": {**GOOD, "events": [7]}}, "E014"),
        ({"crm": {**GOOD, "events": None}}, "E014"),
        ({"crm": {**GOOD, "queues": []}}, "E014"),
        ({"crm": {**GOOD, "clients": [None]}}, "E014"),
        ({"crm": {**GOOD, "include_args": "no"}}, "E014"),
    ],
)
def test_one_that_cannot_is_an_error(found, webhooks, number):
    assert ids(found(WEBHOOKS=webhooks)) == [number]


def test_a_bad_secret_is_named_by_its_place_only(found):
    (error,) = found(WEBHOOKS={"crm": {"url": URL, "secrets": [SECRET, "hunter2"]}})

    assert "Secret 2" in error.msg
    assert "hunter2" not in str(error)


@pytest.mark.parametrize("value", [True, False, [], ["10.1.0.0/16", "hooks.internal"]])
def test_what_may_be_allowed(found, value):
    assert "E015" not in ids(found(WEBHOOK_ALLOW_PRIVATE=value))


@pytest.mark.parametrize("value", [1, "yes", None, ["10.1.2.3/16"], [7], ["a b"]])
def test_what_may_not(found, value):
    assert ids(found(WEBHOOK_ALLOW_PRIVATE=value)) == ["E015"]


def test_plain_http_is_allowed_by_true_alone(found):
    assert ids(found(WEBHOOK_ALLOW_HTTP="yes")) == ["E015"]
    assert found(WEBHOOK_ALLOW_HTTP=False) == []


def test_a_protection_that_is_off_as_a_whole_is_a_warning(found):
    assert ids(found(WEBHOOK_ALLOW_PRIVATE=True)) == ["W010"]
    assert ids(found(WEBHOOK_ALLOW_HTTP=True)) == ["W010"]
    assert found(WEBHOOK_ALLOW_PRIVATE=["10.1.0.0/16"]) == []


def test_without_the_library_it_is_a_warning(found, monkeypatch):
    monkeypatch.setattr("hitl_approvals.checks.webhooks.find_spec", lambda _: None)

    (warning,) = found(WEBHOOKS={"crm": GOOD})
    assert ids([warning]) == ["W009"]
    assert "webhooks" in warning.hint
    assert found(WEBHOOKS={}) == []
    assert importlib.util.find_spec("standardwebhooks")


def test_settings_that_are_no_dict_are_anothers_error(settings):
    settings.HITL_APPROVALS = "celery"

    assert checks.check_webhooks(None) == []


def test_the_endpoints_are_read_anew_each_time(settings):
    settings.HITL_APPROVALS = {"WEBHOOKS": {"crm": GOOD}}
    (one,) = endpoints()
    assert (one.url, one.secrets, one.events) == (URL, (SECRET,), ("*",))
    assert endpoint_of("webhook:crm") == one
    settings.HITL_APPROVALS = {}

    assert endpoints() == []
    assert endpoint_of("webhook:crm") is None
