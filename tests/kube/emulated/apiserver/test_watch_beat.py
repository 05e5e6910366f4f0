"""When a watch writes: at once, or together with what comes soon after."""

from __future__ import annotations

import asyncio

from mews.harness.clock import run_virtual
from mews.kube.emulated.core.wire.event_texts import WatchBeat


def test_the_first_event_is_not_held_back_and_those_that_follow_wait_for_one_beat() -> None:
    async def main() -> None:
        beat, loop = WatchBeat(), asyncio.get_running_loop()
        began = loop.time()
        await beat.after(began - 1.0, 100)
        assert loop.time() == began
        struck = await asyncio.gather(*(_after(beat, began) for _ in range(3)))
        assert len(set(struck)) == 1
        assert 0.0 < struck[0] - began < 0.05
        await beat.after(struck[0], 0)  # nobody else watches
        assert loop.time() == struck[0]

    run_virtual(main)


def test_one_that_gives_up_leaves_the_others_their_beat() -> None:
    async def main() -> None:
        beat = WatchBeat()
        began = asyncio.get_running_loop().time()
        waiting = [asyncio.ensure_future(_after(beat, began)) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        assert await waiting[1] > began
        assert waiting[0].cancelled()

    run_virtual(main)


async def _after(beat: WatchBeat, written_s: float) -> float:
    await beat.after(written_s, 100)
    return asyncio.get_running_loop().time()
