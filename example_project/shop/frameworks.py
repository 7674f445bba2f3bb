"""Which framework the support agent is made of: the setting `SHOP_AGENT_KIND` says.

The tools, the queue and the site stay the same. Each framework has a module of its own
here, `with_<kind>.py`, which is imported by the process that first runs a turn.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.core.exceptions import ImproperlyConfigured

FUNCTION = "function"
NEEDED = {
    "langgraph": ("langchain", "langchain"),
    "pydantic_ai": ("pydantic-ai-slim", "pydantic-ai"),
    "openai_agents": ("openai-agents", "openai-agents"),
}
"""What has to be installed for each framework, and the extra that brings it."""
KINDS = (FUNCTION, *NEEDED)

INSTRUCTIONS = (
    "You handle complaints of a shop's customers. Look the order up before anything else. "
    "Refund what the customer asks for, or all that can be refunded if no amount is named. "
    "Write to the customer only if you are told to. Say in the end what was done."
)
"""For real models; the scripted one knows what to do."""

Performer = Callable[..., Any]


def made_of(kind: str, model: str = "") -> Callable[[Performer], Performer]:
    """Put another framework's agent in the place of the function below, if one is named.

    Args:
        kind: One of `KINDS`.
        model: The framework's name of a real model; empty for the scripted one.

    Raises:
        ImproperlyConfigured: There is no such kind, its framework is not installed, or
            the model is named to nobody who could call it.
    """
    if kind not in KINDS:
        raise ImproperlyConfigured(
            f"SHOP_AGENT={kind!r} is unknown. Choose one of {', '.join(KINDS)}."
        )
    if kind == FUNCTION:
        if model:
            raise ImproperlyConfigured(
                f"SHOP_MODEL={model!r} is for another framework's agent: set SHOP_AGENT to "
                f"one of {', '.join(NEEDED)}. The function agent calls `ask_model` in "
                "example_project/shop/model.py, where you can call your own."
            )
        return lambda function: function
    _require(kind)

    def factory(tools: list[Any]) -> Any:
        """Make the framework's own agent; called once in a process."""
        module = import_module(f"example_project.shop.with_{kind}")
        return module.make_agent(tools, model)

    return lambda _function: factory


def _require(kind: str) -> None:
    distribution, extra = NEEDED[kind]
    try:
        version(distribution)
    except PackageNotFoundError:
        raise ImproperlyConfigured(
            f"SHOP_AGENT={kind!r} needs `{distribution}`, which is not installed: "
            f'.venv/bin/pip install --editable ".[{extra}]"'
        ) from None
