"""The API as an OpenAPI 3.1 document.

Needs drf-spectacular, which is optional: `inspector`, `security`, `document` and `view`
import it, and are imported by nobody where it is not installed. The other modules are
plain tables of JSON Schema, made from the code that reads bodies and writes answers.
"""

from __future__ import annotations

from importlib.util import find_spec


def is_installed() -> bool:
    """Tell whether drf-spectacular can be imported."""
    return find_spec("drf_spectacular") is not None
