"""Threads that begin together, each on a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connections


def together(*verbs: Callable[[], Any]) -> list[Any]:
    """Run every verb at the same moment; a raised exception is that verb's result."""
    barrier = threading.Barrier(len(verbs))
    results: list[Any] = [None] * len(verbs)

    def run(number: int, verb: Callable[[], Any]) -> None:
        try:
            barrier.wait(timeout=30)
            results[number] = verb()
        except Exception as error:  # noqa: BLE001  a loser's error is what is tested
            results[number] = error
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=run, args=(number, verb))
        for number, verb in enumerate(verbs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a verb never came back"
    return results


def errors(results: Sequence[Any]) -> list[Exception]:
    return [one for one in results if isinstance(one, Exception)]
