"""Errors as HTTP: one table from exception to status, one shape. Reads no row itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework import views as drf
from rest_framework.response import Response

from hitl_approvals.exceptions import (
    AgentNotFound,
    AlreadyConsumed,
    AlreadyDecided,
    CheckpointConflict,
    ClaimedByAnother,
    ClientNotAllowed,
    DecisionNotAllowed,
    HitlApprovalsError,
    InterruptCancelled,
    InterruptConflict,
    InterruptExpired,
    KeyReused,
    NotFound,
    NotInTurn,
    PayloadRejected,
    ReviewerNotAllowed,
    RunError,
    SnapshotMismatch,
    StaleReview,
    ThreadBusy,
    TooManyOpen,
    TransitionNotAllowed,
    UnsafeContext,
)

if TYPE_CHECKING:
    from hitl_approvals.api.views import ApprovalsViewSet

Errors: TypeAlias = Sequence[dict[str, str]]

STATUS: dict[type[HitlApprovalsError], int] = {
    AgentNotFound: status.HTTP_400_BAD_REQUEST,
    DecisionNotAllowed: status.HTTP_400_BAD_REQUEST,
    PayloadRejected: status.HTTP_400_BAD_REQUEST,
    ReviewerNotAllowed: status.HTTP_403_FORBIDDEN,
    ClientNotAllowed: status.HTTP_403_FORBIDDEN,
    NotFound: status.HTTP_404_NOT_FOUND,
    TransitionNotAllowed: status.HTTP_409_CONFLICT,
    AlreadyConsumed: status.HTTP_409_CONFLICT,
    AlreadyDecided: status.HTTP_409_CONFLICT,
    StaleReview: status.HTTP_409_CONFLICT,
    KeyReused: status.HTTP_409_CONFLICT,
    SnapshotMismatch: status.HTTP_409_CONFLICT,
    ThreadBusy: status.HTTP_409_CONFLICT,
    ClaimedByAnother: status.HTTP_423_LOCKED,
    InterruptExpired: status.HTTP_410_GONE,
    InterruptCancelled: status.HTTP_410_GONE,
    TooManyOpen: status.HTTP_429_TOO_MANY_REQUESTS,
}
"""What a refusal is over HTTP; a subclass without a line of its own is as its base."""

NEVER_OVER_HTTP: tuple[type[HitlApprovalsError], ...] = (
    RunError,
    UnsafeContext,
    NotInTurn,
    CheckpointConflict,
    InterruptConflict,
)
"""Faults of a run or of the site's code: not the client's, so a 500 that is logged."""


class BadRequest(exceptions.APIException):
    """The request cannot be read; nothing was changed."""

    status_code = status.HTTP_400_BAD_REQUEST
    default_detail = "The request cannot be read; nothing was changed."
    default_code = "malformed"

    def __init__(self, detail: str, *, errors: Errors = ()) -> None:
        super().__init__(detail)
        self.errors = errors


class LengthRequired(exceptions.APIException):
    """The body came in pieces without a length, and this server could not read it."""

    status_code = status.HTTP_411_LENGTH_REQUIRED
    default_detail = "Send the body with a Content-Length."
    default_code = "length_required"


def status_of(error: HitlApprovalsError) -> int | None:
    """Return the status of one of our errors; None is a fault of the server."""
    if isinstance(error, NEVER_OVER_HTTP):
        return None
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), None)


def refusal_body(error: HitlApprovalsError) -> dict[str, Any]:
    """Return one of our errors in the one shape, without the interrupt it is about."""
    body = _body(error.code, error.detail)
    if isinstance(error, PayloadRejected):
        body |= {"reason": error.reason, "errors": error.errors}
    return body


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return an error in the one shape; None lets it pass as a fault of the server.

    Set on our own views only, never as the site's `EXCEPTION_HANDLER`.
    """
    view: ApprovalsViewSet[Any] = context["view"]
    if isinstance(error, HitlApprovalsError):
        code = status_of(error)
        if code is None:
            return None
        body = refusal_body(error)
        if not isinstance(error, NotFound):
            body["interrupt"] = view.interrupt_as_it_is_now()
        return Response(body, status=code)
    response = drf.exception_handler(error, context)
    if response is None:
        return None
    response.data = _translated(error, view)
    return response


def _translated(error: Exception, view: ApprovalsViewSet[Any]) -> dict[str, Any]:
    """Put an error of Django or of REST framework into our shape."""
    if isinstance(error, Http404):
        return _body("not_found", "Not found.")
    if isinstance(error, PermissionDenied):
        return _body("permission_denied", str(error) or "You may not do this.")
    if isinstance(error, exceptions.ValidationError):
        errors = list(_flat(error.detail))
        detail = "; ".join(f"{one['loc']}: {one['message']}" for one in errors)
        return _body(BadRequest.default_code, detail) | {"errors": errors}
    assert isinstance(error, exceptions.APIException)  # noqa: S101  the handler's kinds
    body = _body(_code(error), _words(error.detail))
    if isinstance(error, BadRequest):
        body["interrupt"] = view.interrupt_as_it_is_now()
        if error.errors:
            body["errors"] = list(error.errors)
    return body


def _code(error: exceptions.APIException) -> str:
    """Return our word for an error; a site's authentication may have words of its own."""
    if isinstance(error, exceptions.AuthenticationFailed):
        return exceptions.AuthenticationFailed.default_code
    codes = error.get_codes()
    return codes if isinstance(codes, str) else str(error.default_code)


def _words(detail: Any) -> str:
    if isinstance(detail, dict) and "detail" in detail:
        return str(detail["detail"])
    if isinstance(detail, (dict, list, tuple)):
        return "; ".join(one["message"] for one in _flat(detail))
    return str(detail)


def _body(code: str, detail: str) -> dict[str, Any]:
    return {"code": code, "detail": detail, "interrupt": None}


def _flat(detail: Any, loc: str = "") -> Iterator[dict[str, str]]:
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _flat(inner, f"{loc}.{name}" if loc else str(name))
    elif isinstance(detail, (list, tuple)):
        for inner in detail:
            yield from _flat(inner, loc)
    else:
        yield {"loc": loc, "message": str(detail)}
