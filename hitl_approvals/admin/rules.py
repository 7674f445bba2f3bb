"""Why a call was gated, in the reader's language: the sentence is kept as it was judged."""

from __future__ import annotations

import re

from django.utils.translation import gettext, gettext_noop

_SENTENCES = [
    (re.compile(pattern, re.DOTALL), sentence)
    for pattern, sentence in (
        (r"Every call is gated\.", gettext_noop("Every call is gated.")),
        (
            r"Every call of this tool is gated\.",
            gettext_noop("Every call of this tool is gated."),
        ),
        (
            r"(?P<tool>\S+) is on the list of gated tools\.",
            gettext_noop("%(tool)s is on the list of gated tools."),
        ),
        (
            r"(?P<tool>\S+) is not on the list of free tools\.",
            gettext_noop("%(tool)s is not on the list of free tools."),
        ),
        (
            r"The policy (?P<policy>\S+) returned True\.",
            gettext_noop("The policy %(policy)s returned True."),
        ),
        (
            r"The policy (?P<policy>\S+) returned the tags (?P<tags>.+)\.",
            gettext_noop("The policy %(policy)s returned the tags %(tags)s."),
        ),
    )
]


def reason(why: str) -> str:
    """Translate one of our own sentences; whatever else was written stays as it is."""
    for pattern, sentence in _SENTENCES:
        found = pattern.fullmatch(why)
        if found:
            words = gettext(sentence)
            return words % found.groupdict() if found.groupdict() else words
    return why
