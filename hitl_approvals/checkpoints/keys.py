"""Names of any length as short keys that every database compares byte by byte."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

KEY_LENGTH = 32
"""128 bits of SHA-256 as hexadecimal digits."""
ID_LENGTH = 64
"""What ids of checkpoints and tasks may have; LangGraph's have 36."""

_BY_BYTE = {"postgresql": "C", "mysql": "utf8mb4_bin"}

if TYPE_CHECKING:
    CharField = models.CharField[Any, Any]
else:
    CharField = models.CharField


class KeyField(CharField):
    """Text that is compared and sorted byte by byte.

    MariaDB would take `A` for `a`, and PostgreSQL sort by the rules of a language.
    """

    if TYPE_CHECKING:
        # What django-stubs reads: text, or None where the column takes it.
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        found = super().db_parameters(connection)
        return {**found, "collation": _BY_BYTE.get(connection.vendor)}


@lru_cache(maxsize=1024)
def key_of(*parts: str) -> str:
    """Return the key of some texts; other texts, or a split elsewhere, give another."""
    digest = hashlib.sha256()
    for part in parts:
        # Whatever Python calls text has a key, lone surrogates too.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8))
        digest.update(data)
    return digest.hexdigest()[:KEY_LENGTH]


ROOT_NS = key_of("")
"""The namespace of the graph itself; its subgraphs have others."""


def slot_of(channel: str, version: object) -> str:
    """Return the key of a channel's value at a version."""
    return key_of(channel, str(version))


def checked_id(value: object, what: str) -> str:
    """Return an id as text.

    Raises:
        ValueError: It is longer than its column; some database would cut it off.
    """
    text = str(value)
    if len(text) > ID_LENGTH:
        raise ValueError(f"a {what} has at most {ID_LENGTH} characters: {text!r}")
    return text
