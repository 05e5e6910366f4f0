"""Hosts that are started with their chassis wait for them."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

from mews.emulator.hostd.serve import appears


def test_a_ready_file_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "chassis.json"
    timer = threading.Timer(0.1, file.touch)
    timer.start()
    assert appears(file, 10.0)
    assert file.exists()
    timer.join()


def test_one_that_never_comes_is_waited_for_only_so_long(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert appears(tmp_path / "chassis.json", 0.05)
    assert time.monotonic() - begin < 5.0


def test_who_is_told_to_end_waits_no_longer(tmp_path: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        assert not appears(tmp_path / "chassis.json", 10.0)
    finally:
        signal.sigwait({signal.SIGTERM})
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
