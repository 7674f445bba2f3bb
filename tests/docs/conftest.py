"""One migrated site for the whole run; each page gets a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import README, blocks_of
from tests.docs.nursery import Nursery
from tests.docs.project import Site


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where the sites' processes come from."""
    with Nursery() as started:
        yield started


@pytest.fixture(scope="session")
def readme_site(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Site:
    """The site that the README's own blocks make, migrated."""
    folder = tmp_path_factory.mktemp("docs") / "readme"
    site = Site.make(folder, blocks_of(README), nursery)
    # The README's own model has no migrations.
    site.manage("migrate", "--run-syncdb", "--verbosity=0")
    return site


@pytest.fixture
def site(readme_site: Site, tmp_path: Path) -> Site:
    """A copy of it for one test."""
    return readme_site.copy(tmp_path / "site")
