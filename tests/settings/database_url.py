"""Turns a database URL into Django's settings. Connects to nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

ENGINES = {
    "mariadb": "django.db.backends.mysql",
    "mysql": "django.db.backends.mysql",
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
}


def database_from_url(url: str, *, name: str) -> dict[str, Any]:
    """Describe the database `name` on the server that a URL points at.

    Both names are the same on purpose: a worker process that a test starts reads these
    settings anew and has to meet the test's own database.

    Raises:
        ValueError: The URL's scheme is not that of a supported server.
    """
    parts = urlsplit(url)
    if parts.scheme not in ENGINES:
        expected = ", ".join(ENGINES)
        raise ValueError(f"expected one of {expected} as scheme, got {parts.scheme!r}")
    options = dict(parse_qsl(parts.query))
    # libpq's way to name the folder of a UNIX socket.
    host = options.pop("host", "") or unquote(_host(parts.netloc))
    return {
        "ENGINE": ENGINES[parts.scheme],
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": options.pop("port", "") or str(parts.port or ""),
        "OPTIONS": options,
        "TEST": {"NAME": name},
    }


def _host(netloc: str) -> str:
    # `SplitResult.hostname` lowers the case, which is wrong for a folder's name.
    address = netloc.rpartition("@")[2]
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0]
