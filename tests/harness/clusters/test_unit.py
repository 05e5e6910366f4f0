"""A component through its incarnations: what becomes of one that crashes."""

from __future__ import annotations

import asyncio

from mews.harness.clock import run_virtual
from mews.harness.clusters.unit import Unit
from mews.harness.journal import Journal


class Frail:
    """Lives as long as the next of ``lives`` says, then dies; for ever once there is none left."""

    def __init__(self, lives: list[float]) -> None:
        self._lives = lives

    async def run(self) -> None:
        await asyncio.sleep(self._lives.pop(0) if self._lives else 10_000.0)
        raise RuntimeError("frail")


def lived(
    lives: list[float], *, revives: bool, until_s: float, kill_at_s: float | None = None
) -> list[tuple[float, str]]:
    async def main() -> list[tuple[float, str]]:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        journal = Journal(lambda: loop.time() - begun_s)
        unit = Unit("frail", journal, lambda fence: Frail(lives))
        unit.revives = revives
        unit.start()
        if kill_at_s is not None:
            await asyncio.sleep(kill_at_s)
            await unit.kill()
        await asyncio.sleep(until_s - (kill_at_s or 0.0))
        told = [(line.t, line.event) for line in journal.find("component")]
        await unit.close()
        return told

    return run_virtual(main)


def test_a_crashed_component_stays_down_in_a_scenario():
    assert lived([1.0], revives=False, until_s=100.0) == [(1.0, "crashed")]


def test_it_is_started_again_after_a_back_off_that_doubles_and_begins_anew_after_a_calm_life():
    assert lived([1.0, 1.0, 700.0, 0.0], revives=True, until_s=800.0) == [
        *((1.0, "crashed"), (11.0, "started")),
        *((12.0, "crashed"), (32.0, "started")),
        *((732.0, "crashed"), (742.0, "started")),
        *((742.0, "crashed"), (762.0, "started")),
    ]


def test_one_that_is_killed_while_it_waits_stays_down():
    assert lived([1.0], revives=True, until_s=100.0, kill_at_s=5.0) == [(1.0, "crashed")]
