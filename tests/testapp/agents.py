"""Agents and tools that the tests drive."""

from __future__ import annotations
