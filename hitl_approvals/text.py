"""Which texts every supported database can hold. Pure."""

from __future__ import annotations


def storable(text: str) -> bool:
    """Tell whether a text column can hold this: no NUL, no lone surrogates."""
    return "\x00" not in text and _encodable(text)


def cleaned(text: str, limit: int) -> str:
    """Return text that a column can hold, cut to `limit` characters.

    For texts that others wrote and that must not fail to be stored: error messages,
    ids that a model made up. What cannot be stored becomes U+FFFD.
    """
    if not _encodable(text):
        text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")[:limit]


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
