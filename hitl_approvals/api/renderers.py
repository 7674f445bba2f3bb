"""Writes JSON without loss: integers exact, NUL and unpaired surrogates as escapes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rest_framework.renderers import BaseRenderer


class ExactJSONRenderer(BaseRenderer):
    """JSON in pure ASCII, which is UTF-8 too, whatever text an agent wrote."""

    media_type = "application/json"
    format = "json"
    charset = None
    """JSON has no charset parameter; what is returned is bytes."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the text of a value as bytes."""
        text = json.dumps(
            data, ensure_ascii=True, allow_nan=False, separators=(",", ":")
        )
        return text.encode("ascii")
