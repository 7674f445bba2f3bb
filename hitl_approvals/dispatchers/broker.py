"""What Celery is told about its broker, and whether that answers. Publishes nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from celery import current_app

from hitl_approvals.exceptions import MissingExtra

REDIS = ("redis", "rediss", "sentinel", "valkey", "valkeys")
REDIS_VISIBILITY_SECONDS = 3600
"""What Celery's Redis transport assumes."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The broker's settings as the process's Celery app has read them."""

    named: bool
    """Whether anybody named a broker; Celery assumes one on this machine otherwise."""
    transport: str
    options: dict[str, Any] = field(default_factory=dict)
    task_limit: float | None = None
    """Seconds after which Celery ends a task."""

    @classmethod
    def read(cls) -> BrokerSettings:
        """Read them from the current Celery app.

        Raises:
            MissingExtra: The broker is Redis, and its driver is not installed.
        """
        conf = current_app.conf
        limit = conf.task_time_limit or conf.task_soft_time_limit
        return cls(
            named=bool(conf.broker_write_url or conf.broker_url),
            transport=str(_connection().transport_cls),
            options=dict(conf.broker_transport_options or {}),
            task_limit=None if limit is None else float(limit),
        )

    @property
    def is_redis(self) -> bool:
        return self.transport in REDIS

    @property
    def visibility_timeout(self) -> float:
        given = self.options.get("visibility_timeout")
        return float(given or REDIS_VISIBILITY_SECONDS)


def address() -> str:
    """Return where the broker is, without its password."""
    return str(_connection().as_uri())


def reach(seconds: float) -> str | None:
    """Connect to the broker as a publisher would; return what went wrong, or None.

    Args:
        seconds: How long this may take. A thread of its own waits for the transport,
            which may have no time-out at all.
    """
    try:
        # Made here: another thread may have another current app.
        made = _connection()
    except Exception as error:  # noqa: BLE001  told to whoever asked
        return _text(error)
    failures: list[str] = []

    def connect() -> None:
        try:
            with made as connection:
                connection.ensure_connection(max_retries=1, interval_start=0)
                # Only this speaks to Redis; it goes with the connection.
                connection.channel()
        except Exception as error:  # noqa: BLE001  told to whoever asked
            failures.append(_text(error))

    thread = threading.Thread(target=connect, name="hitl-reach", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return f"it did not answer within {seconds:g} s"
    return failures[0] if failures else None


def _connection() -> Any:
    """Return a connection that is not open yet."""
    try:
        return current_app.connection_for_write()
    except AttributeError as error:
        # Without the driver Kombu says that None has no attribute Redis.
        if find_spec("redis") is not None:
            raise
        raise MissingExtra(
            "Celery's broker is Redis, whose driver is not installed: "
            'pip install "django-hitl-approvals[redis]"'
        ) from error


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
