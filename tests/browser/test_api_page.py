"""The page of the example site that shows the REST API: it draws, from here alone."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import Browse
from tests.schema.conftest import Site
from tests.schema.conftest import site as example  # noqa: F401  a fixture

pytestmark = pytest.mark.browser


def test_every_operation_is_drawn_under_its_policy(browse: Browse, example: Site):  # noqa: F811
    with browse() as page:
        asked: list[str] = []
        told: list[str] = []
        missing: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("requestfailed", lambda request: missing.append(request.url))
        page.on("response", lambda one: one.status < 400 or missing.append(one.url))
        page.on("console", lambda line: told.append(f"{line.type}: {line.text}"))
        page.on("pageerror", lambda error: told.append(f"error: {error}"))
        page.goto(f"{example.address}/admin/login/?next=/api-docs/")
        page.fill("#id_username", "rita")
        page.fill("#id_password", "rita")
        page.click("[type=submit]")
        page.wait_for_selector("#operations-interrupts-interrupts_approve")
        drawn = page.locator(".opblock").count()
        described = example.document()["paths"]

    assert drawn >= sum(len(methods) for methods in described.values())
    # The site has no icon, which browsers ask for by themselves.
    unfound = "error: Failed to load resource"
    assert not [url for url in missing if not url.endswith("/favicon.ico")]
    assert not [one for one in told if one.startswith("error") and unfound not in one]
    places = {urlsplit(url).netloc for url in asked if not url.startswith("data:")}
    assert places == {urlsplit(example.address).netloc}
