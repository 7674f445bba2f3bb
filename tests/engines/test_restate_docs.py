"""The example of the page on Restate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.examples import assert_does_what_the_page_says, played
from tests.engines.processes import free_port, listens, until

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


def test_the_example_does_what_the_page_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tests.engines.restate_support import Server

    server, port = Server(tmp_path), free_port()
    server.start()
    monkeypatch.setenv("RESTATE_INGRESS", f"http://{server.ingress}")
    monkeypatch.setenv("RESTATE_ADMIN", f"http://{server.admin}")
    try:
        with played("restate", str(port)):
            assert until(lambda: listens(port))
            server.register(port)
            assert_does_what_the_page_says()
    finally:
        server.stop()

    assert capsys.readouterr().out == "refunding 120 for A1\n"
