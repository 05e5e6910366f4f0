import asyncio
import itertools
import signal
import socket
import threading
from functools import partial

import pytest

from mews.harness.clock import EPOCH_S, OutsideWorldError, StalledLoopError, VirtualLoop, run_virtual, virtual_clock
from mews.kube.clock import Pace, later, rest, stream


def test_virtual_time_jumps_to_the_next_timer() -> None:
    async def main() -> tuple[float, float]:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time(), virtual_clock().now()

    assert run_virtual(main) == (3600.0, EPOCH_S + 3600.0)


def test_timers_fire_in_order_and_equal_ones_as_they_were_set() -> None:
    async def main() -> list[str]:
        heard: list[str] = []
        loop = asyncio.get_running_loop()
        for delay_s, name in ((2, "c"), (1, "a"), (1, "b")):
            loop.call_later(delay_s, heard.append, name)
        await asyncio.sleep(3)
        return heard

    assert run_virtual(main) == ["a", "b", "c"]


def orders(order: int) -> list[list[int]]:
    """In which order ten timers are called that are due at one moment, twice; then what was ready in between."""

    async def main() -> list[list[int]]:
        loop, found = asyncio.get_running_loop(), []
        for _ in range(2):
            called: list[int] = []
            for number in range(10):
                loop.call_later(1, called.append, number)
            await asyncio.sleep(2)
            found.append(called)
        soon: list[int] = []
        for number in range(10):
            loop.call_soon(soon.append, number)
        await asyncio.sleep(1)
        return [*found, soon]

    return run_virtual(main, order=order)


def test_what_is_due_at_one_moment_comes_in_the_order_that_is_drawn() -> None:
    first, second, soon = orders(7)
    assert sorted(first) == sorted(second) == list(range(10))
    assert len({tuple(first), tuple(second), tuple(range(10))}) == 3
    assert soon == list(range(10))  # what is ready keeps its turn
    assert orders(7) == [first, second, soon]
    assert orders(8) != [first, second, soon]
    assert orders(0)[2] == list(range(10))


def test_a_loop_that_would_wait_for_ever_says_so() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(StalledLoopError):
        run_virtual(main)


def test_rests_that_round_to_none_do_not_hang_virtual_time() -> None:
    async def main() -> None:
        for delay_s in itertools.chain([1e6], itertools.repeat(1e-15)):
            await asyncio.sleep(delay_s)

    with pytest.raises(StalledLoopError, match="time has stayed at 1e\\+06 s"):
        run_virtual(main)


def test_work_that_never_waits_does_not_hang_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mews.harness.clock._TURNS_AT_ONE_INSTANT", 1_000)

    async def main(turns: int) -> float:
        await asyncio.sleep(3)
        for _ in range(turns):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    with pytest.raises(StalledLoopError, match="time has stayed at 3 s for 1000 turns in a row"):
        run_virtual(lambda: main(10_000))
    assert run_virtual(lambda: main(900)) == 3


def test_virtual_time_that_passes_may_have_any_number_of_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mews.harness.clock._TURNS_AT_ONE_INSTANT", 1_000)

    async def main() -> float:
        for _ in range(100):
            await asyncio.sleep(1)
            for _ in range(90):
                await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 100


def test_virtual_time_refuses_the_outside_world() -> None:
    async def resolve() -> None:
        await asyncio.get_running_loop().run_in_executor(None, socket.gethostname)

    async def spawn() -> None:
        await asyncio.create_subprocess_exec("true")

    async def watch() -> None:
        asyncio.get_running_loop().add_reader(0, print)

    for attempt in (resolve, spawn, watch):
        with pytest.raises(OutsideWorldError):
            run_virtual(attempt)


def test_ctrl_c_cancels_a_run_in_virtual_time_and_lets_it_clean_up() -> None:
    cleaned = []

    async def interrupted() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(1)
        finally:
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt):
        run_virtual(interrupted)
    assert cleaned == [True]


def test_another_thread_cannot_reach_into_virtual_time() -> None:
    async def main() -> None:
        loop, refused = asyncio.get_running_loop(), []

        def reach() -> None:
            with pytest.raises(OutsideWorldError):
                loop.call_soon_threadsafe(print)
            refused.append(True)

        thread = threading.Thread(target=reach)
        thread.start()
        thread.join()
        assert refused == [True]

    run_virtual(main)


def test_a_loop_with_only_rests_left_is_idle_until_the_last_of_them() -> None:
    async def main() -> list[float | None]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)

        async def tick(period_s: float) -> None:
            while True:
                await rest(period_s)

        tasks = [asyncio.create_task(tick(10)), asyncio.create_task(tick(60))]
        await asyncio.sleep(25)
        idle = loop.idle_until()
        loop.call_later(5, lambda: None)
        busy = loop.idle_until()
        for task in tasks:
            task.cancel()
        return [idle, busy]

    assert run_virtual(main) == [60.0, None]


def test_a_deadline_keeps_nothing_going_but_has_to_pass() -> None:
    async def main() -> float | None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        async with asyncio.timeout(30):
            await rest(1)
            return loop.idle_until()

    assert run_virtual(main) == 30.0


def test_a_rest_is_a_plain_sleep_on_a_real_loop() -> None:
    asyncio.run(rest(0))


def test_streams_of_chance_depend_on_seed_and_actor_alone() -> None:
    assert stream(1, "a").random() == stream(1, "a").random()
    assert stream(1, "a").random() != stream(1, "b").random()
    assert stream(1, "a").random() != stream(2, "a").random()


def test_the_pace_divides_emulated_spans() -> None:
    assert Pace(10).loop_s(5) == 0.5
    with pytest.raises(ValueError, match="speed 0"):
        Pace(0)


def test_a_callback_cancelled_at_the_very_instant_is_not_called():
    async def main() -> list[str]:
        called: list[str] = []
        handle = later(1.0, lambda: called.append("late"))
        asyncio.get_running_loop().call_later(1.0, handle.cancel)
        await asyncio.sleep(2)
        return called

    assert run_virtual(main) == []


def test_a_callback_that_fails_is_named_and_what_it_was_given_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    def fails(world: object) -> None:
        raise ValueError("no good")

    async def main() -> None:
        loop, world = asyncio.get_running_loop(), list(range(100_000))
        loop.call_soon(fails, world)
        loop.call_later(1, partial(fails, world))
        await asyncio.sleep(2)

    run_virtual(main)
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert "Exception in callback" in record.getMessage() and "fails" in record.getMessage()
        assert len(record.getMessage()) < 1000
        assert record.exc_info is not None and isinstance(record.exc_info[1], ValueError)
