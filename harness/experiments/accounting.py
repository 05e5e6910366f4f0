"""What each component of a wall-clock run costs the processor: measured on the loop that all of them share."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

from mews.harness.clusters.unit import COMPONENT


class CpuAccount:
    """CPU seconds by component, in intervals of so many seconds. The part that no component has is not kept."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._spent_s: dict[str, float] = defaultdict(float)
        self._begun_s = time.monotonic()
        self.shares: dict[str, list[float]] = defaultdict(list)
        """Component -> the share of one CPU that it took in each whole interval since it first ran."""

    def call(self, component: str, callback: Callable[..., object], *args: Any) -> None:
        """Run a callback of the loop on a component's account."""
        begun_s = time.thread_time()
        try:
            callback(*args)
        finally:
            if component:
                self._spent_s[component] += time.thread_time() - begun_s
            self._close_interval()

    def _close_interval(self) -> None:
        past_s = time.monotonic() - self._begun_s
        if past_s < self._every_s:
            return
        for component in {*self.shares, *self._spent_s}:
            self.shares[component].append(self._spent_s.get(component, 0.0) / past_s)
        self._spent_s.clear()
        self._begun_s += past_s


class _AccountingLoop(asyncio.SelectorEventLoop):
    """A loop that books what runs on it."""

    def __init__(self, account: CpuAccount) -> None:
        super().__init__()
        self._account = account

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Return it as the loop's own, booked on whose context it is."""
        context = copy_context() if context is None else context
        component = context.get(COMPONENT, "")
        return super().call_soon(self._account.call, component, callback, *args, context=context)


class _AccountingPolicy(asyncio.DefaultEventLoopPolicy):
    def __init__(self, account: CpuAccount) -> None:
        super().__init__()
        self._of = account

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _AccountingLoop(self._of)


@contextmanager
def accounted(every_s: float) -> Iterator[CpuAccount]:
    """Loops that are made within have their components' CPU time booked."""
    account, before = CpuAccount(every_s), asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(_AccountingPolicy(account))
    try:
        yield account
    finally:
        asyncio.set_event_loop_policy(before)
