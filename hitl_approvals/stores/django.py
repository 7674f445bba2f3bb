"""Interrupts in the site's own database: shown in the review queue, audited, never lost.

A request is a row of a remote agent. Whoever asks and whoever resumes are processes of
one `AgentClient`, named when the store is made. Rows and settings are first needed when
the store is used, not when it is imported.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from hitl_approvals.decisions import Decision
from hitl_approvals.stores.base import InterruptRecord, Records
from hitl_approvals.types import Person

if TYPE_CHECKING:
    from hitl_approvals.stores.interrupt_rows import InterruptRows


class DjangoInterruptStore:
    """Interrupts as rows of the site, in the tables that `manage.py migrate` makes.

    An id that is a UUID is the row's own id, so that the admin, REST and
    `services.decide` know the interrupt by it. Any other is kept as `client_ref`.

    Args:
        client: Name of the `AgentClient` whose requests these are; made when needed.
            Stores of other names do not see them.
        queue: Slug of the review queue; the client's own unless given.
        expires_in: Time to decide; the site's `EXPIRES_IN` unless given.
        execute_within: Time from approval to `take`; `EXECUTE_WITHIN` unless given.
        outcome_within: Time from `take` to `report`; `OUTCOME_WITHIN` unless given.
    """

    def __init__(
        self,
        client: str = "interrupt-store",
        *,
        queue: str | None = None,
        expires_in: timedelta | None = None,
        execute_within: timedelta | None = None,
        outcome_within: timedelta | None = None,
    ) -> None:
        self._client = client
        self._options: dict[str, Any] = {
            "queue": queue,
            "expires_in": expires_in,
            "execute_within": execute_within,
            "outcome_within": outcome_within,
        }

    def save(self, record: InterruptRecord) -> None:
        """Ask for a decision; the same id with the same content changes nothing.

        An id is used once: what was withdrawn or settled does not come back by it.

        Raises:
            InterruptConflict: The id is in use for another request.
            ClientNotAllowed: The client was revoked.
            PayloadRejected: The request is not JSON, too large or too deep.
        """
        self._rows.save(record)

    def load(self, interrupt_id: str) -> InterruptRecord | None:
        """Return an interrupt that is not settled, with its decision if there is one."""
        return self._rows.load(interrupt_id)

    def take(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Fetch a decision; None if there is none, or another key has it.

        An approval must be fetched before its `execute_by`. The row stays, and is given
        again to the same key; without a `report` it comes to a person as in doubt. A
        refusal or an expiry is settled by this.

        Raises:
            UnsafeContext: A transaction is open: a rollback would forget the claim.
            ClientNotAllowed: The client was revoked.
            SnapshotMismatch: The stored arguments are not the ones that were decided.
        """
        return self._rows.take(interrupt_id, key=key)

    def release(self, interrupt_id: str, *, key: str) -> None:
        """Give an approval back that this key has and did not use; else change nothing.

        It can be taken again, by any key, before its `execute_by`.
        """
        self._rows.release(interrupt_id, key=key)

    def delete(self, interrupt_id: str) -> None:
        """Withdraw a request; one that is over, or was never there, is no error.

        Raises:
            AlreadyConsumed: Somebody took it and may have acted; `report` instead.
            TransitionNotAllowed: It is in doubt, and for a person to settle.
        """
        self._rows.delete(interrupt_id)

    def list(self, prefix: str = "") -> Records:
        """Return what is not settled, ordered by id; the prefix of ids is literal."""
        return self._rows.list(prefix)

    def schema(self) -> str:
        """Return the reference DDL of the tables, in the dialect of this database."""
        from hitl_approvals.services.transactions import alias
        from hitl_approvals.stores.ddl import ddl

        return ddl(alias())

    def decide(
        self,
        interrupt_id: str,
        decision: Decision,
        *,
        by: Person | None = None,
        via: str = "python",
    ) -> None:
        """Record a decision, as `services.decide` does.

        Raises:
            InterruptNotFound: There is no such interrupt.
            TransitionNotAllowed: It is decided, expired or withdrawn already.
            HitlApprovalsError: The decision was refused; nothing was stored.
        """
        self._rows.decide(interrupt_id, decision, by=by, via=via)

    def report(
        self, interrupt_id: str, *, key: str, status: str, outcome: Any = None
    ) -> None:
        """Record what came of a taken call: `succeeded`, `failed` or `unknown`.

        A result that cannot be stored does not hide that the call ran.

        Raises:
            InterruptNotFound: There is no such interrupt.
            AlreadyConsumed: Another key has it.
            TransitionNotAllowed: Nobody took it.
        """
        self._rows.report(interrupt_id, key=key, status=status, outcome=outcome)

    async def asave(self, record: InterruptRecord) -> None:
        """Do what `save` does, in Django's thread for the database."""
        await sync_to_async(self.save)(record)

    async def aload(self, interrupt_id: str) -> InterruptRecord | None:
        """Do what `load` does, in Django's thread for the database."""
        return await sync_to_async(self.load)(interrupt_id)

    async def atake(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Do what `take` does, in Django's thread for the database."""
        return await sync_to_async(self.take)(interrupt_id, key=key)

    async def arelease(self, interrupt_id: str, *, key: str) -> None:
        """Do what `release` does, in Django's thread for the database."""
        await sync_to_async(self.release)(interrupt_id, key=key)

    async def adelete(self, interrupt_id: str) -> None:
        """Do what `delete` does, in Django's thread for the database."""
        await sync_to_async(self.delete)(interrupt_id)

    async def alist(self, prefix: str = "") -> Records:
        """Do what `list` does, in Django's thread for the database."""
        return await sync_to_async(self.list)(prefix)

    async def adecide(
        self,
        interrupt_id: str,
        decision: Decision,
        *,
        by: Person | None = None,
        via: str = "python",
    ) -> None:
        """Do what `decide` does, in Django's thread for the database."""
        await sync_to_async(self.decide)(interrupt_id, decision, by=by, via=via)

    async def areport(
        self, interrupt_id: str, *, key: str, status: str, outcome: Any = None
    ) -> None:
        """Do what `report` does, in Django's thread for the database."""
        await sync_to_async(self.report)(
            interrupt_id, key=key, status=status, outcome=outcome
        )

    @property
    def _rows(self) -> InterruptRows:
        from hitl_approvals.stores.interrupt_rows import InterruptRows

        return InterruptRows(self._client, self._options)
