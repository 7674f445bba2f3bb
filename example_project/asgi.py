"""The ASGI entry point of the example site; requests with `wait` wait outside of Django."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from hitl_approvals.api.waiting.asgi import LongPolls

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "example_project.settings")

application = LongPolls(get_asgi_application())
