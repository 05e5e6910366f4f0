"""The events of a watch as the faults let them come: the same for our components in process and behind the proxy."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, Protocol, TypeVar

from mews.harness.api_faults.plans import ApiRequest, EventPlan, RequestPlan
from mews.kube.api.errors import ApiError, GoneError, UnavailableError

Event = TypeVar("Event")
BROKEN = "the watch's connection broke"
EXPIRED = "too old resource version"


class ComponentFaults(Protocol):
    """What a component's client asks (``control.ApiFaults``); times are those of the loop."""

    def strikes(self, component: str) -> bool:
        """Return whether any fault is in place there."""
        ...

    def on_request(self, component: str, request: ApiRequest) -> RequestPlan:
        """Return what becomes of a request."""
        ...

    async def hold(self, component: str, request: ApiRequest, hold_s: float) -> None:
        """Hold a request so long; infinite: until what holds it ends."""
        ...

    def opened(self) -> int:
        """Return a number for a watch that begins."""
        ...

    def on_event(self, component: str, request: ApiRequest, watch: int) -> EventPlan:
        """Return what becomes of an event that is due."""
        ...

    async def release(self, component: str, request: ApiRequest, watch: int, arrived_s: float) -> None:
        """Wait until an event that arrived then may go on."""
        ...


async def struck_events(
    faults: ComponentFaults, component: str, request: ApiRequest, first: Event, stream: AsyncIterator[Event]
) -> AsyncGenerator[Event]:
    """Yield the first event that came under a fault, and all after it.

    Raises GoneError, UnavailableError where a fault ends the watch so, and what the stream ends with.
    """
    watch = faults.opened()
    arriving = _Arriving(stream, first)
    try:
        while (arrived := await arriving.next()) is not None:
            event, at_s = arrived
            if faults.strikes(component):
                await faults.release(component, request, watch, at_s)
                plan = faults.on_event(component, request, watch)
                if plan.ends == "closed":
                    return
                if plan.ends:
                    raise GoneError(EXPIRED) if plan.ends == "gone" else UnavailableError(BROKEN)
                for _ in range(plan.copies):
                    yield event
            yield event
    finally:
        await arriving.close()


class _Arriving(Generic[Event]):
    """The events of a watch with the times of the loop at which they came, read on while those before them wait."""

    def __init__(self, stream: AsyncIterator[Event], first: Event) -> None:
        self._come = deque([(first, asyncio.get_running_loop().time())])
        self._more = asyncio.Event()
        self._ended: BaseException | None = None
        self._reading = asyncio.create_task(self._read(stream))

    async def _read(self, stream: AsyncIterator[Event]) -> None:
        try:
            async for event in stream:
                self._come.append((event, asyncio.get_running_loop().time()))
                self._more.set()
            self._ended = StopAsyncIteration()
        except (ApiError, UnavailableError) as error:
            self._ended = error
        self._more.set()

    async def next(self) -> tuple[Event, float] | None:
        """Return the next event and when it came, None at the end.

        Raises what the watch ended with.
        """
        while not self._come:
            if isinstance(self._ended, StopAsyncIteration):
                return None
            if self._ended is not None:
                raise self._ended
            self._more.clear()
            await self._more.wait()
        return self._come.popleft()

    async def close(self) -> None:
        """Read no more."""
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
