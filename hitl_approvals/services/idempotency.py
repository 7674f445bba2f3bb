"""once(): what carries an idempotency key is done once, however often it is sent.

For requests whose row has no place for a key of its own, as decisions and starts have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import KeyReused
from hitl_approvals.models import DbNow, IdempotencyRecord, db_now_plus
from hitl_approvals.services.transactions import alias, run_atomic
from hitl_approvals.types import Person

DONE = 200
"""What is stored of an answer: that it was one. The row itself is shown as it is by then."""


def once(
    verb: str,
    subject_id: UUID | str,
    work: Callable[[], object],
    *,
    by: Person | None,
    key: str | None,
    body: Any = None,
) -> bool:
    """Do `work` unless the same request was done before; without a key always.

    Joins the caller's transaction. The record is the first thing that is written, so of
    two that come together with one key the second waits and finds it; and it stands and
    falls with the change, so that a key whose request was refused may be used again.

    Args:
        verb: What is asked for, as a name.
        subject_id: The row that it is about.
        work: A service that joins a caller's transaction. It reads the row by itself.
        by: Who asks; a key belongs to whoever used it.
        key: The idempotency key as it was sent.
        body: What was asked, as JSON, to tell a repeat from another request.

    Returns:
        Whether the request was done before, and nothing was written now.

    Raises:
        KeyReused: The key stands for another request.
    """
    if key is None:
        work()
        return False
    who = "" if by is None else str(by.pk)
    subject = _named(subject_id)
    scope = canonical.key_digest("once", verb, subject, who)
    asked = IdempotencyRecord(
        scope=scope,
        key=canonical.key_digest("key", key),
        body_digest=canonical.digest(
            canonical.dumps(body, max_bytes=None, max_depth=None)
        ),
        response_status=DONE,
        response={"subject": subject},
    )

    def begin_and_work() -> bool:
        if not _begin(asked):
            return True
        work()
        return False

    return run_atomic(begin_and_work)


def forget_old(*, limit: int) -> int:
    """Delete the oldest records, once nobody can expect an answer from them any more.

    Looks at no more rows than the limit: keys of the table are in the order of time.
    """
    found = IdempotencyRecord.objects.using(alias())
    oldest = list(found.order_by("pk").values_list("pk", flat=True)[:limit])
    if not oldest:
        return 0
    kept_since = db_now_plus(-hitl_settings.idempotency_kept)
    due = found.filter(pk__in=oldest, created_at__lt=kept_since)
    keys = list(due.values_list("pk", flat=True))
    if not keys:
        return 0

    def work() -> int:
        deleted, _by_model = found.filter(pk__in=keys).delete()
        return deleted

    return run_atomic(work)


def _named(subject_id: UUID | str) -> str:
    """Return one spelling of an id; what is none leads to a refusal anyway."""
    try:
        return str(UUID(str(subject_id)))
    except ValueError:
        return str(subject_id)


def _begin(asked: IdempotencyRecord) -> bool:
    """Write the record of a request; False if it is there already.

    Raises:
        KeyReused: It is there for another request.
    """
    asked.created_at = DbNow()
    try:
        # A savepoint: the transaction, which may be the caller's, goes on after it.
        with transaction.atomic(using=alias()):
            asked.save(using=alias(), force_insert=True)
    except IntegrityError:
        found = _found(asked)
        if found is None:
            raise
        if found != asked.body_digest:
            raise KeyReused(
                "This key was already used for another request; nothing was changed. "
                "Send a new key to mean a new request."
            ) from None
        return False
    return True


def _found(asked: IdempotencyRecord) -> str | None:
    stored = IdempotencyRecord.objects.using(alias())
    same = stored.filter(scope=asked.scope, key=asked.key)
    return same.values_list("body_digest", flat=True).first()
