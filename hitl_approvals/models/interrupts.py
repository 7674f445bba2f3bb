"""PendingInterrupt: one request for a human decision. It keeps its name once decided."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from hitl_approvals.enums import (
    DecisionType,
    InterruptKind,
    InterruptStatus,
    OnExpiry,
    OutcomeStatus,
)
from hitl_approvals.models.expressions import DbNow
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.ids import new_id
from hitl_approvals.models.queues import DEFAULT_QUEUE, ReviewQueue
from hitl_approvals.models.remote import AgentClient
from hitl_approvals.models.turns import AgentTurn

S = InterruptStatus


class PendingInterrupt(models.Model):
    """A gated tool call or a question, frozen as the agent made it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    turn = models.ForeignKey(
        AgentTurn, on_delete=models.PROTECT, null=True, related_name="interrupts"
    )
    client = models.ForeignKey(
        AgentClient,
        on_delete=models.PROTECT,
        null=True,
        related_name="interrupts",
        db_index=False,  # the first column of two indexes below
    )
    client_ref = models.CharField(max_length=500, default="", blank=True)
    """The remote agent's own name for the request."""
    submission = models.TextField(default="", blank=True, editable=False)
    """A remote agent's request to the letter, as it came; columns lose spellings."""
    kind = models.CharField(_("kind"), max_length=16, choices=InterruptKind.choices)
    dedupe_key = models.CharField(max_length=64, unique=True, editable=False)
    call_key = models.CharField(max_length=64, default="", editable=False)
    """Key of the call or question within its turn, by which a fork finds it again."""
    after_step = models.PositiveIntegerField(default=0, editable=False)
    """How many steps of its turn were recorded when it was raised."""
    position = models.PositiveIntegerField(_("position in the turn"), default=0)
    agent = models.CharField(_("agent"), max_length=100, default="", blank=True)
    thread_id = models.CharField(_("thread"), max_length=255, default="", blank=True)

    tool_name = models.CharField(_("tool"), max_length=128, default="", blank=True)
    tool_call_id = models.CharField(max_length=255, default="", blank=True)
    tool_description = models.TextField(_("tool description"), default="", blank=True)
    args_text = models.TextField(_("arguments"), null=True)
    """Canonical text of the arguments as the tool's signature reads them: what is shown,
    and what runs if it is approved."""
    args = models.JSONField(null=True, editable=False)
    """A copy for filters; NULL where a database cannot hold the value. Never read back."""
    args_digest = models.CharField(max_length=70, default="", blank=True)
    """Digest of `args_text`."""
    requested_digest = models.CharField(max_length=70, default="", blank=True)
    """Digest of the model's own arguments: by it a replayed call is recognized."""
    args_schema = CanonicalJSONField(null=True)
    schema_digest = models.CharField(max_length=70, default="", blank=True)
    payload = CanonicalJSONField(_("question"), null=True)
    response_schema = CanonicalJSONField(null=True)
    context = CanonicalJSONField(_("context"), null=True)
    tags = CanonicalJSONField(_("tags"), default=list)

    queue = models.ForeignKey(
        ReviewQueue,
        on_delete=models.PROTECT,
        default=DEFAULT_QUEUE,
        related_name="+",
        verbose_name=_("queue"),
    )
    priority = models.SmallIntegerField(_("priority"), default=0)
    allowed_decisions = CanonicalJSONField(_("allowed decisions"), default=list)
    policy = CanonicalJSONField(_("why it is here"), default=dict)

    status = models.CharField(
        _("status"), max_length=16, choices=S.choices, default=S.PENDING
    )
    revision = models.PositiveIntegerField(_("revision"), default=1)
    generation = models.PositiveIntegerField(_("generation"), default=1)
    decision = models.CharField(
        _("decision"), max_length=16, choices=DecisionType.choices, null=True
    )
    decision_args_text = models.TextField(_("edited arguments"), null=True)
    decision_digest = models.CharField(max_length=70, default="", blank=True)
    """Digest of what may run; empty where nothing may."""
    decision_value = CanonicalJSONField(_("answer"), null=True)
    reason = models.TextField(_("reason"), default="", blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        verbose_name=_("decided by"),
    )
    decided_by_label = models.CharField(max_length=255, default="", blank=True)
    decided_via = models.CharField(max_length=32, default="", blank=True)
    decided_at = models.DateTimeField(_("decided"), null=True)
    decision_key = models.CharField(max_length=64, null=True, editable=False)
    decision_body = models.CharField(max_length=70, default="", editable=False)
    """Digest of the decision as it was sent, to tell a repeat from another request."""

    requested_at = models.DateTimeField(_("requested"), db_default=DbNow())
    expires_at = models.DateTimeField(_("decide by"), null=True)
    on_expiry = models.CharField(
        max_length=16, choices=OnExpiry.choices, default=OnExpiry.REJECT
    )
    execute_by = models.DateTimeField(_("start by"), null=True)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_constraint=False,
        verbose_name=_("in whose hands"),
    )
    claim_until = models.DateTimeField(null=True)

    consumed_at = models.DateTimeField(null=True)
    consume_key = models.CharField(max_length=64, null=True, editable=False)
    outcome_due = models.DateTimeField(null=True)
    outcome_status = models.CharField(
        _("outcome"),
        max_length=24,
        choices=OutcomeStatus.choices,
        default="",
        blank=True,
    )
    outcome = CanonicalJSONField(null=True)
    resolved_at = models.DateTimeField(_("resolved"), null=True)
    superseded_by = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="supersedes"
    )
    events_head = models.CharField(max_length=70, default="", editable=False)
    events_count = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        verbose_name = _("interrupt")
        verbose_name_plural = _("interrupts")
        permissions = [
            ("decide_pendinginterrupt", _("Can decide interrupts")),
            ("settle_pendinginterrupt", _("Can settle calls in doubt")),
            ("assign_pendinginterrupt", _("Can assign interrupts to people")),
            ("reveal_pendinginterrupt", _("Can reveal hidden arguments")),
            ("administer_pendinginterrupt", _("Can administer turns and queues")),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=S.values), name="hitl_int_status_check"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=InterruptKind.values), name="hitl_int_kind_check"
            ),
            models.CheckConstraint(
                condition=Q(decision__isnull=True)
                | Q(decision__in=DecisionType.values),
                name="hitl_int_decision_check",
            ),
            models.CheckConstraint(
                condition=Q(turn__isnull=False, client__isnull=True)
                | Q(turn__isnull=True, client__isnull=False),
                name="hitl_int_owner_check",
            ),
            models.CheckConstraint(
                condition=Q(kind=InterruptKind.QUESTION, tool_name="")
                | (
                    Q(kind=InterruptKind.TOOL_CALL, args_text__isnull=False)
                    & ~Q(tool_name="")
                    & ~Q(args_digest="")
                ),
                name="hitl_int_call_check",
            ),
            models.CheckConstraint(
                condition=~Q(status=S.PENDING)
                | Q(
                    decision__isnull=True,
                    decided_at__isnull=True,
                    decision_digest="",
                    resolved_at__isnull=True,
                ),
                name="hitl_int_pending_check",
            ),
            models.CheckConstraint(
                condition=~Q(status=S.DECIDED)
                | Q(
                    decision__isnull=False,
                    decided_at__isnull=False,
                    resolved_at__isnull=True,
                ),
                name="hitl_int_decided_check",
            ),
            models.CheckConstraint(
                condition=Q(status=S.RESOLVED, resolved_at__isnull=False)
                | (~Q(status=S.RESOLVED) & Q(resolved_at__isnull=True)),
                name="hitl_int_resolved_check",
            ),
            models.CheckConstraint(
                condition=Q(decision__isnull=True)
                | Q(decision__in=[DecisionType.REJECT, DecisionType.EXPIRE])
                | Q(decision=DecisionType.RESPOND, kind=InterruptKind.QUESTION)
                | (Q(kind=InterruptKind.TOOL_CALL) & ~Q(decision_digest="")),
                name="hitl_int_may_run_check",
            ),
            models.CheckConstraint(
                condition=Q(decision__isnull=True)
                | ~Q(decision=DecisionType.REJECT)
                | ~Q(reason=""),
                name="hitl_int_reason_check",
            ),
            models.CheckConstraint(
                condition=Q(decision__isnull=True)
                | Q(decision=DecisionType.EDIT, decision_args_text__isnull=False)
                | (~Q(decision=DecisionType.EDIT) & Q(decision_args_text__isnull=True)),
                name="hitl_int_edit_check",
            ),
            models.CheckConstraint(
                condition=Q(consumed_at__isnull=True) | Q(client__isnull=False),
                name="hitl_int_consumed_check",
            ),
            models.CheckConstraint(
                condition=Q(generation__gte=1, revision__gte=F("generation")),
                name="hitl_int_generation_check",
            ),
        ]
        indexes = [
            models.Index(
                fields=["status", "requested_at", "id"], name="hitl_int_status_idx"
            ),
            models.Index(
                fields=["queue", "status", "requested_at", "id"],
                name="hitl_int_queue_idx",
            ),
            models.Index(fields=["requested_at", "id"], name="hitl_int_requested_idx"),
            models.Index(fields=["status", "expires_at"], name="hitl_int_expiry_idx"),
            # What was fetched is `decided` too and must not be read over and over again.
            models.Index(
                fields=["status", "consumed_at", "execute_by"],
                name="hitl_int_lapse_idx",
            ),
            models.Index(fields=["status", "outcome_due"], name="hitl_int_outcome_idx"),
            models.Index(fields=["tool_name", "status"], name="hitl_int_tool_idx"),
            models.Index(fields=["assignee", "status"], name="hitl_int_assignee_idx"),
            # A search finds a thread by its beginning; PostgreSQL asks for the class.
            models.Index(
                fields=["thread_id"],
                name="hitl_int_thread_idx",
                opclasses=["varchar_pattern_ops"],
            ),
            models.Index(fields=["agent"], name="hitl_int_agent_idx"),
            # An agent client lists its own, and has only so many open.
            models.Index(
                fields=["client", "requested_at", "id"], name="hitl_int_client_idx"
            ),
            models.Index(
                fields=["client", "status", "consumed_at"],
                name="hitl_int_client_open_idx",
            ),
            # Holds all that the numbers of a period are counted from.
            models.Index(
                fields=["decided_at", "queue", "decision", "tool_name"],
                name="hitl_int_decided_idx",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name or self.get_kind_display()} {self.pk}"
