"""TurnStep: the journal of a turn and the ledger of its effects."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from hitl_approvals.enums import StepKind, StepStatus, ToolMode
from hitl_approvals.models.expressions import DbNow
from hitl_approvals.models.fields import CanonicalJSONField
from hitl_approvals.models.ids import new_id
from hitl_approvals.models.interrupts import PendingInterrupt
from hitl_approvals.models.turns import AgentTurn


class TurnStep(models.Model):
    """One recorded piece of a turn. Replayed, never executed a second time."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    turn = models.ForeignKey(AgentTurn, on_delete=models.PROTECT, related_name="steps")
    key = models.CharField(max_length=64)
    generation = models.PositiveIntegerField(default=1)
    position = models.PositiveIntegerField()
    kind = models.CharField(_("kind"), max_length=16, choices=StepKind.choices)
    name = models.CharField(_("name"), max_length=128)
    args_text = models.TextField(null=True)
    """Arguments of a call that nobody had to approve; a gated one's are on its row."""
    args_digest = models.CharField(max_length=70, default="", blank=True)
    """Digest of the arguments as they were requested."""
    status = models.CharField(_("status"), max_length=16, choices=StepStatus.choices)
    mode = models.CharField(max_length=16, choices=ToolMode.choices, default="")
    idempotency_key = models.CharField(max_length=64, null=True, unique=True)
    hard_deadline = models.DateTimeField(null=True)
    """Until then a process that passed the gate may still be in the call."""
    fence = models.PositiveBigIntegerField(default=0)
    result = CanonicalJSONField(_("result"), null=True)
    error = models.TextField(_("error"), default="", blank=True)
    interrupt = models.ForeignKey(
        PendingInterrupt, on_delete=models.PROTECT, null=True, related_name="steps"
    )
    started_at = models.DateTimeField(_("started"), db_default=DbNow())
    finished_at = models.DateTimeField(_("finished"), null=True)

    class Meta:
        verbose_name = _("turn step")
        verbose_name_plural = _("turn steps")
        constraints = [
            models.UniqueConstraint(
                fields=["turn", "key", "generation"], name="hitl_step_key_uniq"
            ),
            models.CheckConstraint(
                condition=Q(status__in=StepStatus.values), name="hitl_step_status_check"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=StepKind.values), name="hitl_step_kind_check"
            ),
            models.CheckConstraint(
                # Only a call that can be in flight may be open, and never for ever.
                condition=~Q(status=StepStatus.STARTED)
                | Q(
                    kind=StepKind.TOOL,
                    mode__in=[ToolMode.UNSAFE, ToolMode.IDEMPOTENT, ToolMode.LOOKUP],
                    hard_deadline__isnull=False,
                ),
                name="hitl_step_started_check",
            ),
        ]
        indexes = [
            models.Index(fields=["turn", "position"], name="hitl_step_turn_idx"),
            models.Index(
                fields=["status", "hard_deadline"], name="hitl_step_deadline_idx"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.status})"
