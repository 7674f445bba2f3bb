"""Writes the OpenAPI document that the docs link to and that clients are generated from.

    python -m scripts.schema

Asks the API for the examples first. Tests compare both with what the code does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import django

from tests.workspace import ROOT

WRITTEN = ROOT / "docs" / "reference" / "api" / "openapi.json"

EXAMPLES = ("tests/api/test_schema_examples.py", "-k", "are_what_the_api_answers")


def main() -> None:
    """Write the document as it is for `path("api/", …)`."""
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *EXAMPLES],
        cwd=ROOT,
        env={**os.environ, "HITL_RECORD_EXAMPLES": "1"},
        check=True,
    )
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings.sqlite")
    django.setup()
    from hitl_approvals.api.schema.document import document

    text = json.dumps(document("/api"), indent=1, ensure_ascii=False)
    WRITTEN.write_text(f"{text}\n")
    print(f"{WRITTEN.relative_to(ROOT)}: {len(text)} characters")


if __name__ == "__main__":
    main()
