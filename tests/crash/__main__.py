"""`python -m tests.crash`: kills and stops real processes, and judges what came of it."""

from __future__ import annotations

import sys

from tests.crash.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
