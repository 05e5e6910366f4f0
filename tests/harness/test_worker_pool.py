"""Work in several processes: order, deaths, errors, interrupts."""

import os
import signal
import sys
import threading
import time

import pytest

from mews.harness.errors import BadInputError
from mews.harness.worker_pool import WorkerPool


def pool(work, *, jobs=2, **more):
    return WorkerPool(work, jobs=jobs, lost=lambda number, reason: f"{number} is lost: {reason}", **more)


def test_results_come_in_the_order_of_the_work():
    def work(number):
        time.sleep(0.2 if number % 2 == 0 else 0)
        return number * 10

    ended = []
    assert list(pool(work, on_result=ended.append).run(6)) == [0, 10, 20, 30, 40, 50]
    assert sorted(ended) == [0, 10, 20, 30, 40, 50]
    assert ended[0] == 10, "notified as each ends, not in its turn"


def test_several_processes_work_and_no_more_than_there_is_work():
    pids = set(pool(lambda _: (time.sleep(0.1), os.getpid())[1], jobs=3).run(9))
    assert len(pids) == 3 and os.getpid() not in pids
    assert len(set(pool(lambda _: os.getpid(), jobs=500).run(2))) <= 2


def test_a_worker_that_dies_takes_nothing_but_its_item_along():
    def work(number):
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 3:
            os._exit(7)
        return number

    assert list(pool(work, jobs=2).run(6)) == [
        0,
        "1 is lost: its worker process was killed by SIGKILL, as the kernel does when memory runs out",
        2,
        "3 is lost: its worker process ended with exit code 7",
        4,
        5,
    ]


def test_what_a_dead_worker_had_still_to_do_is_done_by_another():
    def work(number):
        if number % 7 == 3:
            os._exit(7)
        return number

    results = list(pool(work, jobs=2).run(100))
    lost = {number for number, result in enumerate(results) if result != number}
    assert lost == {number for number in range(100) if number % 7 == 3}


def test_a_worker_is_given_several_items_while_many_are_left(monkeypatch):
    sent = []
    real = WorkerPool._assign

    def assign(self, worker):
        real(self, worker)
        sent.append(len(worker.items))

    monkeypatch.setattr(WorkerPool, "_assign", assign)
    assert list(pool(lambda number: number, jobs=2).run(100)) == list(range(100))
    assert sum(sent) == 100 and max(sent) > 1 and sent[-1] == 1


def test_every_item_may_kill_its_worker():
    results = list(pool(lambda _: os._exit(9), jobs=3).run(7))
    assert len(results) == 7 and all("exit code 9" in result for result in results)


def test_an_error_is_raised_in_its_turn():
    def work(number):
        if number == 2:
            raise BadInputError("two: must be one")
        return number

    results = []
    with pytest.raises(BadInputError, match="two: must be one"):
        results.extend(pool(work).run(5))
    assert results == [0, 1]


class AwkwardError(Exception):
    """Can be written by pickle and not read."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


def test_what_cannot_be_sent_is_a_lost_item_with_the_reason():
    def work(number):
        if number == 0:
            return lambda: None
        raise AwkwardError("no", "way")

    first, second = pool(work).run(2)
    assert "0 is lost: what its worker process came to cannot be sent" in first
    assert second == "1 is lost: what its worker process came to cannot be sent: AwkwardError: no way"


def test_an_interrupt_ends_the_workers_and_keeps_what_had_ended(tmp_path):
    def work(number):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(0 if number == 1 else 600)
        return "early"

    def interrupt(_):
        os.kill(os.getpid(), signal.SIGINT)

    results = []
    with pytest.raises(KeyboardInterrupt):
        results.extend(pool(work, on_result=interrupt).run(3))
    assert results == ["early"]
    assert not any(alive(int(path.name)) for path in tmp_path.iterdir())


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    def work(_):
        (tmp_path / str(os.getpid())).touch()
        time.sleep(600)

    parent = os.fork()
    if parent == 0:
        list(pool(work, jobs=3).run(3))
        os._exit(0)
    until(lambda: len(list(tmp_path.iterdir())) == 3)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    until(lambda: not any(alive(int(path.name)) for path in tmp_path.iterdir()))


def test_whoever_waits_is_called_meanwhile(monkeypatch):
    monkeypatch.setattr("mews.harness.worker_pool.TICK_S", 0.01)
    ticks = []
    list(pool(lambda _: time.sleep(0.2), on_tick=lambda: ticks.append(threading.active_count())).run(1))
    assert len(ticks) > 3


def test_workers_write_to_the_real_streams(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert list(pool(lambda _: sys.stderr is not None).run(1)) == [True]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(done, timeout_s=20):
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
