"""Process 1 of a component's container."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.wall

ADOPTS = 36
"""PR_SET_CHILD_SUBREAPER (linux/prctl.h): a keeper in a test gets orphans as process 1 of a container does."""
CHILD = "import time, sys; print('up', flush=True); time.sleep(60)"


@pytest.fixture
def keeper(tmp_path):
    """Starts a keeper of that program; ``(process, folder)``."""
    started = []

    def start(program=CHILD):
        code = (
            f"import ctypes; ctypes.CDLL(None).prctl({ADOPTS}, 1, 0, 0, 0);"
            "import sys; from pathlib import Path; from mews.harness.clusters.real.supervisor import Supervisor;"
            f"sys.exit(Supervisor([sys.executable, '-c', {program!r}], Path({str(tmp_path)!r})).run())"
        )
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, tmp_path

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def child(folder):
    return int((folder / "pid").read_text())


def until(condition, deadline_s=60.0):
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_component_killed_while_it_is_held_stays_down_until_it_is_started(keeper):
    process, folder = keeper()
    assert process.stdout.readline() == "up\n"
    first = child(folder)
    (folder / "held").touch()
    os.kill(first, signal.SIGKILL)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "up\n"
    assert child(folder) != first
    until(lambda: not (folder / "held").exists())


def test_a_kill_and_a_start_that_are_seen_at_once_are_a_restart(keeper):
    process, folder = keeper()
    assert process.stdout.readline() == "up\n"
    first = child(folder)
    process.send_signal(signal.SIGSTOP)  # as on a machine that is too busy for it
    (folder / "held").touch()
    os.kill(first, signal.SIGKILL)
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGCONT)
    assert process.stdout.readline() == "up\n"
    assert child(folder) != first
    assert process.poll() is None
    os.kill(child(folder), signal.SIGKILL)
    assert process.wait(60) == 128 + signal.SIGKILL, "it is held no more"


def test_what_is_held_and_was_not_killed_is_dead_before_it_is_started_again(keeper):
    process, folder = keeper()
    assert process.stdout.readline() == "up\n"
    first = child(folder)
    (folder / "held").touch()
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "up\n"
    assert not os.path.exists(f"/proc/{first}")


def test_one_that_runs_runs_on_when_it_is_to_be_started(keeper):
    process, folder = keeper()
    assert process.stdout.readline() == "up\n"
    first = child(folder)
    process.send_signal(signal.SIGUSR1)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    assert child(folder) == first


def test_orphans_are_reaped(keeper):
    orphan = "import subprocess, sys, time; subprocess.run(['sh', '-c', 'sleep 0.1 & echo $!']); time.sleep(60)"
    process, _ = keeper(orphan)
    pid = int(process.stdout.readline())
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_component_that_ends_unheld_takes_the_container_along(keeper):
    process, _ = keeper("raise SystemExit(7)")
    assert process.wait(10) == 7


def test_a_component_killed_unheld_tells_by_which_signal(keeper):
    process, folder = keeper()
    assert process.stdout.readline() == "up\n"
    os.kill(child(folder), signal.SIGKILL)
    assert process.wait(10) == 128 + signal.SIGKILL


def test_term_ends_both(keeper):
    process, folder = keeper()
    assert process.stdout.readline() == "up\n"
    pid = child(folder)
    process.terminate()
    assert process.wait(10) == 0
    until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_program_that_is_not_there_is_told_in_one_line(tmp_path):
    code = (
        "import sys; from pathlib import Path; from mews.harness.clusters.real.supervisor import Supervisor;"
        f"sys.exit(Supervisor(['./nowhere'], Path({str(tmp_path)!r})).run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (127, "./nowhere: cannot be started: No such file or directory\n")
