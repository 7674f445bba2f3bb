"""Checks of what sites registered: agents, their tools, and the policies of those."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, register
from django.core.checks import Info as CheckInfo
from django.core.checks import Warning as CheckWarning

from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.registry import AgentDefinition, registry


@register()
def check_effects(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Ask for what nobody said: what a crash in the middle of a call would mean."""
    silent = sorted(
        name for name, tool in registry.tools.items() if not tool.effect_declared
    )
    if not silent:
        return []
    return [
        CheckWarning(
            f"Tools that do not declare their effect: {', '.join(silent)}.",
            hint=(
                "After a crash in the middle of such a call a person has to find out "
                'whether it happened. If that is right, say effect="unsafe"; if the '
                'tool only reads, effect="none"; if it only writes to this database, '
                'effect="transactional".'
            ),
            id="hitl_approvals.W004",
        )
    ]


@register()
def check_agents(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Look for what performs each agent's turns, before a worker fails to find it.

    Frameworks are looked for, not imported: that takes seconds, and a process that only
    shows the desk never needs them.
    """
    found: list[CheckMessage] = []
    missing: dict[str, list[str]] = {}
    for name, definition in sorted(registry.agents.items()):
        try:
            if _is_missing(definition):
                missing.setdefault(definition.kind, []).append(name)
        except Exception as error:  # noqa: BLE001  importing runs anybody's code
            found.append(
                CheckWarning(
                    f"Agent `{name}` cannot run in this process: {error}",
                    hint=(
                        "Its turns fail here until they need attention. Install what "
                        "is missing, or correct kind= in @agent."
                    ),
                    id="hitl_approvals.W005",
                )
            )
    return [*found, *(_not_here(kind, names) for kind, names in missing.items())]


def _is_missing(definition: AgentDefinition) -> bool:
    """Tell whether the framework of an agent is not installed.

    Raises:
        Exception: Nothing runs agents of this kind.
    """
    from hitl_approvals.agents import base, capabilities

    distribution = capabilities.DISTRIBUTIONS.get(definition.kind)
    if distribution is not None:
        return not _is_installed(distribution)
    try:
        base.load(definition)
    except MissingExtra:
        return True
    return False


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _not_here(kind: str, names: Sequence[str]) -> CheckMessage:
    from hitl_approvals.agents.capabilities import DISTRIBUTIONS

    named = ", ".join(f"`{name}`" for name in names)
    extra = kind.replace("_", "-")
    install = (
        f'pip install "django-hitl-approvals[{extra}]"'
        if kind in DISTRIBUTIONS
        else "install what they need"
    )
    return CheckInfo(
        f"Agents of kind {kind!r} cannot run in this process, for its framework is not "
        f"installed: {named}.",
        hint=f"If other processes run them, all is well. Else {install}.",
        id="hitl_approvals.I001",
    )


@register()
def check_names_in_policies(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Find names in policies that no tool bears: misspelt, they gate or free nothing."""
    found: list[CheckMessage] = []
    for name, tool in sorted(registry.tools.items()):
        named = getattr(tool.requires_approval, "tools", None)
        if not isinstance(named, frozenset):
            continue
        unknown = sorted(named - set(registry.tools))
        if unknown:
            found.append(
                CheckWarning(
                    f"The policy of tool `{name}` names {', '.join(unknown)}; no tool "
                    "is called so.",
                    hint=f"Registered tools: {', '.join(sorted(registry.tools))}.",
                    id="hitl_approvals.W007",
                )
            )
    return found
