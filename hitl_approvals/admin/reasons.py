"""The site's own reasons to reject, offered beside the free text."""

from __future__ import annotations

from hitl_approvals.conf import hitl_settings


def choices() -> list[str]:
    """Return what can be chosen, in the site's order."""
    return hitl_settings.reject_reasons


def is_offered(canned: str) -> bool:
    """Tell whether a posted choice is one of them, or none."""
    return not canned or canned in choices()


def joined(canned: str, typed: str) -> str:
    """Return the reason that is meant: the chosen one, the typed one, or both."""
    if not canned:
        return typed
    return f"{canned}\n{typed}" if typed.strip() else canned
