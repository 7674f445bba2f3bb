"""Runs the Python blocks of one page inside a site, in order, in one namespace.

    python drive.py blocks.json

Started in the site's folder by the tests; knows nothing of the repository.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def main(path: str) -> int:
    """Run the blocks; the first that fails, or prints something else, ends it."""
    sys.path.insert(0, str(Path.cwd()))
    import django

    django.setup()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in json.loads(Path(path).read_text(encoding="utf-8")):
        where = f"{block['page']}:{block['line']}"
        # So that a traceback names the line on the page.
        source = "\n" * (block["line"] - 1) + block["text"]
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                exec(compile(source, block["page"], "exec"), namespace)
        except BaseException:  # noqa: BLE001  whatever it is, the page is wrong
            traceback.print_exc()
            print(f"{where} failed.", file=sys.stderr)
            return 1
        expected = block["output"]
        if expected is not None and printed.getvalue().strip() != expected.strip():
            print(
                f"{where} printed:\n{printed.getvalue()}\nThe page says:\n{expected}",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
