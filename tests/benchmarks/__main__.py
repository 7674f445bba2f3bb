"""Sets Django up on PostgreSQL and runs a benchmark: `cycle` (if none is named), `queue`,
`api` or `frameworks`."""

from __future__ import annotations

import os
import sys

import django

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings.postgres"
    django.setup()

    if sys.argv[1:2] == ["queue"]:
        from tests.benchmarks.queue import main

        del sys.argv[1]
    elif sys.argv[1:2] == ["api"]:
        from tests.benchmarks.api import main

        del sys.argv[1]
    elif sys.argv[1:2] == ["frameworks"]:
        from tests.benchmarks.frameworks import main

        del sys.argv[1]
    else:
        from tests.benchmarks.cycle import main

    main()
