"""Rows of agents that are not Django code, and what is sent to the outside."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from hitl_approvals.models.expressions import DbNow
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.ids import new_id
from hitl_approvals.models.queues import DEFAULT_QUEUE, ReviewQueue


class AgentClient(models.Model):
    """A remote agent: it raises interrupts over REST and acts on the decisions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(_("name"), max_length=100, unique=True)
    token_digest = models.CharField(max_length=64, unique=True, editable=False)
    queue = models.ForeignKey(
        ReviewQueue,
        on_delete=models.PROTECT,
        default=DEFAULT_QUEUE,
        related_name="+",
        verbose_name=_("queue"),
    )
    limits = CanonicalJSONField(_("limits"), default=dict)
    created_at = models.DateTimeField(_("created"), db_default=DbNow(), editable=False)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("agent client")
        verbose_name_plural = _("agent clients")

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One message to the outside, written with the change that it tells of."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    channel = models.CharField(_("channel"), max_length=64)
    event_type = models.CharField(_("event"), max_length=64)
    subject_id = models.UUIDField()
    body = CanonicalJSONField(_("body"))
    status = models.CharField(
        _("status"),
        max_length=16,
        choices=[
            ("owed", _("owed")),
            ("delivered", _("delivered")),
            ("given_up", _("given up")),
        ],
        default="owed",
    )
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    last_error = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(_("created"), db_default=DbNow(), editable=False)
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        indexes = [
            models.Index(
                fields=["status", "next_attempt_at"], name="hitl_delivery_due_idx"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} to {self.channel}"


class IdempotencyRecord(models.Model):
    """The stored answer to a request that carried an idempotency key."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    scope = models.CharField(max_length=64)
    """Hash of who asked and for which operation."""
    key = models.CharField(max_length=64)
    """SHA-256 of the key as it was sent."""
    body_digest = models.CharField(max_length=70)
    response_status = models.PositiveSmallIntegerField()
    response = CanonicalJSONField()
    created_at = models.DateTimeField(db_default=DbNow(), editable=False)

    class Meta:
        verbose_name = _("idempotency record")
        verbose_name_plural = _("idempotency records")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "key"], name="hitl_idempotency_key_uniq"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope[:8]} {self.key[:8]}"
