"""Requests that are made at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def at_once(*asks: Callable[[], T]) -> list[T]:
    """Call all of them at the same time, each in a thread; what they return, in order. What one of them raises is
    raised here, once all have ended."""
    start = threading.Barrier(len(asks))
    results: dict[int, T] = {}
    errors: list[Exception] = []

    def run(number: int) -> None:
        start.wait()
        try:
            results[number] = asks[number]()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(asks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(asks))]
