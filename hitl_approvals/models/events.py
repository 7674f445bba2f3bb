"""InterruptEvent: the append-only, hash-chained audit trail."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import models
from django.utils.translation import gettext_lazy as _

from hitl_approvals import canonical
from hitl_approvals.enums import EventType
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.ids import new_id

HASHED = (
    "subject_id",
    "sequence",
    "turn_id",
    "interrupt_id",
    "type",
    "at",
    "actor_id",
    "actor",
    "via",
    "on_behalf_of",
    "status",
    "decision",
    "generation",
    "revision",
    "digest_proposed",
    "digest_shown",
    "digest_run",
    "execute_by",
    "detail",
    "previous_hash",
)
"""What the hash covers: every column but the key and the hash itself."""


class InterruptEvent(models.Model):
    """One transition. No foreign keys: it outlives every row that it names.

    The chain belongs to a subject, an interrupt or a turn; its head and length stand on
    that row and move in the same UPDATE as the transition. A trigger refuses UPDATE.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    subject_id = models.UUIDField()
    sequence = models.PositiveIntegerField()
    turn_id = models.UUIDField(null=True)
    interrupt_id = models.UUIDField(null=True)
    type = models.CharField(_("event"), max_length=32, choices=EventType.choices)
    at = models.DateTimeField(_("when"))
    actor_id = models.CharField(max_length=64, default="", blank=True)
    actor = models.CharField(_("who"), max_length=255, default="", blank=True)
    via = models.CharField(_("door"), max_length=32, default="", blank=True)
    on_behalf_of = models.CharField(max_length=255, default="", blank=True)
    status = models.CharField(_("status after"), max_length=16)
    decision = models.CharField(max_length=16, default="", blank=True)
    generation = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=1)
    digest_proposed = models.CharField(max_length=70, default="", blank=True)
    digest_shown = models.CharField(max_length=70, default="", blank=True)
    digest_run = models.CharField(max_length=70, default="", blank=True)
    execute_by = models.DateTimeField(null=True)
    detail = CanonicalJSONField(_("detail"), null=True)
    previous_hash = models.CharField(max_length=70, default="", blank=True)
    hash = models.CharField(max_length=70)

    class Meta:
        verbose_name = _("audit event")
        verbose_name_plural = _("audit events")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["subject_id", "sequence"], name="hitl_event_sequence_uniq"
            ),
        ]
        indexes = [
            models.Index(fields=["turn_id", "sequence"], name="hitl_event_turn_idx"),
            models.Index(fields=["type", "at"], name="hitl_event_type_idx"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.subject_id} #{self.sequence}"


def event_hash(event: InterruptEvent) -> str:
    """Return the digest over an event's content and its predecessor's hash."""
    body = {name: _plain(getattr(event, name)) for name in HASHED}
    return canonical.digest(canonical.dumps(body))


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        # Milliseconds: what every supported database gives back unchanged.
        return value.astimezone(UTC).isoformat(timespec="milliseconds")
    return value
