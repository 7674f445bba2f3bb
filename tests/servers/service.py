"""What is known of a server in use, and the order in which one is looked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

CONNECT_SECONDS = 3


class ServerMissingError(RuntimeError):
    """A server that the tests need can neither be reached nor started."""


class ServerUnreachableError(ServerMissingError):
    """Somebody named a server, and it does not answer."""


@dataclass(frozen=True)
class Service:
    """A server in use, and how it was come by."""

    role: str
    product: str
    url: str
    origin: str
    variables: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        """Say in one line what is used, where, and why this one."""
        return f"{self.role}: {self.product} at {address(self.url)} ({self.origin})"

    def exports(self) -> dict[str, str]:
        """Return the variables by which a test process finds this server."""
        return dict.fromkeys(self.variables, self.url)


@dataclass(frozen=True)
class Kind:
    """How one kind of server is looked for."""

    variables: tuple[str, ...]
    """Environment variables that may name a server, the strongest first."""
    schemes: tuple[str, ...]
    """The URL schemes by which a variable is known to mean this kind."""
    local: str
    """Where such a server listens if somebody simply installed it."""
    version: Callable[[str], str]
    """Connects, and returns product and version."""
    errors: tuple[type[Exception], ...]
    """What `version` raises when there is no server."""
    start: Callable[[], AbstractContextManager[str]]
    """Starts a server of our own and yields its URL."""

    def locate(self, stack: ExitStack) -> tuple[str, str, str]:
        """Return URL, product and origin; what is started ends with the stack.

        Raises:
            ServerUnreachableError: The one that is named does not answer.
            ServerMissingError: None is named, runs here or can be started.
        """
        named = self.named()
        if named:
            variable, url = named
            try:
                return url, self.version(url), f"named by {variable}"
            except self.errors as error:
                reason = str(error).strip().partition("\n")[0]
                raise ServerUnreachableError(
                    f"the server named by {variable} does not answer: {reason}"
                ) from error
        try:
            return self.local, self.version(self.local), "found"
        except self.errors:
            url = stack.enter_context(self.start())
            return url, self.version(url), "started"

    def named(self, environ: Mapping[str, str] = os.environ) -> tuple[str, str] | None:
        """Return the first variable that names such a server, and its URL.

        Raises:
            ServerUnreachableError: A variable of our own holds a URL of another kind.
        """
        for variable in self.variables:
            url = environ.get(variable, "")
            if urlsplit(url).scheme in self.schemes:
                return variable, url
            if url and variable.startswith("HITL_TEST_"):
                expected = " or ".join(self.schemes)
                raise ServerUnreachableError(
                    f"{variable} has to be a URL of {expected}"
                )
        return None


def in_ci() -> bool:
    """Tell whether a missing server has to fail the run."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def address(url: str) -> str:
    """Return where a URL points at, without user and password."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    folder = query.get("host") or query.get("unix_socket")
    if folder:
        return folder[0]
    place = parts.netloc.rpartition("@")[2]
    number = parts.path.strip("/") if parts.scheme.startswith("redis") else ""
    return f"{place}/{number}" if number else place
