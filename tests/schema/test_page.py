"""The page of the example site that shows the document: whole, and from here alone."""

from __future__ import annotations

import re

import pytest

from tests.schema.conftest import Site

pytestmark = pytest.mark.schema


def test_the_page_loads_nothing_from_elsewhere(site: Site):
    with site.get("/") as answer:
        assert 'href="/api-docs/"' in answer.read().decode()
    with site.get("/api-docs/") as answer:
        policy = answer.headers["Content-Security-Policy"]
        page = answer.read().decode()

    assert "script-src 'self'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert 'data-document="/api/schema/"' in page
    loaded = re.findall(r'(?:src|<link[^>]*href)="([^"]+)"', page)
    assert len(loaded) == 4
    for address in loaded:
        with site.get(address) as answer:
            assert answer.read(100)
