"""`python -m tests.chaos --seconds 300`."""

from __future__ import annotations

import sys

from tests.chaos.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
