"""The example of the page on the OpenAI Agents SDK does what the page says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engines.page_examples import (
    assert_prints_what_the_page_shows,
    load_example,
)

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    return load_example("openai_agents", monkeypatch)


def test_the_example_prints_what_the_page_shows(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_prints_what_the_page_shows(example, "openai-agents.md", capsys)
