"""Interrupts for agents that run elsewhere: raised, fetched, reported, taken back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from hitl_approvals import services
from hitl_approvals.api import bodies, remote_bodies
from hitl_approvals.api.clients import client_of
from hitl_approvals.api.fresh import fresh
from hitl_approvals.api.links import link
from hitl_approvals.api.serializers import InterruptSerializer, Moment
from hitl_approvals.api.views import REPLAYED, ApprovalsViewSet, person
from hitl_approvals.enums import Door
from hitl_approvals.exceptions import InterruptNotFound
from hitl_approvals.models import AgentClient, PendingInterrupt
from hitl_approvals.services.withdrawing import withdraw_or_find
from hitl_approvals.types import ConsumedDecision

CLIENT_ONLY = frozenset({"create", "consume", "outcome", "give_back"})
"""What takes the token of an agent client."""


class RemoteActions(ApprovalsViewSet[PendingInterrupt]):
    """What an agent client does with its own requests."""

    client_only_actions = CLIENT_ONLY

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Ask for a decision; the same key and content is the same interrupt."""
        asked = remote_bodies.read_raise(request)
        receipt = services.raise_remote(
            _client(request),
            ref=asked.key,
            submission=asked.text,
            limited=True,
            via=Door.API,
            **asked.fields,
        )
        shown = self._shown_now(receipt.interrupt_id)
        made = status.HTTP_200_OK if receipt.replayed else status.HTTP_201_CREATED
        headers = {"Location": shown["url"], **_replayed(receipt.replayed)}
        return Response(shown, status=made, headers=headers)

    @action(detail=True, methods=["post"])
    def consume(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Fetch the decision under a key; only that key may act on it."""
        bodies.read_nothing(request)
        key = remote_bodies.required_key(request)
        found = services.consume(pk, client=_client(request), key=key, via=Door.API)
        return Response(
            _shown_decision(request, found), headers=_replayed(found.replayed)
        )

    @action(detail=True, methods=["post"])
    def outcome(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Report what came of the call."""
        told = remote_bodies.read_outcome(request)
        receipt = services.report_outcome(
            pk,
            client=_client(request),
            key=told.key,
            status=told.status,
            result=told.result,
            error=told.error,
            via=Door.API,
        )
        shown = {
            "id": str(receipt.interrupt_id),
            "status": receipt.status,
            "late": receipt.late,
            "url": link(request, "interrupt-detail", receipt.interrupt_id),
        }
        return Response(shown, headers=_replayed(receipt.replayed))

    @action(detail=True, methods=["post"], url_path="give-back")
    def give_back(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Return a fetched approval that was not used and will not be."""
        reason = bodies.read_reason(request)
        key = remote_bodies.required_key(request)
        replayed = services.give_back(
            pk, client=_client(request), key=key, reason=reason, via=Door.API
        )
        return Response(self._shown_now(pk), headers=_replayed(replayed))

    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Withdraw a remote agent's request that nobody acts on."""
        reason = bodies.read_reason(request)
        client = client_of(request)
        by = person(request) if client is None else None
        _row, before = withdraw_or_find(
            pk, client=client, by=by, reason=reason, via=Door.API
        )
        return Response(self._shown_now(pk), headers=_replayed(before))

    def _shown_now(self, pk: UUID | str) -> Any:
        row = fresh(pk, person(self.request))
        if row is None:
            raise InterruptNotFound
        return InterruptSerializer(row, context=self.get_serializer_context()).data


def _client(request: Request) -> AgentClient:
    client = client_of(request)
    assert client is not None  # noqa: S101  nobody else was let through
    return client


def _replayed(replayed: bool) -> dict[str, str]:  # noqa: FBT001  the header's value
    return {REPLAYED: "true" if replayed else "false"}


def _shown_decision(request: Request, found: ConsumedDecision) -> dict[str, Any]:
    return {
        "id": str(found.interrupt_id),
        "status": found.status,
        "decision": found.decision,
        "args": found.args,
        "args_digest": found.args_digest or None,
        "value": found.value,
        "reason": found.reason or None,
        "decided_by": found.decided_by or None,
        "decided_at": _moment(found.decided_at),
        "execute_by": _moment(found.execute_by),
        "outcome_due": _moment(found.outcome_due),
        "url": link(request, "interrupt-detail", found.interrupt_id),
    }


def _moment(value: Any) -> Any:
    return None if value is None else Moment().to_representation(value)
