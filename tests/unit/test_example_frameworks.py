"""What the example's support agent can be made of, and what it says if it cannot."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from example_project.shop import frameworks
from example_project.shop.frameworks import KINDS, NEEDED, made_of
from tests.docs.blocks import DOCS


def loop(turn: Any, prompt: str) -> str:
    return prompt


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(frameworks, "version", missing)


@pytest.mark.usefixtures("nothing_installed")
def test_it_is_the_function_as_it_stands_and_needs_no_framework() -> None:
    assert made_of("function")(loop) is loop


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        made_of("langraph")

    assert str(refused.value) == (
        "SHOP_AGENT='langraph' is unknown. Choose one of function, langgraph, "
        "pydantic_ai, openai_agents."
    )


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("kind", NEEDED)
def test_a_framework_that_is_not_installed_is_named_with_its_pip_line(
    kind: str,
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        made_of(kind)

    extra = {"langgraph": "langchain"}.get(kind, kind.replace("_", "-"))
    # As the page says it: the example is only where the repository is.
    line = f'.venv/bin/pip install --editable ".[{extra}]"'
    assert str(refused.value).endswith(line)
    page = DOCS / "how-to" / "bring-your-own-framework.md"
    (shown,) = re.findall(
        r'(\.venv/bin/pip install --editable "\.)\[([\w,-]+)]"', page.read_text()
    )
    assert line.startswith(shown[0])
    assert extra in shown[1].split(",")


@pytest.mark.parametrize("kind", NEEDED)
def test_a_framework_is_not_imported_before_a_turn_runs(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frameworks, "version", lambda name: "1")
    imported: list[str] = []
    monkeypatch.setattr(frameworks, "import_module", imported.append)

    factory = made_of(kind, "openai:some")(loop)

    assert factory is not loop
    assert imported == []


def test_a_model_for_the_function_is_refused_for_nobody_would_call_it() -> None:
    with pytest.raises(ImproperlyConfigured, match="set SHOP_AGENT to one of"):
        made_of("function", "openai:some")


def test_the_function_comes_first() -> None:
    assert KINDS == ("function", "langgraph", "pydantic_ai", "openai_agents")
