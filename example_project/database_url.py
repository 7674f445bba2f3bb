"""Turns the URL of a PostgreSQL database into Django's settings. Connects to nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


def postgresql_from_url(url: str) -> dict[str, Any]:
    """Describe the database that a URL names; `?host=` may be the folder of a socket.

    Raises:
        ValueError: It is not the URL of a PostgreSQL database.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ValueError(f"DATABASE_URL has to be postgresql://…, not {parts.scheme}")
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", "") or unquote(parts.hostname or ""),
        "PORT": options.pop("port", "") or str(parts.port or ""),
        "OPTIONS": options,
    }
