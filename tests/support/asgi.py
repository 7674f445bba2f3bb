"""The site on an event loop: as the documentation tells to serve it, and bare."""

from __future__ import annotations

from django.core.asgi import get_asgi_application

from hitl_approvals.api.waiting.asgi import LongPolls

bare = get_asgi_application()
application = LongPolls(bare)
