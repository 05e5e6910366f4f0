import asyncio
from collections.abc import AsyncIterator

import pytest

from mews.harness.ports.fence import Fence, Fenced


class Port:
    def __init__(self) -> None:
        self.written: list[str] = []

    async def write(self, text: str) -> None:
        await asyncio.sleep(0)
        self.written.append(text)

    async def watch(self) -> AsyncIterator[int]:
        for number in range(3):
            yield number


def test_a_cut_fence_lets_no_call_through_and_ends_open_streams() -> None:
    async def main() -> None:
        port, fence = Port(), Fence()
        fenced = fence.around(port)
        await fenced.write("before")
        stream = fenced.watch()
        assert await anext(stream) == 0
        fence.cut()
        with pytest.raises(Fenced):
            await anext(stream)
        with pytest.raises(Fenced):
            await fenced.write("after")
        assert port.written == ["before"]

    asyncio.run(main())


def test_a_call_that_was_under_way_happens_but_its_answer_is_never_seen() -> None:
    async def main() -> None:
        port, fence = Port(), Fence()
        call = asyncio.create_task(fence.around(port).write("under way"))
        await asyncio.sleep(0)
        fence.cut()
        with pytest.raises(Fenced):
            await call
        assert port.written == ["under way"]

    asyncio.run(main())


def test_what_is_to_be_killed_with_the_incarnation_is_called_once_when_the_fence_is_cut():
    fence, killed = Fence(), []
    fence.on_cut(lambda: killed.append(fence.is_cut))
    assert killed == []
    fence.cut()
    fence.cut()
    assert killed == [True]
