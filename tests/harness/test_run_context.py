"""What the parts of one run share."""

import asyncio

from mews.harness.clock import run_virtual
from mews.harness.options import RunOptions
from mews.harness.run_context import begin_run


def test_the_journal_of_a_run_counts_from_its_beginning():
    async def main():
        await asyncio.sleep(5)
        run = begin_run(RunOptions(), seed=1, dialect="h3api")
        await asyncio.sleep(2.5)
        return run.journal.elapsed_s

    assert run_virtual(main) == 2.5


def test_each_actor_has_a_stream_of_chance_of_its_own_which_the_seed_decides():
    async def main():
        def numbers(seed, actor):
            return begin_run(RunOptions(), seed=seed, dialect="h3api").rng(actor).random()

        return [numbers(1, "a"), numbers(1, "a"), numbers(1, "b"), numbers(2, "a")]

    first, again, other_actor, other_seed = run_virtual(main)
    assert first == again
    assert len({first, other_actor, other_seed}) == 3


def test_the_speed_is_that_of_emulated_time_alone():
    async def main():
        run = begin_run(RunOptions(time="wall", speed=20.0), seed=1, dialect="h3api")
        return run.speed, run.pace.loop_s(10.0), run.clock.now() > 1e9

    assert asyncio.run(main()) == (20.0, 0.5, True)
