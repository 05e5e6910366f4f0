"""Parsed once for all readers: what the bodies of a chassis' answers mean, by their bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

LIMIT_BYTES = 16 << 20
"""Of bodies that are remembered: hundreds of listings of the largest chassis."""


class ParsedBodies(Generic[T]):
    """``parse`` of each body, once: nodes that read the same listing share what it means, which nobody may change.

    The key is the body itself, every byte of it, so that there is nothing to invalidate; the oldest go first.
    """

    def __init__(self, parse: Callable[[bytes], T], limit_bytes: int = LIMIT_BYTES) -> None:
        self._parse = parse
        self._limit_bytes = limit_bytes
        self._bytes = 0
        self._found: dict[bytes, T] = {}

    def __call__(self, body: bytes) -> T:
        """Return what it means. Raises what ``parse`` raises, and remembers nothing then."""
        try:
            return self._found[body]
        except KeyError:
            pass
        found = self._parse(body)
        self._found[body] = found
        self._bytes += len(body)
        while self._bytes > self._limit_bytes:
            oldest = next(iter(self._found))
            del self._found[oldest]
            self._bytes -= len(oldest)
        return found
