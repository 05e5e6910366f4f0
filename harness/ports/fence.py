"""A crash that is one: the ports of a killed incarnation fail from then on, so that no ``finally`` tidies up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

P = TypeVar("P")


class Fenced(BaseException):
    """The incarnation that made this call was killed. Not an ``Exception``: nothing may handle it and go on."""


class Fence:
    """Wraps an incarnation's ports; after ``cut()`` every call, and every step of an open stream, raises ``Fenced``."""

    def __init__(self) -> None:
        self.is_cut = False
        """Whether the incarnation is dead."""
        self._on_cut: list[Callable[[], None]] = []
        self._on_freeze: Callable[[bool], None] | None = None

    def cut(self) -> None:
        """Kill: nothing gets out any more."""
        self.is_cut = True
        while self._on_cut:
            self._on_cut.pop()()

    def on_cut(self, act: Callable[[], None]) -> None:
        """Call this when the fence is cut: what is a process of its own is killed then. Must not wait."""
        self._on_cut.append(act)

    def on_freeze(self, act: Callable[[bool], None]) -> None:
        """Call this to stop what is a process of its own, and to let it go on."""
        self._on_freeze = act

    def freeze(self, *, frozen: bool) -> bool:
        """Stop the process, or let it go on; False where there is none."""
        if self._on_freeze is None or self.is_cut:
            return False
        self._on_freeze(frozen)
        return True

    def around(self, port: P) -> P:
        """Return the same port, seen through the fence."""
        return cast(P, _Fenced(port, self))

    def check(self) -> None:
        """Raise ``Fenced`` once cut."""
        if self.is_cut:
            raise Fenced


class _Fenced:
    def __init__(self, port: Any, fence: Fence) -> None:
        self._port = port
        self._fence = fence

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._port, name)
        if not callable(value):
            return value
        call = _waiting(value, self._fence) if iscoroutinefunction(value) else _calling(value, self._fence)
        # A port's methods are the same for an incarnation's life: the next call does not come here.
        self.__dict__[name] = call
        return call


def _waiting(value: Callable[..., Any], fence: Fence) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        if fence.is_cut:
            raise Fenced
        answer = await value(*args, **kwargs)
        if fence.is_cut:
            raise Fenced
        return answer

    return call


def _calling(value: Callable[..., Any], fence: Fence) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if fence.is_cut:
            raise Fenced
        result = value(*args, **kwargs)
        guard = _guard_of(type(result))  # type: ignore[arg-type]  # mypy takes a class for one of its instances
        return result if guard is None else guard(result, fence)

    return call


@lru_cache(maxsize=1024)
def _guard_of(kind: type) -> Callable[[Any, Fence], Any] | None:
    """Return how a result of that type is guarded: what can be waited for, and each step of a stream; None for a
    value."""
    if issubclass(kind, Awaitable):
        return _awaited
    return _stream if hasattr(kind, "__anext__") else None


async def _awaited(result: Any, fence: Fence) -> Any:
    answer = await result
    fence.check()
    return answer


async def _stream(result: Any, fence: Fence) -> Any:
    try:
        async for item in result:
            fence.check()
            yield item
    finally:
        # Its connection ends with the process that had it.
        if hasattr(result, "aclose"):
            await result.aclose()
