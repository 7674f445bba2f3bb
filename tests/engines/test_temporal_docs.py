"""The example of the page on Temporal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.examples import assert_does_what_the_page_says, played

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


def test_the_example_does_what_the_page_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tests.engines.temporal_support import Server

    server = Server(tmp_path)
    server.start()
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    try:
        with played("temporal", server.address):
            assert_does_what_the_page_says()
    finally:
        server.stop()

    assert capsys.readouterr().out == "refunding 120 for A1\n"
