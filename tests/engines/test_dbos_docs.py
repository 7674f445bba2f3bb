"""The example of the page on DBOS."""

from __future__ import annotations

import pytest

from tests.engines.dbos_support import Database
from tests.engines.examples import assert_does_what_the_page_says, played

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


def test_the_example_does_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database("example") as database:
        monkeypatch.setenv("DBOS_SYSTEM_DATABASE_URL", database.url)
        with played("dbos", database.url):
            assert_does_what_the_page_says()

    assert capsys.readouterr().out == "refunding 120 for A1\n"
