"""The floor: one recorded cycle's statements, replayed over bare psycopg, prepared.

Same statements, same rows, same transaction bounds; only ids and keys are new in every
cycle. What the product adds to this is Python, the ORM and the agent.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

import psycopg

Statement = tuple[str, tuple[Any, ...]]
_KEY = re.compile(r"^[0-9a-f]{64}$")
_SPACE = UUID(int=0)


@dataclass(slots=True)
class Recording:
    """What one cycle sent: transactions of statements; an autocommit one stands alone."""

    transactions: list[list[Statement]] = field(default_factory=list)

    @property
    def statements(self) -> int:
        return sum(len(one) for one in self.transactions)

    @property
    def writing(self) -> int:
        """Transactions that change rows."""
        return sum(
            any(not sql.lstrip().upper().startswith("SELECT") for sql, _ in one)
            for one in self.transactions
        )


def renewed(params: tuple[Any, ...], cycle: str) -> tuple[Any, ...]:
    """Return the parameters of a statement with ids and keys of this cycle's own."""
    return tuple(_renewed(one, cycle) for one in params)


def _renewed(value: Any, cycle: str) -> Any:
    if isinstance(value, UUID):
        return uuid5(_SPACE, f"{cycle}{value}")
    if isinstance(value, str) and _KEY.match(value):
        return hashlib.sha256(f"{cycle}{value}".encode()).hexdigest()
    return value


class Floor:
    """Replays a recording on one connection."""

    def __init__(self, recording: Recording, dsn: dict[str, Any]) -> None:
        self._recording = recording
        self._connection = psycopg.connect(
            **dsn, autocommit=True, prepare_threshold=0, options="-c timezone=UTC"
        )

    def cycle(self, name: str) -> None:
        """Send one cycle.

        Raises:
            AssertionError: An UPDATE missed its row, so the work was not the same.
        """
        with self._connection.cursor() as cursor:
            for statements in self._recording.transactions:
                if len(statements) == 1:
                    self._send(cursor, statements[0], name)
                    continue
                with self._connection.transaction():
                    for statement in statements:
                        self._send(cursor, statement, name)

    def close(self) -> None:
        self._connection.close()

    def _send(self, cursor: Any, statement: Statement, name: str) -> None:
        sql, params = statement
        cursor.execute(sql, renewed(params, name), prepare=True)
        if sql.startswith("UPDATE"):
            assert cursor.rowcount == 1, sql
        elif sql.startswith("SELECT"):
            cursor.fetchall()
