"""Keeps the site up for people and says what happens in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from example_project.demo import outside
from example_project.demo.client import Client
from example_project.demo.people import PEOPLE, seed_people
from example_project.demo.processes import Process
from example_project.demo.stage import FIRST_PORT, Stage, free_port, wait_until
from example_project.demo.verdict import STUCK
from example_project.shop.frameworks import KINDS
from example_project.shop.seeds import order_to_complain_about, seed_orders
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.registry import registry

LOOK_SECONDS = 1

Say = Callable[[str], None]


def run_demo(say: Say, *, port: int | None) -> None:
    """Bring everything up, explain it, and stay until interrupted.

    Args:
        say: Is told what a person should read.
        port: Where the site shall listen; else 8000 or the next that is free.

    Raises:
        BrokerMissingError: No broker is named, and none can be started.
        ProcessEndedError: A part of the site ended by itself.
    """
    call_command("migrate", verbosity=0, interactive=False)
    seed_orders()
    tokens = seed_people()
    stage = Stage(settings.DATA_DIR, port or free_port(FIRST_PORT))
    with ExitStack() as stack:
        say("Starting broker, web server and worker …")
        broker = stack.enter_context(stage.broker())
        web = stack.enter_context(stage.start_web())
        payments = stack.enter_context(outside.payments(stage))
        wait_until(stage.is_up, web)
        shift = stack.enter_context(Shift(stage, say))
        seen = _Events()
        sam = Client(stage.port, tokens["sam"])
        waiting = _something_to_decide(sam, web, shift.worker)
        remote = outside.explanation(stage, payments, outside.seed_client())
        for line in _explanation(stage, broker, tokens, waiting, shift.worker, remote):
            say(line)
        while True:
            time.sleep(LOOK_SECONDS)
            web.check()
            shift.look_after()
            for line in seen.new():
                say(line)


class Shift:
    """A worker that is replaced when somebody kills it, which people are invited to."""

    def __init__(self, stage: Stage, say: Say) -> None:
        self._stage = stage
        self._say = say
        self.worker = stage.start_worker()

    def __enter__(self) -> Shift:
        return self

    def __exit__(self, *_error: object) -> None:
        self.worker.stop()

    def look_after(self) -> None:
        """Start the worker again if it was killed.

        Raises:
            ProcessEndedError: It ended, and not by SIGKILL.
        """
        code = self.worker.returncode
        if code is None:
            return
        if code != -9:
            self.worker.check()
        self.worker.stop()
        self.worker = self._stage.start_worker()
        self._say(
            f"The worker was killed; another one starts as process {self.worker.pid}."
        )


class _Events:
    """The audit events that came since it was made."""

    def __init__(self) -> None:
        self._since = timezone.now()
        self._seen: set[Any] = set()

    def new(self) -> Iterator[str]:
        events = InterruptEvent.objects.filter(at__gte=self._since)
        for event in events.exclude(pk__in=self._seen).order_by("at", "sequence"):
            self._seen.add(event.pk)
            row = PendingInterrupt.objects.filter(pk=event.subject_id).first()
            subject = f"{row.tool_name}: " if row else ""
            by = f" by {event.actor} ({event.via})" if event.actor_id else ""
            clock = f"{timezone.localtime(event.at):%H:%M:%S}"
            yield f"{clock}  {subject}{event.get_type_display()}{by}"


def _something_to_decide(sam: Client, web: Process, worker: Process) -> str:
    """See to it that a refund waits in the queue: an old one, or one asked for now.

    Returns:
        What waits there; or what became of the agent that asks for nothing, which may be
        a real model's choice or want of a key.
    """
    waiting = PendingInterrupt.objects.filter(
        status="pending",
        tool_name="issue_refund",
        # What another framework's agent has paused, nobody takes up here.
        turn__agent_version__in=registry.agents["support"].versions,
    )
    if not waiting.exists():
        order = order_to_complain_about()
        turn = AgentTurn.objects.filter(
            pk=sam.start_turn(
                f"Order {order} arrived broken. Refund {order.amount} {order.currency} "
                "and write to the customer.",
                key=f"demo-{time.time_ns()}",
            )
        )
        over = turn.filter(status__in=["completed", *STUCK])
        with suppress(TimeoutError):
            wait_until(lambda: waiting.exists() or over.exists(), web, worker)
        if not waiting.exists():
            found = turn.get()
            why = (
                found.last_error or found.error or found.output or f"See {worker.log}."
            )
            return (
                f"The agent asks for nothing: its turn is {found.get_status_display()}."
                f"\n   {why}"
            )
    return "The agent waits with a refund and an e-mail. Approve, edit or reject both."


def _explanation(
    stage: Stage,
    broker: str,
    tokens: dict[str, str],
    waiting: str,
    worker: Process,
    remote: Iterable[str],
) -> Iterator[str]:
    queue = stage.address + reverse("admin:hitl_approvals_pendinginterrupt_changelist")
    yield ""
    yield f"The example is up: {stage.address}/   (Ctrl-C stops everything)"
    yield ""
    yield "  name    password  may"
    for person in PEOPLE:
        yield f"  {person.name:<7} {person.name:<9} {person.about}"
    yield ""
    yield f"The support agent is of the kind {settings.SHOP_AGENT_KIND}. SHOP_AGENT names"
    yield f"another: {', '.join(KINDS)}."
    yield ""
    yield f"1. As rita: {queue}"
    yield f"   {waiting}"
    yield f"2. As sam: {stage.address}/"
    yield "   Read the agent's answer, and complain about another order."
    yield f"3. Kill the worker whenever you like: kill -9 -{worker.pid}"
    yield "   Nothing is lost and nothing happens twice. Another worker takes over here."
    yield from remote
    yield ""
    yield f"REST: curl -H 'Authorization: Token {tokens['rita']}' \\"
    yield f"        {stage.address}/api/interrupts/"
    yield f"Broker: {broker.rpartition('@')[2]}. Logs, e-mails and (with SQLite) the"
    yield f"database are in {stage.folder}, and are kept for the next time."
    yield ""
