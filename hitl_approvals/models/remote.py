"""Rows of agents that are not Django code, and what is sent to the outside."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from hitl_approvals.enums import DeliveryStatus
from hitl_approvals.models.expressions import DbNow
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.ids import new_id
from hitl_approvals.models.queues import DEFAULT_QUEUE, ReviewQueue


class AgentClient(models.Model):
    """A remote agent: it raises interrupts over REST and acts on the decisions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(_("name"), max_length=100, unique=True)
    token_digest = models.CharField(max_length=64, unique=True, editable=False)
    """SHA-256 of the token; whoever reads the table cannot call with it."""
    token_hint = models.CharField(_("token"), max_length=16, default="", editable=False)
    """How the token begins, for people who have to tell two apart."""
    previous_digest = models.CharField(
        max_length=64, unique=True, null=True, editable=False
    )
    """SHA-256 of the token before this one, which is good until `previous_until`."""
    previous_until = models.DateTimeField(null=True, editable=False)
    queue = models.ForeignKey(
        ReviewQueue,
        on_delete=models.PROTECT,
        default=DEFAULT_QUEUE,
        related_name="+",
        verbose_name=_("queue"),
    )
    limits = CanonicalJSONField(_("limits"), default=dict, blank=True)
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
    """Where it goes: `webhook:<name of the endpoint>`."""
    event_type = models.CharField(_("event"), max_length=64)
    event_id = models.UUIDField(null=True)
    """The audit event that it tells of; one channel is told of it once."""
    subject_id = models.UUIDField()
    """The interrupt or turn."""
    body = CanonicalJSONField(_("body"))
    """What is sent, frozen with the change; its canonical text is signed."""
    status = models.CharField(
        _("status"),
        max_length=16,
        choices=DeliveryStatus.choices,
        default=DeliveryStatus.OWED,
    )
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True)
    give_up_at = models.DateTimeField(_("given up"), null=True)
    """No attempt begins after this."""
    lease_token = models.CharField(max_length=64, default="", editable=False)
    """Names the attempt that is under way; only that one may record what came of it."""
    last_status = models.PositiveSmallIntegerField(_("last answer"), null=True)
    """HTTP status of the last answer; NULL where none came."""
    last_error = models.TextField(_("last error"), default="", blank=True)
    created_at = models.DateTimeField(_("created"), db_default=DbNow(), editable=False)
    delivered_at = models.DateTimeField(_("delivered"), null=True)

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        default_permissions = ("view", "change")
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "event_id"], name="hitl_delivery_once_uniq"
            ),
        ]
        indexes = [
            models.Index(
                fields=["status", "next_attempt_at"], name="hitl_delivery_due_idx"
            ),
            models.Index(
                fields=["channel", "status", "next_attempt_at"],
                name="hitl_delivery_channel_idx",
            ),
            models.Index(fields=["status", "give_up_at"], name="hitl_delivery_end_idx"),
            # Counts the attempts that are under way to one channel.
            models.Index(
                fields=["channel", "lease_token"], name="hitl_delivery_lease_idx"
            ),
            models.Index(fields=["subject_id"], name="hitl_delivery_subject_idx"),
            models.Index(fields=["created_at", "id"], name="hitl_delivery_list_idx"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} to {self.channel}"


class DeliveryChannel(models.Model):
    """How a channel fares that has failed: a dead one is left alone for a while."""

    name = models.CharField(_("channel"), max_length=64, primary_key=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    """Attempts that failed since the last one that did not."""
    rests_until = models.DateTimeField(_("left alone until"), null=True)
    """No attempt begins before this; then one does, and the others wait for it."""
    failed_at = models.DateTimeField(_("last failure"), null=True)
    last_error = models.TextField(_("last error"), default="", blank=True)

    class Meta:
        verbose_name = _("delivery channel")
        verbose_name_plural = _("delivery channels")
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


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
