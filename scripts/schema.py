"""Writes the OpenAPI document that the docs link to and that clients are generated from.

    python -m scripts.schema

A test compares the copy with what the code describes.
"""

from __future__ import annotations

import json
import os

import django

from tests.workspace import ROOT

WRITTEN = ROOT / "docs" / "reference" / "api" / "openapi.json"


def main() -> None:
    """Write the document as it is for `path("api/", …)`."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings.sqlite")
    django.setup()
    from hitl_approvals.api.schema.document import document

    text = json.dumps(document("/api"), indent=1, ensure_ascii=False)
    WRITTEN.write_text(f"{text}\n")
    print(f"{WRITTEN.relative_to(ROOT)}: {len(text)} characters")


if __name__ == "__main__":
    main()
