"""Controllers write as fast as kube-controller-manager's client lets them: 30 at once, and 20 a second from then on."""

from __future__ import annotations

import asyncio

from mews.harness.clock import run_virtual
from mews.kube.emulated.controllers.syncing import WriteLimit


def times_of(count: int, pauses: dict[int, float]) -> list[float]:
    """When each of so many calls may be made; ``pauses``: before call N it waits so long."""

    async def main() -> list[float]:
        limit, found = WriteLimit(), []
        for number in range(count):
            await asyncio.sleep(pauses.get(number, 0.0))
            await limit.take()
            found.append(round(asyncio.get_running_loop().time(), 3))
        return found

    return run_virtual(main)


def test_thirty_at_once_then_twenty_a_second():
    assert times_of(33, {}) == [0.0] * 30 + [0.05, 0.1, 0.15]


def test_what_was_not_used_is_kept_up_to_the_burst():
    found = times_of(72, {30: 1000.0})
    assert found[30:60] == [1000.0] * 30
    assert found[60:62] == [1000.05, 1000.1]


def test_half_a_second_gives_ten_back():
    found = times_of(45, {30: 0.5})
    assert found[30:40] == [0.5] * 10
    assert found[40:43] == [0.55, 0.6, 0.65]


def test_calls_at_the_same_moment_wait_in_turn():
    async def main() -> list[float]:
        limit = WriteLimit(qps=10, burst=1)

        async def one() -> float:
            await limit.take()
            return round(asyncio.get_running_loop().time(), 3)

        return list(await asyncio.gather(*(one() for _ in range(4))))

    assert run_virtual(main) == [0.0, 0.1, 0.2, 0.3]
