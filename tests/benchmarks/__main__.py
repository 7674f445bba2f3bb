"""Sets Django up on PostgreSQL and runs the cycle benchmark."""

from __future__ import annotations

import os

import django

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings.postgres"
    django.setup()

    from tests.benchmarks.cycle import main

    main()
