"""Every refusal: one shape, its codes by status, taken from the tables that answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from rest_framework import exceptions as drf

from hitl_approvals import exceptions
from hitl_approvals.api import errors
from hitl_approvals.api.schema.shapes import Shape, answer, list_of, or_null, ref

FRAMEWORKS: tuple[type[drf.APIException], ...] = (
    drf.NotAuthenticated,
    drf.AuthenticationFailed,
    drf.PermissionDenied,
    drf.NotFound,
    drf.MethodNotAllowed,
    drf.NotAcceptable,
    drf.UnsupportedMediaType,
    drf.Throttled,
    errors.BadRequest,
    errors.LengthRequired,
)
"""What REST framework raises on our views, and what our own parsers do."""

ALWAYS = (401, 403, 404, 405, 406, 429)
"""What any address may answer, whatever it is for."""
ON_BODIES = (400, 411, 415)
"""What a body may be refused with."""


def codes() -> dict[int, dict[str, str]]:
    """Return the codes of each status, each with what it says unless it says more."""
    found: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for error in _ours():
        status = errors.status_of(error())
        if status is not None:
            found[status][error.code] = error().detail
    for framework in FRAMEWORKS:
        code = str(framework.default_code)
        found[framework.status_code][code] = str(framework.default_detail)
    # A site that knows sessions only has no challenge to answer with.
    for code, detail in found[401].items():
        found[403].setdefault(code, detail)
    return {status: dict(sorted(found[status].items())) for status in sorted(found)}


def components() -> Iterator[tuple[str, Shape]]:
    """Describe the body of every status, and the faults that it may list."""
    yield (
        "Fault",
        answer(
            {"loc": {"type": "string"}, "message": {"type": "string"}},
            "A place in the request, as a dotted path, and what is wrong there.",
        ),
    )
    for status, known in codes().items():
        yield f"Refusal{status}", _refusal(status, known)


def responses() -> Iterator[tuple[str, Shape]]:
    """Describe the answer of every status with an example of each code."""
    for status, known in codes().items():
        headers = {"X-Request-ID": ref("RequestID", "headers")}
        if status == 401:
            headers["WWW-Authenticate"] = ref("Challenge", "headers")
        if status == 405:
            headers["Allow"] = ref("Allow", "headers")
        if status == 429:
            headers["Retry-After"] = ref("RetryAfter", "headers")
        yield (
            f"Refused{status}",
            {
                "description": f"{HTTPStatus(status).phrase}. Nothing was changed.",
                "headers": headers,
                "content": {
                    "application/json": {
                        "schema": ref(f"Refusal{status}"),
                        "examples": {
                            code: {"value": _example(code, detail)}
                            for code, detail in known.items()
                        },
                    }
                },
            },
        )


def _ours() -> Iterator[type[exceptions.HitlApprovalsError]]:
    for error in errors.STATUS:
        if error is exceptions.NotFound:
            yield from (
                kind for kind in error.__subclasses__() if kind not in errors.STATUS
            )
        else:
            yield error


def _refusal(status: int, known: dict[str, str]) -> Shape:
    shape = answer(
        {
            "code": {"type": "string", "enum": list(known)},
            "detail": {"type": "string"},
            "interrupt": or_null(ref("Interrupt")),
        },
        "A refusal. `code` does not change between versions, `detail` is for people, and "
        "`interrupt` is the interrupt as it is now, if the request was about one that "
        "you may see.",
    )
    if status == HTTPStatus.BAD_REQUEST:
        shape["properties"] |= {
            "reason": {"type": "string"},
            "errors": list_of(ref("Fault")),
        }
    return shape


def _example(code: str, detail: str) -> dict[str, Any]:
    body: dict[str, Any] = {"code": code, "detail": detail, "interrupt": None}
    if code == exceptions.PayloadRejected.code:
        refused = exceptions.PayloadRejected()
        body |= {"reason": refused.reason, "errors": refused.errors}
    return body
