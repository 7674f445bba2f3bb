"""A small shop whose support agent may not give money away by itself."""

from __future__ import annotations

from example_project.celery import app as celery_app

__all__ = ["celery_app"]
