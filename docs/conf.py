"""How Sphinx builds the documentation."""

from __future__ import annotations

import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]

project = _PROJECT["name"]
version = release = _PROJECT["version"]
author = _PROJECT["authors"][0]["name"]
copyright = f"2026, {author}"

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"{project} {release}"
