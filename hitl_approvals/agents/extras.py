"""Imports what an extra brings, when an agent that needs it is first run."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hitl_approvals.exceptions import MissingExtra


def imported(module: str, *, extra: str) -> Any:
    """Return a module of an optional dependency.

    Raises:
        MissingExtra: It is not installed; the message names the pip line.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise MissingExtra(
            f"Agents of this kind need `{top}`, which is not installed: "
            f'pip install "django-hitl-approvals[{extra}]"'
        ) from error
