"""Which texts every supported database can hold, and secrets taken out of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class Redactor:
    """Knows the secret texts of some calls and takes them out of all others."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Shorter ones would tear holes into unrelated words.
        self.secrets = sorted({one for one in secrets if len(one) > 3}, key=len)[::-1]

    @property
    def word(self) -> str:
        """What stands in place of a secret."""
        return "[hidden]"

    def clean(self, text: str) -> str:
        """Return the text with every secret replaced."""
        for secret in self.secrets:
            text = text.replace(secret, self.word)
        return text

    def inside(self, value: Any) -> Any:
        """Return a JSON value with every secret in its texts and names replaced."""
        if not self.secrets:
            return value
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, Mapping):
            pairs = value.items()
            return {self.clean(str(key)): self.inside(one) for key, one in pairs}
        if isinstance(value, (list, tuple)):
            return [self.inside(one) for one in value]
        return value


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, without the names in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts_in(one)


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
