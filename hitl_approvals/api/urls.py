"""The addresses of the API: `path("api/", include("hitl_approvals.api.urls"))`."""

from __future__ import annotations

from hitl_approvals.api.interrupts import InterruptViewSet
from hitl_approvals.api.links import APP_NAME
from hitl_approvals.api.queues import QueueViewSet
from hitl_approvals.api.schema import is_installed
from hitl_approvals.api.stats import StatsViewSet
from hitl_approvals.api.turns import TurnViewSet
from hitl_approvals.api.waiting.routing import WaitingRouter

app_name = APP_NAME

router = WaitingRouter()
router.register("interrupts", InterruptViewSet, basename="interrupt")
router.register("turns", TurnViewSet, basename="turn")
router.register("queues", QueueViewSet, basename="queue")
router.register("stats", StatsViewSet, basename="stats")

if is_installed():
    # Optional: without drf-spectacular everything else is as it is.
    from hitl_approvals.api.schema.inspector import describe
    from hitl_approvals.api.schema.view import SchemaViewSet

    router.register("schema", SchemaViewSet, basename="schema")
    describe(router)

urlpatterns = router.urls
