"""Turns over REST: each endpoint reads a request, calls one service, shows the turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from hitl_approvals import canonical, engine, permissions, selectors, services
from hitl_approvals.api import bodies
from hitl_approvals.api.events import events_of, steps_of
from hitl_approvals.api.filters import TurnFilter
from hitl_approvals.api.pagination import TurnPagination
from hitl_approvals.api.parameters import list_parameters, refuse_unknown_parameters
from hitl_approvals.api.repeats import once_a_key, replayed_header
from hitl_approvals.api.serializers import TurnListSerializer, TurnSerializer
from hitl_approvals.api.views import person
from hitl_approvals.api.waiting.kinds import TURNS
from hitl_approvals.api.waiting.views import WaitingViewSet
from hitl_approvals.enums import Door
from hitl_approvals.exceptions import ReviewerNotAllowed
from hitl_approvals.models import AgentTurn
from hitl_approvals.services.forking import fork_or_find
from hitl_approvals.services.transactions import alias
from hitl_approvals.types import Person

NOT_IN_LISTS = ("execute_options", "input", "last_error", "output", "state")
"""Columns that can be long and that a list does not show."""


class TurnViewSet(WaitingViewSet[AgentTurn]):
    """Turns of agents: to be started and read."""

    serializer_class = TurnSerializer
    filter_backends = [DjangoFilterBackend]
    filterset_class = TurnFilter
    pagination_class = TurnPagination
    kind = TURNS

    def get_queryset(self) -> QuerySet[AgentTurn]:
        """Return what this person may see."""
        return permissions.turns_visible_to(person(self.request))

    def get_serializer_class(self) -> type[BaseSerializer[AgentTurn]]:
        """Return the short form for lists."""
        return TurnListSerializer if self.action == "list" else TurnSerializer

    def list(self, request: Request, **kwargs: Any) -> Response:
        """List the turns that you may see, those that were started last first."""
        refuse_unknown_parameters(request, list_parameters(self))
        rows = self.get_queryset().defer(*NOT_IN_LISTS)
        page = self.paginate_queryset(self.filter_queryset(rows))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def create(self, request: Request, **kwargs: Any) -> Response:
        """Start a turn; a worker performs it."""
        by = person(request)
        if not by.has_perm(permissions.START_TURN):
            raise ReviewerNotAllowed("You need the right to add agent turns.")
        asked = bodies.read_start(request)
        started, made = engine.start_or_find(
            asked.agent,
            asked.input,
            thread_id=asked.thread_id,
            key=None if asked.key is None else _own(by, asked.key),
            requested_by=by,
            execute_options=asked.execute_options,
        )
        # Read anew: the database filled in times, and a worker may have it already.
        turn = AgentTurn.objects.using(alias()).get(pk=started.pk)
        shown = self.get_serializer(turn).data
        return Response(
            shown,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": shown["url"], **replayed_header(not made)},
        )

    def retrieve(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Show one turn; with `wait`, once there is something to tell."""
        asked = self.asked_to_wait()
        using = self.where_to_read(asked)
        turn = selectors.turn_get(pk, person(request), using=using)
        held = self.held(turn, asked)
        return held or Response(self.get_serializer(turn).data)

    @action(detail=True, methods=["get"])
    def events(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Show the audit trail of one turn, without that of its interrupts."""
        return events_of(request, selectors.turn_get(pk, person(request)))

    @action(detail=True, methods=["get"])
    def steps(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Show what one turn has recorded, in its order."""
        return steps_of(request, selectors.turn_get(pk, person(request)))

    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """End an open turn and withdraw what waits."""
        by, reason = person(request), bodies.read_reason(request)
        work = partial(services.cancel, pk, by=by, via=Door.API, reason=reason)
        return self._once(request, "cancel", pk, work, {"reason": reason})

    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Give a stopped turn fresh attempts."""
        bodies.read_nothing(request)
        work = partial(services.retry, pk, by=person(request), via=Door.API)
        return self._once(request, "retry", pk, work)

    @action(detail=True, methods=["post"])
    def restart(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Run a stopped turn from its beginning."""
        by, changed = person(request), bodies.read_restart(request)
        work = partial(services.restart, pk, by=by, via=Door.API, **changed)
        return self._once(request, "restart", pk, work, changed)

    @action(detail=True, methods=["post"])
    def fork(self, request: Request, pk: str, **kwargs: Any) -> Response:
        """Start a new turn from a recorded point of this one."""
        by, asked = person(request), bodies.read_fork(request)
        turn, made = fork_or_find(
            pk,
            at=asked.at,
            by=by,
            via=Door.API,
            thread_id=asked.thread_id,
            key=None if asked.key is None else _own(by, asked.key),
        )
        shown = self.get_serializer(turn).data
        return Response(
            shown,
            status=status.HTTP_201_CREATED if made else status.HTTP_200_OK,
            headers={"Location": shown["url"], **replayed_header(not made)},
        )

    def _once(
        self,
        request: Request,
        verb: str,
        pk: str,
        work: Callable[[], object],
        body: Any = None,
    ) -> Response:
        replayed = once_a_key(request, verb, pk, work, body=body)
        # Whoever was allowed to do it is shown what came of it.
        turn = AgentTurn.objects.using(alias()).get(pk=pk)
        shown = self.get_serializer(turn).data
        return Response(shown, headers=replayed_header(replayed))


def _own(by: Person, key: str) -> str:
    """Return a start key that no other person's key can be the same as."""
    return canonical.key_digest("api", str(by.pk), key)
