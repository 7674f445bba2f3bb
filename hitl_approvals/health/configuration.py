"""Looks at how this process is set up: migrations, checks, agents, time limits, broker."""

from __future__ import annotations

from datetime import timedelta

from django.core.checks import ERROR, WARNING, CheckMessage
from django.db import connections, router
from django.db.migrations.loader import MigrationLoader
from django.db.models import Count

from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import OPEN_TURN
from hitl_approvals.health.lines import Level, Line, counted, spoken
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry

BROKER_SECONDS = 3.0
"""How long the broker may take to answer."""
APP = "hitl_approvals"


def alias() -> str:
    """Return the one database alias that holds all our tables."""
    return router.db_for_write(AgentTurn)


def migrations() -> Line:
    """Say whether the tables are those that this code expects."""
    loader = MigrationLoader(connections[alias()])
    missing = sorted(
        name
        for app, name in loader.disk_migrations
        if app == APP and (app, name) not in loader.applied_migrations
    )
    if not missing:
        return Line("migrations", Level.OK, "The tables are up to date.")
    return Line(
        "migrations",
        Level.FAIL,
        f"Not applied to database `{alias()}`: {', '.join(missing)}.",
        f"Run `manage.py migrate {APP} --database {alias()}`.",
        {"missing": missing},
    )


def system_checks() -> list[Line]:
    """Run the app's own system checks, one line for each finding."""
    from hitl_approvals import checks

    found = checks.run([alias()])
    if not found:
        return [Line("checks", Level.OK, "The system checks of the app find nothing.")]
    return [
        Line(
            str(message.id).removeprefix(f"{APP}."),
            _level_of(message),
            message.msg,
            message.hint or "",
        )
        for message in found
    ]


def _level_of(message: CheckMessage) -> Level:
    if message.level >= ERROR:
        return Level.FAIL
    return Level.WARN if message.level >= WARNING else Level.OK


def agents() -> Line:
    """Say which open turns no agent of this process could run."""
    here = set(registry.runnable())
    open_turns = (
        AgentTurn.objects.using(alias())
        .filter(status__in=OPEN_TURN)
        .order_by()
        .values_list("agent", "agent_version")
        .annotate(count=Count("pk"))
    )
    lost = [
        {"agent": agent, "version": version, "count": count}
        for agent, version, count in sorted(open_turns)
        if (agent, version) not in here
    ]
    if not lost:
        return Line(
            "agents", Level.OK, "Every open turn has its agent in this process."
        )
    named = ", ".join(f"`{one['agent']}` version {one['version']}" for one in lost)
    number = sum(int(one["count"]) for one in lost)
    return Line(
        "agents",
        Level.WARN,
        f"{counted(number, 'open turn needs', 'open turns need')} what this process "
        f"does not register: {named}.",
        "If workers register it, all is well. If the agent was renamed or got a new "
        'version, register the old one too: @agent(..., accepts=["<old version>"]).',
        {"missing": lost},
    )


def time_to_start() -> Line:
    """Say whether approvals hold long enough, and not for ever."""
    limit = hitl_settings.execute_within
    if limit is None:
        return Line(
            "approvals",
            Level.WARN,
            "An approval may be used at any time later.",
            "Set HITL_APPROVALS['EXECUTE_WITHIN'] to the seconds for which a "
            "reviewer's answer should hold.",
            {"execute_within": None},
        )
    facts = {"execute_within": limit.total_seconds()}
    # A worker that dies right after it took the turn is missed, taken from and waited for.
    recovery: timedelta = (
        hitl_settings.lease + hitl_settings.sweep + hitl_settings.hint_after
    )
    if limit < recovery:
        return Line(
            "approvals",
            Level.WARN,
            f"An approval holds for {spoken(limit)}; to take a turn from a dead worker "
            f"takes up to {spoken(recovery)}.",
            "Set HITL_APPROVALS['EXECUTE_WITHIN'] higher, or people will have to "
            "approve again after every crash.",
            facts,
        )
    return Line(
        "approvals", Level.OK, f"An approval holds for {spoken(limit)}.", facts=facts
    )


def broker() -> Line:
    """Say whether hints can go out."""
    name = hitl_settings.dispatcher
    if name == "inline":
        return Line(
            "broker",
            Level.WARN,
            "Turns run in the process that decides (DISPATCHER is `inline`).",
            "That is for tests. Use `celery` or `worker`.",
        )
    if name != "celery":
        return Line(
            "broker", Level.OK, "No broker is used; hitl_worker reads the rows."
        )
    # Not at the top: a site without Celery must not import it.
    from hitl_approvals.dispatchers.broker import address, reach

    wrong = reach(BROKER_SECONDS)
    if wrong is None:
        return Line("broker", Level.OK, f"The broker at {address()} answers.")
    return Line(
        "broker",
        Level.FAIL,
        f"The broker cannot be reached: {wrong}.",
        "Decisions are recorded and nothing is lost, but workers hear of them only "
        "when the broker is back.",
    )
