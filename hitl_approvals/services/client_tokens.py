"""Tokens of agent clients: made once, shown once, kept as a digest. Writes nothing."""

from __future__ import annotations

import hashlib
import re
import secrets

from django.db.models import Q

from hitl_approvals.models import AgentClient, DbNow
from hitl_approvals.services.transactions import alias

PREFIX = "hac_"
"""How every token begins, so that it is told from what the site itself takes."""
HINT = 10
"""Characters of a token that are kept, for people who have to tell two apart."""
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{32,128}}")
_UNUSABLE = "!"
"""What no digest begins with."""


def new_token() -> str:
    """Return a token with 256 bits that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """Return what the table keeps of a token.

    One hash without salt is enough: there is no list of likely tokens to try.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def no_digest() -> str:
    """Return what stands in place of a digest where no token is let in."""
    return _UNUSABLE + secrets.token_hex(31)


def is_digest(text: str) -> bool:
    """Tell whether a token with this digest could be let in."""
    return not text.startswith(_UNUSABLE)


def authenticate(token: str) -> AgentClient | None:
    """Return the client that a token is of; None if it is unknown, over or revoked.

    The database looks for the digest, so how long that takes says nothing of any token.
    """
    if _TOKEN.fullmatch(token) is None:
        return None
    digest = digest_of(token)
    before = Q(previous_digest=digest, previous_until__gt=DbNow())
    known = AgentClient.objects.using(alias()).filter(revoked_at__isnull=True)
    return known.filter(Q(token_digest=digest) | before).first()
