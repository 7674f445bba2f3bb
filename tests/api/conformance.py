"""Every answer that the API's tests get is looked up in the OpenAPI document."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rest_framework.response import Response

from hitl_approvals.api.schema.operations import OPERATIONS
from hitl_approvals.api.schema.tables import components
from hitl_approvals.api.views import ApprovalsViewSet


@pytest.fixture(autouse=True)
def every_answer_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ApprovalsViewSet.finalize_response

    def checked(view: Any, request: Any, response: Any, *args: Any, **more: Any) -> Any:
        final = plain(view, request, response, *args, **more)
        assert_documented(view, final)
        return final

    monkeypatch.setattr(ApprovalsViewSet, "finalize_response", checked)


def assert_documented(view: Any, response: Response) -> None:
    if response.data is None or view.basename is None:
        return  # stands for an answer that comes later, or was called past the URLs
    status = response.status_code
    operation = OPERATIONS.get((view.basename, getattr(view, "action", None) or ""))
    if operation is None:  # a method that nobody takes
        assert status in (401, 403, 405, 406, 429), status
        name = f"Refusal{status}"
    elif status in operation.answers:
        name = operation.answers[status]
    else:
        assert status in operation.statuses(), f"{operation.id} answers {status}"
        name = f"Refusal{status}"
    assert_fits(name, response.data)


def assert_fits(name: str, value: Any) -> None:
    wrong = [
        f"{name} {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"
        for error in validator(name).iter_errors(value)
    ]
    assert not wrong, "\n".join(wrong)


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the judge of a component; a field that it does not know is a fault here."""
    schemas = {each: strict(shape) for each, shape in components()["schemas"].items()}
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}},
        format_checker=Draft202012Validator.FORMAT_CHECKER,
    )


def strict(shape: Any) -> Any:
    """Return a shape that takes no field beside those it names."""
    if isinstance(shape, list):
        return [strict(one) for one in shape]
    if not isinstance(shape, dict):
        return shape
    tighter = {name: strict(value) for name, value in shape.items()}
    if isinstance(tighter.get("properties"), dict):
        tighter.setdefault("additionalProperties", False)
    return tighter
