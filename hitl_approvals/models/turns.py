"""AgentTurn: one execution of an agent on one input, over any number of pauses."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from hitl_approvals.enums import TurnStatus
from hitl_approvals.models.expressions import DbNow
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.ids import new_id

FINAL = [TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED]


class AgentTurn(models.Model):
    """One turn. `status='ready'` means that a run is owed; the row is the queue."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.CharField(_("agent"), max_length=100)
    agent_version = models.CharField(_("agent version"), max_length=64, default="1")
    thread_id = models.CharField(_("thread"), max_length=255)
    thread_key = models.CharField(max_length=64, editable=False)
    """SHA-256 of the thread: what `active_thread` holds while this turn has it."""
    active_thread = models.CharField(
        max_length=64, null=True, unique=True, editable=False
    )
    blocked = models.BooleanField(_("waits for its thread"), default=False)
    start_key = models.CharField(max_length=64, null=True, unique=True, editable=False)
    start_digest = models.CharField(max_length=70, default="", editable=False)
    """Digest of what was asked under `start_key`, to refuse another request with it."""

    input = CanonicalJSONField(_("input"), null=True)
    execute_options = CanonicalJSONField(_("options"), null=True)
    state = CanonicalJSONField(_("adapter state"), null=True)
    output = CanonicalJSONField(_("output"), null=True)
    error = models.TextField(_("error"), default="", blank=True)
    last_error = models.TextField(_("last error"), default="", blank=True)

    status = models.CharField(
        _("status"), max_length=16, choices=TurnStatus.choices, default=TurnStatus.READY
    )
    undecided = models.PositiveIntegerField(_("undecided"), default=0)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    max_attempts = models.PositiveIntegerField(_("most attempts"), default=5)
    next_run_at = models.DateTimeField(_("next run"), null=True)
    dispatched_at = models.DateTimeField(_("last hint"), null=True)
    hints = models.PositiveIntegerField(_("hints"), default=0)

    restarts = models.PositiveIntegerField(_("restarts"), default=0)
    """Part of every key: a restarted turn replays nothing of what it did before."""

    fence = models.PositiveBigIntegerField(_("fence"), default=0)
    lease_token = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(_("lease"), null=True)

    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        verbose_name=_("requested by"),
    )
    requested_by_label = models.CharField(max_length=255, default="", blank=True)
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="forks"
    )
    forked_at = models.CharField(max_length=64, default="", blank=True)

    created_at = models.DateTimeField(_("started"), db_default=DbNow(), editable=False)
    finished_at = models.DateTimeField(_("finished"), null=True, editable=False)
    events_head = models.CharField(max_length=70, default="", editable=False)
    events_count = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name = _("agent turn")
        verbose_name_plural = _("agent turns")
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=TurnStatus.values), name="hitl_turn_status_check"
            ),
            models.CheckConstraint(
                condition=Q(status=TurnStatus.SUSPENDED, undecided__gt=0)
                | (~Q(status=TurnStatus.SUSPENDED) & Q(undecided=0)),
                name="hitl_turn_undecided_check",
            ),
            models.CheckConstraint(
                condition=Q(
                    status=TurnStatus.RUNNING,
                    lease_token__isnull=False,
                    lease_until__isnull=False,
                    active_thread__isnull=False,
                )
                | (
                    ~Q(status=TurnStatus.RUNNING)
                    & Q(lease_token__isnull=True, lease_until__isnull=True)
                ),
                name="hitl_turn_lease_check",
            ),
            models.CheckConstraint(
                condition=Q(
                    status__in=FINAL,
                    active_thread__isnull=True,
                    finished_at__isnull=False,
                )
                | (~Q(status__in=FINAL) & Q(finished_at__isnull=True)),
                name="hitl_turn_final_check",
            ),
            models.CheckConstraint(
                condition=Q(status=TurnStatus.READY, next_run_at__isnull=False)
                | ~Q(status=TurnStatus.READY),
                name="hitl_turn_due_check",
            ),
            models.CheckConstraint(
                condition=Q(blocked=False) | Q(status=TurnStatus.READY),
                name="hitl_turn_blocked_check",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "next_run_at"], name="hitl_turn_due_idx"),
            models.Index(fields=["status", "lease_until"], name="hitl_turn_lease_idx"),
            models.Index(
                fields=["thread_key", "created_at"], name="hitl_turn_thread_idx"
            ),
            models.Index(fields=["created_at"], name="hitl_turn_created_idx"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.pk}"
