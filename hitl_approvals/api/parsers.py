"""Reads the JSON body of a request, strictly and within bounds. Knows no field of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from django.http import UnreadablePostError
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from hitl_approvals import canonical
from hitl_approvals.api.errors import BadRequest, LengthRequired
from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import PayloadRejected

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

MEDIA_TYPE = "application/json"
SLACK_BYTES = 65_536
"""Room in a body for what stands around the largest payload: names, reason, blanks."""
SLACK_DEPTH = 1
"""The object that the payload stands in."""

_KINDS = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


class StrictJSONParser(BaseParser):
    """Takes what the gate takes: no duplicate keys, no NaN, nothing rounded or guessed."""

    media_type = MEDIA_TYPE

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON value in a stream.

        Raises:
            PayloadRejected: It is not JSON, not UTF-8, too large or too deep.
        """
        return _loads(_bounded(stream))


def read_object(request: Request) -> dict[str, JSONValue]:
    """Return the JSON object that a request carries; no body at all is an empty one.

    REST framework believes that a request without Content-Length has no body, as HTTP/2
    may send it. An approval would then lose the revision that stands in it, so the body
    is read here.

    Raises:
        BadRequest: It is not an object, or the connection broke.
        LengthRequired: It came in pieces that this server does not put together.
        PayloadRejected: It is not JSON, not UTF-8, too large or too deep.
        UnsupportedMediaType: It is not sent as JSON.
    """
    http = request._request  # noqa: SLF001  its stream, past REST framework's guess
    declared = http.META.get("CONTENT_LENGTH") or ""
    is_json = _is_json(request.content_type)
    if declared not in ("", "0") and not is_json:
        # Before reading: the check for forged requests has read a form already.
        raise UnsupportedMediaType(request.content_type)
    try:
        raw = _bounded(http)
    except UnreadablePostError as error:
        raise BadRequest("The connection broke before the body was here.") from error
    if not raw:
        if "HTTP_TRANSFER_ENCODING" in http.META:
            raise LengthRequired
        if declared not in ("", "0"):
            raise BadRequest("The body is shorter than its Content-Length.")
        return {}
    if not is_json:
        raise UnsupportedMediaType(request.content_type)
    value = _loads(raw)
    if not isinstance(value, dict):
        raise BadRequest(f"The body must be a JSON object; got {kind_of(value)}.")
    return value


def kind_of(value: object) -> str:
    """Name a JSON value in the words of JSON, never its content."""
    return _KINDS[type(value)]


def _is_json(content_type: str) -> bool:
    kind, parameters = parse_header_parameters(content_type)
    # JSON is UTF-8 whatever its charset says; another one would be misread silently.
    charset = parameters.get("charset", "utf-8").lower()
    return kind == MEDIA_TYPE and charset in ("utf-8", "utf8", "us-ascii")


def _bounded(stream: Any) -> bytes:
    limit = hitl_settings.max_payload_bytes + SLACK_BYTES
    raw: bytes = stream.read(limit + 1)
    if len(raw) > limit:
        raise PayloadRejected(
            f"The body is larger than {limit} bytes.", reason="too_large"
        )
    return raw


def _loads(raw: bytes) -> JSONValue:
    return canonical.loads(
        raw, max_bytes=None, max_depth=hitl_settings.max_depth + SLACK_DEPTH
    )
