"""How interrupts and turns look on the wire. Only writes; reads of bodies are elsewhere."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from django.utils import timezone
from rest_framework import ISO_8601, serializers

from hitl_approvals import selectors
from hitl_approvals.api import redaction
from hitl_approvals.api.links import link
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.services.transactions import alias
from hitl_approvals.types import AgentPrincipal

MOST_FORKS = 100


class Text(serializers.CharField):
    """Text; the empty one stands in a column for "none", so it is null here."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(read_only=True, allow_null=True, **kwargs)

    def to_representation(self, value: Any) -> Any:
        return str(value) or None


class Moment(serializers.DateTimeField):
    """A time in UTC with `Z`, whatever zone and format the site shows elsewhere."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            read_only=True, format=ISO_8601, default_timezone=UTC, **kwargs
        )


class Json(serializers.JSONField):
    """A JSON value exactly as it is stored."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(read_only=True, **kwargs)


class InterruptListSerializer(serializers.Serializer[PendingInterrupt]):
    """An interrupt in a list: all but what can be long."""

    id = serializers.UUIDField(read_only=True)
    kind = serializers.CharField(read_only=True)
    status = serializers.CharField(read_only=True)
    revision = serializers.IntegerField(read_only=True)
    generation = serializers.IntegerField(read_only=True)
    turn = serializers.UUIDField(source="turn_id", read_only=True, allow_null=True)
    client = serializers.SerializerMethodField()
    client_ref = Text()
    agent = Text()
    thread_id = Text()
    tool_name = Text()
    tool_call_id = Text()
    tool_description = Text()
    args = serializers.SerializerMethodField()
    redacted = serializers.SerializerMethodField()
    args_digest = Text()
    payload = Json()
    response_schema = Json()
    tags = Json()
    queue = serializers.CharField(source="queue_id", read_only=True)
    priority = serializers.IntegerField(read_only=True)
    allowed_decisions = Json()
    policy = Json()
    decision = Text()
    decision_args = serializers.SerializerMethodField()
    decision_value = Json()
    reason = Text()
    decided_by = Text(source="decided_by_label")
    decided_via = Text()
    decided_at = Moment()
    requested_at = Moment()
    requested_by = serializers.SerializerMethodField()
    expires_at = Moment()
    execute_by = Moment()
    assignee = serializers.SerializerMethodField()
    claim_until = serializers.SerializerMethodField()
    consumed_at = Moment()
    outcome_due = Moment()
    outcome_status = Text()
    outcome = Json()
    resolved_at = Moment()
    url = serializers.SerializerMethodField()

    def get_args(self, row: PendingInterrupt) -> Any:
        """Return what the agent asked for."""
        return redaction.shown_args(row.args_text, self._hidden(row))

    def get_decision_args(self, row: PendingInterrupt) -> Any:
        """Return what a reviewer put in place of it."""
        return redaction.shown_args(row.decision_args_text, self._hidden(row))

    def get_redacted(self, row: PendingInterrupt) -> list[str]:
        """Return the names of the arguments that are shown as null."""
        return self._hidden(row)

    def _hidden(self, row: PendingInterrupt) -> list[str]:
        """Return what is hidden from whoever asks; an agent sees what it sent itself."""
        return [] if self._to_agent() else redaction.hidden_names(row)

    def _to_agent(self) -> bool:
        """Tell whether an agent client asks; the rows that it sees are its own."""
        return isinstance(self.context["request"].user, AgentPrincipal)

    def get_requested_by(self, row: PendingInterrupt) -> str | None:
        """Return the label of whoever started the turn."""
        return None if row.turn is None else row.turn.requested_by_label or None

    def get_assignee(self, row: PendingInterrupt) -> str | None:
        """Return the name of whoever holds this now."""
        held = selectors.is_held(row, timezone.now())
        return selectors.holder_name(row) if held else None

    def get_claim_until(self, row: PendingInterrupt) -> str | None:
        """Return until when somebody holds this."""
        if row.claim_until is None or not selectors.is_held(row, timezone.now()):
            return None
        return str(Moment().to_representation(row.claim_until))

    def get_client(self, row: PendingInterrupt) -> str | None:
        """Return the name of the remote agent that asks; null for turns of this site."""
        return None if row.client is None else row.client.name

    def get_url(self, row: PendingInterrupt) -> str:
        """Return the address of this interrupt."""
        return link(self.context["request"], "interrupt-detail", row.pk)


class InterruptSerializer(InterruptListSerializer):
    """An interrupt by itself."""

    args_schema = Json()
    # `context` is also what serializers call the request's surroundings; declared
    # fields are taken off the class, so both work.
    context = serializers.SerializerMethodField()  # type: ignore[assignment]
    submission = serializers.SerializerMethodField()

    def get_context(self, row: PendingInterrupt) -> Any:
        """Return what was going on when the agent asked."""
        agent = self._to_agent()
        return row.context if agent else redaction.shown_context(row.context, row)

    def get_submission(self, row: PendingInterrupt) -> str | None:
        """Return the request to the letter, to the agent that sent it and nobody else."""
        return (row.submission or None) if self._to_agent() else None


class TurnListSerializer(serializers.Serializer[AgentTurn]):
    """A turn in a list: all but what can be long, and what would be read row by row."""

    id = serializers.UUIDField(read_only=True)
    agent = serializers.CharField(read_only=True)
    agent_version = serializers.CharField(read_only=True)
    thread_id = serializers.CharField(read_only=True)
    status = serializers.CharField(read_only=True)
    undecided = serializers.IntegerField(read_only=True)
    error = Text()
    attempts = serializers.IntegerField(read_only=True)
    requested_by = Text(source="requested_by_label")
    created_at = Moment()
    finished_at = Moment()
    # `parent` is a word of serializers, too; see `context` above.
    parent = serializers.UUIDField(  # type: ignore[assignment]
        source="parent_id", read_only=True, allow_null=True
    )
    forked_at = Text()
    url = serializers.SerializerMethodField()

    def get_url(self, turn: AgentTurn) -> str:
        """Return the address of this turn."""
        return link(self.context["request"], "turn-detail", turn.pk)


class TurnSerializer(TurnListSerializer):
    """A turn by itself, as whoever started it may see it."""

    input = Json()
    output = Json()
    interrupts = serializers.SerializerMethodField()
    left_out = serializers.SerializerMethodField()
    forks = serializers.SerializerMethodField()

    def get_left_out(self, turn: AgentTurn) -> list[dict[str, Any]]:
        """Return the calls of unknown fate that a fork did not take over."""
        return selectors.left_out_of(turn)

    def get_forks(self, turn: AgentTurn) -> list[dict[str, str]]:
        """Return the newest turns that were forked from this one, oldest first."""
        request = self.context["request"]
        found = selectors.forks_of(turn, request.user).using(alias())[:MOST_FORKS]
        return [
            {
                "id": str(one.pk),
                "status": one.status,
                "url": link(request, "turn-detail", one.pk),
            }
            for one in reversed(found)
        ]

    def get_interrupts(self, turn: AgentTurn) -> list[dict[str, str]]:
        """Return where each interrupt of the turn stands, in the model's order."""
        # A replica may be behind the turn, which was read where it is written.
        known = PendingInterrupt.objects.using(alias()).filter(turn=turn.pk)
        rows = known.order_by("position", "pk").values_list("pk", "status")
        request = self.context["request"]
        return [
            {
                "id": str(pk),
                "status": status,
                "url": link(request, "interrupt-detail", pk),
            }
            for pk, status in rows
        ]
