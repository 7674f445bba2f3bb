"""Which database the suite runs on, and what does not depend on it."""

from __future__ import annotations

import pytest
from django.conf import settings


def on_postgresql() -> bool:
    engine: str = settings.DATABASES["default"]["ENGINE"]
    return engine.endswith("postgresql")


once = pytest.mark.skipif(
    on_postgresql(), reason="the same on every database, and slow; runs on SQLite"
)
