"""Every error has a status, and every error looks the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions as drf
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from hitl_approvals import exceptions as ours
from hitl_approvals.api import errors, interrupts
from tests.api import scenes

SHAPE = {"code", "detail", "interrupt"}


def subclasses(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        if each.__module__.startswith("hitl_approvals."):
            yield each
            yield from subclasses(each)


@pytest.mark.parametrize(
    "error",
    sorted(subclasses(ours.HitlApprovalsError), key=lambda each: each.__name__),
    ids=lambda each: each.__name__,
)
def test_every_error_of_ours_has_a_place_and_a_docstring(error):
    on_the_wire = errors.status_of(error()) is not None
    off_the_wire = issubclass(error, errors.NEVER_OVER_HTTP)

    assert on_the_wire is not off_the_wire
    assert error.__doc__
    assert error.code != ours.HitlApprovalsError.code


def test_the_table_names_no_error_that_never_goes_out():
    never = errors.NEVER_OVER_HTTP

    assert not any(issubclass(error, never) for error in errors.STATUS)
    assert all(400 <= status < 500 for status in errors.STATUS.values())


def test_a_fault_of_the_server_is_no_answer_to_the_client(reviewer, monkeypatch):
    def broken(*args: object, **kwargs: object) -> None:
        raise ours.UnsafeContext

    monkeypatch.setattr(interrupts.services, "decide", broken)
    row = scenes.pending()

    with pytest.raises(ours.UnsafeContext):
        reviewer.post(scenes.url(row, "approve"))


def test_a_type_error_further_in_is_a_fault_of_the_server(reviewer, monkeypatch):
    def broken(*args: object, **kwargs: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(interrupts.services, "decide", broken)
    row = scenes.pending()

    with pytest.raises(TypeError):
        reviewer.post(scenes.url(row, "approve"))


FOREIGN: list[tuple[Exception, int, str]] = [
    (Http404("secret path"), 404, "not_found"),
    (PermissionDenied(), 403, "permission_denied"),
    (PermissionDenied("closed on Sundays"), 403, "permission_denied"),
    (drf.NotFound(), 404, "not_found"),
    (drf.ValidationError("no"), 400, "malformed"),
    (drf.ValidationError({"a": ["b", {"c": ["d"]}]}), 400, "malformed"),
    (drf.ParseError(), 400, "parse_error"),
    (drf.APIException(), 500, "error"),
    (drf.PermissionDenied({"a": "b"}), 403, "permission_denied"),
]


# Some of these no endpoint of ours raises, so the document does not know them.
@pytest.mark.parametrize("every_answer_is_documented", [None])
@pytest.mark.parametrize(("error", "status", "code"), FOREIGN)
def test_errors_of_the_frameworks_get_the_same_shape(
    reviewer, monkeypatch, error, status, code
):
    def broken(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(interrupts.selectors, "interrupt_get", broken)
    row = scenes.pending()

    response = reviewer.get(scenes.url(row))

    body = response.json()
    assert (response.status_code, body["code"]) == (status, code)
    assert set(body) - {"errors"} == SHAPE
    assert isinstance(body["detail"], str)
    assert "secret path" not in body["detail"]


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options", "trace"])
def test_other_methods_are_not_there(reviewer, method):
    row = scenes.pending()

    response = reviewer.generic(method.upper(), scenes.url(row))

    assert response.status_code == 405
    assert response.json()["code"] == "method_not_allowed"
    assert set(response.json()) == SHAPE
    assert response["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("verb", ["approve", "reject", "edit", "respond"])
def test_reading_decides_nothing(reviewer, verb):
    row = scenes.pending()

    for method in ("GET", "HEAD", "OPTIONS"):
        assert reviewer.generic(method, scenes.url(row, verb)).status_code == 405
    assert scenes.events(row) == ["raised"]


def test_other_media_types_are_not_there(reviewer):
    for accept in ("text/html", "application/xml"):
        response = reviewer.get(scenes.LIST, headers={"Accept": accept})
        assert response.status_code == 406
        assert response.json()["code"] == "not_acceptable"
    browser = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
    page = reviewer.get(scenes.LIST, headers={"Accept": browser})
    assert page["Content-Type"] == "application/json"
    assert reviewer.get(f"{scenes.LIST}?format=api").status_code == 404


def test_a_site_may_slow_its_callers_down(reviewer, monkeypatch):
    class OneADay(SimpleRateThrottle):
        rate = "1/day"

        def get_cache_key(self, request: object, view: object) -> str:
            return "api-throttle-test"

    monkeypatch.setattr(interrupts.InterruptViewSet, "throttle_classes", [OneADay])
    try:
        reviewer.get(scenes.LIST)
        response = reviewer.get(scenes.LIST)
    finally:
        OneADay.cache.delete("api-throttle-test")

    assert (response.status_code, response.json()["code"]) == (429, "throttled")
    assert int(response["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("req-1", True),
        ("a" * 128, True),
        ("Root=1-67891233-abcdef", True),
        ("a" * 129, False),
        ("", False),
        ("a b", False),
        ("<script>", False),
        ("ä", False),
    ],
)
def test_every_response_carries_a_request_id(reviewer, given, kept):
    row = scenes.pending()
    send = {"headers": {"X-Request-ID": given}}
    responses = [
        reviewer.get(scenes.LIST, **send),
        reviewer.get(scenes.url(row), **send),
        reviewer.post(scenes.url(row, "reject"), {}, format="json", **send),
        reviewer.get(f"{scenes.LIST}nonsense/", **send),
        reviewer.put(scenes.LIST, **send),
        APIClient().get(scenes.LIST, **send),
        reviewer.post(scenes.url(row, "approve"), **send),
    ]

    ids = [response["X-Request-ID"] for response in responses]

    if kept:
        assert set(ids) == {given}
    else:
        assert len(set(ids)) == len(ids)
        assert all(len(each) == 32 for each in ids)
    assert {each["Cache-Control"] for each in responses} == {"private, no-store"}
