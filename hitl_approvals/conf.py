"""Typed, uncached reading of the site's `HITL_APPROVALS` dict.

Every property reads `django.conf.settings` anew, so that `override_settings` works
without a reload hook. Durations are seconds.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings

DEFAULTS: dict[str, Any] = {
    "DISPATCHER": "celery",
    "LEASE": 60,
    "SWEEP": 10,
    "HINT_AFTER": 15,
    "HINT_MAX": 600,
    "MAX_ATTEMPTS": 5,
    "BACKOFF": 1,
    "BACKOFF_MAX": 300,
    "UNCLAIMED_AFTER": 900,
    "EXPIRES_IN": None,
    "EXECUTE_WITHIN": 86_400,
    "OUTCOME_WITHIN": 3600,
    "CLIENT_LIMITS": {},
    "CLAIM_FOR": 900,
    "IDEMPOTENCY_KEPT": 604_800,
    "REJECT_REASONS": [],
    "WAITERS_MOST": 1000,
    "WAITERS_EACH": 500,
    "TIMEOUT": 60,
    "DEADLINE_MARGIN": 5,
    "THREAD_POLICY": "queue",
    "MAX_PAYLOAD_BYTES": 262_144,
    "MAX_DEPTH": 32,
    "MAX_CONTEXT_BYTES": 65_536,
    "PUBLISH_TIMEOUT": 3,
    "CELERY_QUEUE": None,
    "WEBHOOKS": {},
    "WEBHOOK_TIMEOUT": 10,
    "WEBHOOK_BACKOFF": 5,
    "WEBHOOK_BACKOFF_MAX": 21_600,
    "WEBHOOK_GIVE_UP_AFTER": 259_200,
    "WEBHOOK_CONCURRENCY": 1,
    "WEBHOOK_CELERY_QUEUE": None,
    "WEBHOOK_ALLOW_PRIVATE": False,
    "WEBHOOK_ALLOW_HTTP": False,
    "DELIVERIES_KEPT": 2_592_000,
}
"""Every key that the dict may hold, with its default."""

CLIENT_LIMITS: dict[str, int | None] = {
    "open": 1000,
    "per_minute": 600,
    "waiting": 100,
}
"""What `CLIENT_LIMITS` says where the site's own does not."""


class HitlSettings:
    """The package's settings with types; see `docs/reference/settings.md`."""

    def _get(self, key: str) -> Any:
        return self.raw.get(key, DEFAULTS[key])

    def _seconds(self, key: str) -> timedelta:
        return timedelta(seconds=float(self._get(key)))

    def _optional_seconds(self, key: str) -> timedelta | None:
        value = self._get(key)
        return None if value is None else timedelta(seconds=float(value))

    @property
    def raw(self) -> dict[str, Any]:
        """The site's own dict, as it stands."""
        return getattr(settings, "HITL_APPROVALS", None) or {}

    @property
    def dispatcher(self) -> str:
        """Who is told that a run is owed: `celery`, `worker` or `inline`."""
        return str(self._get("DISPATCHER"))

    @property
    def lease(self) -> timedelta:
        """How long a worker may go silent before its turn is taken from it."""
        return self._seconds("LEASE")

    @property
    def sweep(self) -> timedelta:
        """Time between two passes of a sweeper."""
        return self._seconds("SWEEP")

    @property
    def hint_after(self) -> timedelta:
        """An owed run that nobody claimed is announced again after this."""
        return self._seconds("HINT_AFTER")

    @property
    def hint_max(self) -> timedelta:
        """The longest time between two announcements of one owed run."""
        return self._seconds("HINT_MAX")

    @property
    def max_attempts(self) -> int:
        """Claims without progress before a person is asked."""
        return int(self._get("MAX_ATTEMPTS"))

    @property
    def backoff(self) -> timedelta:
        """Wait after the first failed attempt; doubles with each further one."""
        return self._seconds("BACKOFF")

    @property
    def backoff_max(self) -> timedelta:
        """The longest wait between two attempts."""
        return self._seconds("BACKOFF_MAX")

    @property
    def unclaimed_after(self) -> timedelta:
        """An owed run that no worker takes for this long needs attention."""
        return self._seconds("UNCLAIMED_AFTER")

    @property
    def expires_in(self) -> timedelta | None:
        """Time to decide, unless the tool says otherwise; None is no limit."""
        return self._optional_seconds("EXPIRES_IN")

    @property
    def execute_within(self) -> timedelta | None:
        """Time from approval to the first start of the call; None is no limit."""
        return self._optional_seconds("EXECUTE_WITHIN")

    @property
    def outcome_within(self) -> timedelta:
        """How long a remote agent may take to say what came of a call it fetched."""
        return self._seconds("OUTCOME_WITHIN")

    @property
    def client_limits(self) -> dict[str, int | None]:
        """How much an agent client may ask for, unless its own limits say otherwise."""
        return {**CLIENT_LIMITS, **(self._get("CLIENT_LIMITS") or {})}

    @property
    def claim_for(self) -> timedelta:
        """How long a claim holds, unless whoever claims says otherwise."""
        return self._seconds("CLAIM_FOR")

    @property
    def idempotency_kept(self) -> timedelta:
        """How long the answer to a request that carried an idempotency key is kept."""
        return self._seconds("IDEMPOTENCY_KEPT")

    @property
    def reject_reasons(self) -> list[str]:
        """The site's own reasons to reject, offered beside the free text."""
        return [str(one) for one in self._get("REJECT_REASONS") or ()]

    @property
    def waiters_most(self) -> int:
        """How many requests with `wait` one process holds at once."""
        return int(self._get("WAITERS_MOST"))

    @property
    def waiters_each(self) -> int:
        """How many of them may be of one account; an agent client has its own limit."""
        return int(self._get("WAITERS_EACH"))

    @property
    def timeout(self) -> timedelta:
        """How long one tool call may take, unless the tool says otherwise."""
        return self._seconds("TIMEOUT")

    @property
    def deadline_margin(self) -> timedelta:
        """Added to the timeout before a silent call counts as over."""
        return self._seconds("DEADLINE_MARGIN")

    @property
    def thread_policy(self) -> str:
        """What new input does while its thread is busy: `queue`, `cancel`, `refuse`."""
        return str(self._get("THREAD_POLICY"))

    @property
    def max_payload_bytes(self) -> int:
        """Largest canonical text of arguments, results, questions and answers."""
        return int(self._get("MAX_PAYLOAD_BYTES"))

    @property
    def max_depth(self) -> int:
        """Deepest nesting of arguments, results, questions and answers."""
        return int(self._get("MAX_DEPTH"))

    @property
    def max_context_bytes(self) -> int:
        """Largest excerpt of the conversation kept on an interrupt."""
        return int(self._get("MAX_CONTEXT_BYTES"))

    @property
    def publish_timeout(self) -> float:
        """Seconds that a decision may wait for the broker before it answers."""
        return float(self._get("PUBLISH_TIMEOUT"))

    @property
    def celery_queue(self) -> str | None:
        """Celery queue of our tasks; None is the site's default queue."""
        value = self._get("CELERY_QUEUE")
        return None if value is None else str(value)

    @property
    def webhooks(self) -> Any:
        """Where the outside is told what happens, by name; as the site wrote it."""
        return self._get("WEBHOOKS")

    @property
    def webhook_timeout(self) -> timedelta:
        """How long one attempt may take, from the name to the answer."""
        return self._seconds("WEBHOOK_TIMEOUT")

    @property
    def webhook_backoff(self) -> timedelta:
        """Longest wait after the first failed attempt; each further one is four times it."""
        return self._seconds("WEBHOOK_BACKOFF")

    @property
    def webhook_backoff_max(self) -> timedelta:
        """The longest wait between two attempts."""
        return self._seconds("WEBHOOK_BACKOFF_MAX")

    @property
    def webhook_give_up_after(self) -> timedelta:
        """No attempt begins later than this after the event, or after a resend."""
        return self._seconds("WEBHOOK_GIVE_UP_AFTER")

    @property
    def webhook_concurrency(self) -> int:
        """How many attempts at one endpoint run at the same time."""
        return max(1, int(self._get("WEBHOOK_CONCURRENCY")))

    @property
    def webhook_celery_queue(self) -> str | None:
        """Celery queue of the deliveries; None is that of the other tasks."""
        value = self._get("WEBHOOK_CELERY_QUEUE")
        return self.celery_queue if value is None else str(value)

    @property
    def webhook_allow_private(self) -> Any:
        """True, or networks and host names, that may have addresses which are not public."""
        return self._get("WEBHOOK_ALLOW_PRIVATE")

    @property
    def webhook_allow_http(self) -> bool:
        """Whether endpoints may be called without TLS."""
        return self._get("WEBHOOK_ALLOW_HTTP") is True

    @property
    def deliveries_kept(self) -> timedelta | None:
        """How long a delivery is kept that is over; None is for ever."""
        return self._optional_seconds("DELIVERIES_KEPT")


hitl_settings = HitlSettings()
