"""Sends one signed message, and says what came of it. Never inside a transaction.

Straight on sockets and `http.client`: the connection must go to the address that was
judged, with the certificate of the name; no redirect, proxy or cookie may lead it
elsewhere; and it must be over in time, however slowly the other side drips.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from urllib.parse import SplitResult, urlsplit

from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.text import cleaned
from hitl_approvals.webhooks import addresses
from hitl_approvals.webhooks.endpoints import Endpoint
from hitl_approvals.webhooks.retry_after import seconds_until
from hitl_approvals.webhooks.signing import signature, why_not_secret

USER_AGENT = "django-hitl-approvals"
GONE = 410
MOST_ERROR = 500
PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt. Nothing of the answer's body is kept."""

    status: int | None = None
    """The HTTP status; None where none came."""
    error: str = ""
    """Why it does not count as delivered, in a sentence."""
    retry_after: float | None = None
    """Seconds that the other side asked to be left alone for."""

    @property
    def delivered(self) -> bool:
        return not self.error

    @property
    def gone(self) -> bool:
        """Whether the other side says that nobody will ever listen there again."""
        return self.status == GONE


def send(endpoint: Endpoint, message_id: str, body: str) -> Answer:
    """Send a text, which is signed as it is sent; whatever fails is an answer, too.

    Args:
        endpoint: Where to.
        message_id: The same in every attempt, so that the receiver knows a repeat.
        body: JSON text in ASCII.
    """
    seconds = hitl_settings.webhook_timeout.total_seconds()
    try:
        url = _checked(endpoint)
        headers = _headers(endpoint, message_id, body)
        status, retry_after = _post(url, body.encode(), headers, seconds)
    except (addresses.Refused, MissingExtra, _Unsendable) as error:
        return Answer(error=cleaned(str(error), MOST_ERROR))
    except ssl.SSLCertVerificationError as error:
        return Answer(error=f"The certificate was refused: {error.verify_message}.")
    except http.client.RemoteDisconnected:
        return Answer(error="The connection was closed without an answer.")
    except http.client.HTTPException as error:
        # Its text would repeat what came, which can be anything.
        return Answer(error=f"The answer was no HTTP ({type(error).__name__}).")
    except OSError as error:
        return Answer(error=cleaned(f"{type(error).__name__}: {error}", MOST_ERROR))
    if 200 <= status < 300:
        return Answer(status)
    return Answer(status, _why_not(status), retry_after)


class _Unsendable(Exception):
    """The settings do not let this be sent, or it was not over in time."""


def _why_not(status: int) -> str:
    reason = http.client.responses.get(status, "")
    said = f"The answer was {status} {reason}".rstrip()
    if 300 <= status < 400:
        return f"{said}; redirects are not followed."
    return f"{said}."


def _checked(endpoint: Endpoint) -> SplitResult:
    """Return the parts of the endpoint's URL.

    Raises:
        _Unsendable: The settings are wrong; the checks say so as well.
    """
    why = why_not_url(endpoint.url)
    if why is not None:
        raise _Unsendable(f"The URL of endpoint {endpoint.name} {why}.")
    if not endpoint.secrets:
        raise _Unsendable(f"Endpoint {endpoint.name} has no secret to sign with.")
    for secret in endpoint.secrets:
        if (wrong := why_not_secret(secret)) is not None:
            raise _Unsendable(f"A secret of endpoint {endpoint.name} {wrong}.")
    return urlsplit(endpoint.url)


def why_not_url(url: object) -> str | None:
    """Say what is wrong with a URL, without repeating it; None if nothing is."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable():
        return "must be ASCII text; write the name of the host in punycode"
    try:
        parts, port = urlsplit(url), urlsplit(url).port
    except ValueError:
        return "cannot be read"
    allowed = ("https", "http") if hitl_settings.webhook_allow_http else ("https",)
    faults = {
        f"must begin with {' or '.join(f'{one}://' for one in allowed)}": (
            parts.scheme not in allowed
        ),
        "names no host": not parts.hostname,
        "holds a user name or a password": "@" in parts.netloc,
        "has a fragment": bool(parts.fragment),
        "holds a space": " " in url,
        "names port 0": port == 0,
    }
    return next((text for text, is_so in faults.items() if is_so), None)


def _headers(endpoint: Endpoint, message_id: str, body: str) -> dict[str, str]:
    now = datetime.now(UTC)
    signed = signature(
        endpoint.secrets, message_id=message_id, timestamp=now, body=body
    )
    return {
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Connection": "close",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signed,
    }


def _post(
    url: SplitResult, body: bytes, headers: dict[str, str], seconds: float
) -> tuple[int, float | None]:
    """Make the request; return its status and what its `Retry-After` says.

    Raises:
        addresses.Refused: The host may not be called.
        _Unsendable: It was not over in time.
        OSError, http.client.HTTPException: It failed.
    """
    ends = monotonic() + seconds
    host = url.hostname or ""
    port = url.port or PORTS[url.scheme]
    found = addresses.resolve(host, port, seconds)
    raw = _connected(found, port, ends)
    with _cut_off(raw, ends - monotonic()) as cut:
        try:
            with closing(_over(raw, url.scheme, host, port)) as connection:
                path = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
                connection.request("POST", path, body, headers)
                with closing(connection.getresponse()) as answer:
                    # To http.client a connection that is cut off ends the headers.
                    if cut.is_set():
                        raise TimeoutError
                    # The body is not read: nothing in it could change what is done.
                    return answer.status, seconds_until(
                        answer.headers.get("Retry-After"), answer.headers.get("Date")
                    )
        except (OSError, http.client.HTTPException) as error:
            if cut.is_set() or isinstance(error, TimeoutError):
                raise _Unsendable(
                    f"There was no answer within {seconds:g} s."
                ) from error
            raise
        finally:
            raw.close()


def _connected(found: list[addresses.Address], port: int, ends: float) -> socket.socket:
    """Return a connection to the first address that takes one.

    Raises:
        OSError: None does; this is what the last one said.
    """
    failure: OSError = TimeoutError("there was no time left to connect")
    for address in found:
        left = ends - monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((str(address), port), timeout=left)
        except OSError as error:
            failure = error
    raise failure


def _over(
    raw: socket.socket, scheme: str, host: str, port: int
) -> http.client.HTTPConnection:
    """Return an HTTP connection on a socket; with TLS, for the name that was asked for."""
    if scheme == "http":
        plain = http.client.HTTPConnection(host, port)
        plain.sock = raw
        return plain
    context = ssl.create_default_context()
    secure = http.client.HTTPSConnection(host, port, context=context)
    secure.sock = context.wrap_socket(raw, server_hostname=host)
    return secure


@contextmanager
def _cut_off(raw: socket.socket, seconds: float) -> Iterator[threading.Event]:
    """Shut a connection down when the time is up, whatever it is busy with.

    A time limit of a socket begins anew with every byte that drips in. The twin is
    another handle on the same connection; TLS takes the first one for itself.
    """
    cut, twin = threading.Event(), raw.dup()

    def shut_down() -> None:
        cut.set()
        with suppress(OSError):
            twin.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(seconds, 0), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield cut
    finally:
        timer.cancel()
        timer.join()
        twin.close()
