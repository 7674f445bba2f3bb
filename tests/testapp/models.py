"""Rows of a site's own that the test agents act on."""

from __future__ import annotations
