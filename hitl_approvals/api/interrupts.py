"""Interrupts over REST: each endpoint reads a request, calls one service, shows the row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from hitl_approvals import permissions, selectors, services
from hitl_approvals.api import bodies, bulk, redaction
from hitl_approvals.api.errors import BadRequest
from hitl_approvals.api.events import events_of
from hitl_approvals.api.filters import InterruptFilter
from hitl_approvals.api.fresh import fresh
from hitl_approvals.api.pagination import InterruptPagination
from hitl_approvals.api.parameters import list_parameters, refuse_unknown_parameters
from hitl_approvals.api.remote import CLIENT_ONLY, RemoteActions
from hitl_approvals.api.repeats import once_a_key, replayed_header
from hitl_approvals.api.serializers import InterruptListSerializer, InterruptSerializer
from hitl_approvals.api.views import person
from hitl_approvals.api.waiting.kinds import INTERRUPTS
from hitl_approvals.api.waiting.views import WaitingViewSet
from hitl_approvals.decisions import Decision, Edit
from hitl_approvals.enums import DecisionType, Door
from hitl_approvals.exceptions import (
    HitlApprovalsError,
    InterruptNotFound,
    PayloadRejected,
)
from hitl_approvals.figures.scope import Scope
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.services.claims import assign_by_name
from hitl_approvals.services.settlements import settle_or_find
from hitl_approvals.types import AgentPrincipal, Person

NOT_IN_LISTS = (
    "args_schema",
    "context",
    "submission",
    "turn__execute_options",
    "turn__input",
    "turn__output",
    "turn__state",
)
"""Columns that can be long and that a list does not show."""


class InterruptViewSet(WaitingViewSet[PendingInterrupt], RemoteActions):
    """Requests for a human decision: to be listed, read and decided."""

    serializer_class = InterruptSerializer
    kind = INTERRUPTS
    filter_backends = [DjangoFilterBackend]
    filterset_class = InterruptFilter
    pagination_class = InterruptPagination
    client_actions = frozenset({"list", "retrieve", "events", "cancel", *CLIENT_ONLY})

    def get_queryset(self) -> QuerySet[PendingInterrupt]:
        """Return what this person may see."""
        by = person(self.request)
        agent = isinstance(by, AgentPrincipal)
        rows = permissions.visible_to(by) if agent else Scope.of(by).interrupts()
        return rows.select_related("turn", "client", "assignee").defer(*NOT_IN_LISTS)

    def get_serializer_class(self) -> type[BaseSerializer[PendingInterrupt]]:
        """Return the short form for lists."""
        if self.action == "list":
            return InterruptListSerializer
        return InterruptSerializer

    def list(self, request: Request, **kwargs: Any) -> Response:
        """List the interrupts that you may see, newest first."""
        refuse_unknown_parameters(request, list_parameters(self))
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Show one interrupt; with `wait`, once there is something to tell."""
        asked = self.asked_to_wait()
        using = self.where_to_read(asked)
        row = selectors.interrupt_get(pk, person(request), using=using)
        return self.held(row, asked) or Response(self.get_serializer(row).data)

    @action(detail=True, methods=["get"])
    def events(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Show the audit trail of one interrupt, oldest first."""
        return events_of(request, selectors.interrupt_get(pk, person(request)))

    @action(detail=True, methods=["post"])
    def approve(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Let the call run exactly as it was proposed."""
        return self._decide(request, pk, DecisionType.APPROVE)

    @action(detail=True, methods=["post"])
    def reject(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Do not let the call run; the reason goes to the agent."""
        return self._decide(request, pk, DecisionType.REJECT)

    @action(detail=True, methods=["post"])
    def edit(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Let the call run with these arguments instead."""
        return self._decide(request, pk, DecisionType.EDIT)

    @action(detail=True, methods=["post"])
    def respond(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Answer a question."""
        return self._decide(request, pk, DecisionType.RESPOND)

    @action(detail=True, methods=["post"])
    def settle(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Say what became of a call whose fate is unknown."""
        by, asked = person(request), bodies.read_settlement(request)
        _row, replayed = settle_or_find(
            pk,
            asked.answer,
            by=by,
            via=Door.API,
            result=asked.result,
            note=asked.note,
            revision=asked.revision,
            key=asked.key,
        )
        return self._as_it_is_now(pk, replayed=replayed)

    @action(detail=True, methods=["post"])
    def claim(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Take an open interrupt in hand for a while."""
        by, minutes = person(request), bodies.read_claim(request)
        work = partial(services.claim, pk, by=by, via=Door.API, minutes=minutes)
        return self._once(request, "claim", pk, work, minutes)

    @action(detail=True, methods=["post"])
    def release(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Let go of an interrupt that one holds."""
        by, note = person(request), bodies.read_release(request)
        work = partial(services.release, pk, by=by, via=Door.API, note=note)
        return self._once(request, "release", pk, work, note)

    @action(detail=True, methods=["post"])
    def assign(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Give an open interrupt to somebody for a while."""
        by, name = person(request), bodies.read_assign(request)
        work = partial(assign_by_name, pk, name, by=by, via=Door.API)
        return self._once(request, "assign", pk, work, name)

    @action(detail=True, methods=["post"], url_path="re-review")
    def re_review(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Take a decision back whose call the agent asks for differently now."""
        by = person(request)
        seen = bodies.read_seen(request)
        work = partial(services.re_review, pk, by=by, via=Door.API, revision=seen)
        return self._once(request, "re-review", pk, work)

    @action(detail=False, methods=["post"], url_path="decide", url_name="decide")
    def decide_many(self, request: Request, **kwargs: Any) -> Response:
        """Decide many interrupts one by one, and say of each what became of it."""
        by, entries = person(request), bulk.read_many(request)
        return Response({"outcomes": [self._outcome(one, by) for one in entries]})

    def interrupt_as_it_is_now(self) -> Any:
        """Return what an error shows: the winner's decision to whoever came second."""
        row = fresh(self.kwargs.get("pk", ""), person(self.request))
        return None if row is None else self._shown(row)

    def _decide(self, request: Request, pk: str, kind: DecisionType) -> Response:
        asked = bodies.read_decision(request, kind)
        row, replayed = _record(pk, asked, person(request))
        return Response(self._shown(row), headers=replayed_header(replayed))

    def _outcome(self, entry: bulk.Entry, by: Person) -> dict[str, Any]:
        try:
            if isinstance(entry.asked, BadRequest):
                raise entry.asked
            row, replayed = _record(entry.id, entry.asked, by)
        except (HitlApprovalsError, BadRequest) as error:
            found = fresh(entry.id, by)
            shown = None if found is None else self._shown_short(found)
            return bulk.refused(entry, error, shown)
        return bulk.done(entry, self._shown_short(row), replayed=replayed)

    def _once(
        self,
        request: Request,
        verb: str,
        pk: str,
        work: Callable[[], object],
        body: Any = None,
    ) -> Response:
        replayed = once_a_key(request, verb, pk, work, body=body)
        return self._as_it_is_now(pk, replayed=replayed)

    def _as_it_is_now(self, pk: str, *, replayed: bool) -> Response:
        row = fresh(pk, person(self.request))
        if row is None:
            raise InterruptNotFound
        return Response(self._shown(row), headers=replayed_header(replayed))

    def _shown(self, row: PendingInterrupt) -> Any:
        return InterruptSerializer(row, context=self.get_serializer_context()).data

    def _shown_short(self, row: PendingInterrupt) -> Any:
        context = self.get_serializer_context()
        return InterruptListSerializer(row, context=context).data


def _record(
    pk: str, asked: bodies.DecisionRequest, by: Person
) -> tuple[PendingInterrupt, bool]:
    """Record one decision; return the row after it, and whether it was there before.

    Raises:
        HitlApprovalsError: It was refused.
    """
    decision, kept = _meant(asked.decision, pk, by)
    try:
        receipt = services.decide(
            pk,
            decision,
            by=by,
            via=Door.API,
            revision=asked.revision,
            key=asked.key,
        )
    except PayloadRejected as error:
        raise redaction.without_values(error, kept) from error
    row = fresh(receipt.interrupt_id, by)
    if row is None:
        raise InterruptNotFound
    return row, receipt.replayed


def _meant(decision: Decision, pk: str, by: Person) -> tuple[Decision, list[str]]:
    """Return an edit with the hidden values that it sends back as they were shown.

    Raises:
        InterruptNotFound: No such row, or it may not be seen.
    """
    if not isinstance(decision, Edit) or None not in decision.args.values():
        return decision, []
    row = fresh(pk, by)
    if row is None:
        raise InterruptNotFound
    args, kept = redaction.keep_hidden(row, decision.args)
    return Edit(args, decision.reason), kept
