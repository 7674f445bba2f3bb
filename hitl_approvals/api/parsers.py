"""Reads the JSON body of a request, strictly and within bounds. Knows no field of it."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from django.http import QueryDict, UnreadablePostError
from django.utils.datastructures import MultiValueDict
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from hitl_approvals import canonical
from hitl_approvals.api.errors import BadRequest, LengthRequired
from hitl_approvals.canonical import printable
from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import PayloadRejected

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

MEDIA_TYPE = "application/json"
SLACK_BYTES = 65_536
"""Room in a body for what stands around the largest payload: names, reason, blanks."""
SLACK_DEPTH = 4
"""What a payload stands in at most: the body, its list, an entry and the decision."""

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
        # The size is bounded by what is read; the payload in it is measured by services.
        return canonical.loads(
            _bounded(stream),
            max_bytes=None,
            max_depth=hitl_settings.max_depth + SLACK_DEPTH,
        )


class BodyRequest(Request):
    """A request whose `data` is the JSON that came, and nothing but JSON.

    REST framework believes that a request without Content-Length has no body, as HTTP/2
    may send it, and reads the body as a form while it checks a session. An approval
    would then lose the revision that stands in it.
    """

    raw_body: bytes = b""
    """The body to the letter, once `data` was read."""

    @property
    def POST(self) -> QueryDict:  # type: ignore[override]  # noqa: N802  Django's name
        """Return no form: the check for forged requests takes its token from a header."""
        return QueryDict()

    def _parse(self) -> tuple[Any, MultiValueDict[str, Any]]:
        """Return the value in the body; no body at all is an empty object.

        Raises:
            BadRequest: The connection broke.
            LengthRequired: It came in pieces that this server does not put together.
            PayloadRejected: It is not JSON, not UTF-8, too large or too deep.
            UnsupportedMediaType: It is not sent as JSON.
        """
        no_files: MultiValueDict[str, Any] = MultiValueDict()
        declared = self._request.META.get("CONTENT_LENGTH") or "0"
        is_json = _is_json(self.content_type)
        packed = self._request.headers.get("Content-Encoding", "identity")
        if packed.strip().lower() != "identity":
            # A few bytes can be unpacked to more than any limit; nothing is unpacked.
            raise UnsupportedMediaType(f"{self.content_type}; {printable(packed, 40)}")
        if declared != "0" and not is_json:
            # Before reading: a middleware may have read a form already.
            raise UnsupportedMediaType(self.content_type)
        try:
            raw = _bounded(self._request)
        except UnreadablePostError as error:
            raise BadRequest(
                "The connection broke before the body was here."
            ) from error
        if not raw:
            if "HTTP_TRANSFER_ENCODING" in self._request.META:
                raise LengthRequired
            if declared != "0":
                raise BadRequest("The body is shorter than its Content-Length.")
            return {}, no_files
        if not is_json:
            raise UnsupportedMediaType(self.content_type)
        self.raw_body = raw
        return StrictJSONParser().parse(BytesIO(raw)), no_files


def read_object(request: Request) -> dict[str, JSONValue]:
    """Return the JSON object that a request carries.

    Raises:
        BadRequest: It is JSON, but not an object.
    """
    value: Any = request.data
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
