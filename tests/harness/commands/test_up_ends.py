"""A `mews up` that is told to end, ends: what holds it up is named, and nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from mews.harness.commands.instances import offspring

pytestmark = pytest.mark.wall

SCRIPT = """
import asyncio, sys
from mews.harness import termination
from mews.harness.clusters.embedded.cluster import EmbeddedCluster

termination.PATIENCE_S = {patience}


async def stubborn():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


async def close_never(self):
    await asyncio.create_task(stubborn(), name="planted")


async def close_busily(self):
    spin()


def spin():
    while True:
        pass


def spin_when_up(self):
    asyncio.get_running_loop().call_later(0.5, spin)


{plant}
from mews.harness.cli import main
main()
"""
PLANTS = {
    "a task that never ends": "EmbeddedCluster.close = close_never",
    "a loop that is blocked as it closes": "EmbeddedCluster.close = close_busily",
    "a loop that is blocked long before": "EmbeddedCluster.keep_alive = spin_when_up",
}


@pytest.fixture
def start(tmp_path):
    """Starts a `mews up` with something planted in it: (process, content of ready.json, its folder, runtime folder)."""
    started = []
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}

        def run(plant, patience):
            script = tmp_path / "planted.py"
            script.write_text(SCRIPT.format(plant=plant, patience=patience))
            argv = [sys.executable, str(script), "up", "--dir", str(tmp_path / "dir"), "--json", "--name", "test"]
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            process = subprocess.Popen([*argv, "--speed", "10"], env=environment, text=True, **streams)
            started.append(process)
            told = process.stdout.readline()
            assert told, process.stderr.read()
            return process, json.loads(told), tmp_path / "dir", runtime

        try:
            yield run
        finally:
            for process in started:
                process.kill()
                process.communicate()
            subprocess.run(
                [sys.executable, "-m", "mews.harness.cli", "down", "--all"],
                env=environment,
                capture_output=True,
                check=True,
            )


def left(ready, folder, runtime):
    """What is still there of it."""
    sockets = [node["device_plugins"] for node in ready["nodes"].values() if os.path.exists(node["device_plugins"])]
    files = [name for name in ("ready.json", "kubeconfig") if (folder / name).exists()]
    recorded = os.listdir(os.path.join(runtime, "mews"))
    return [*offspring(str(folder)), *sockets, *files, *(name for name in recorded if name.endswith(".json"))]


@pytest.mark.parametrize("plant", PLANTS)
def test_what_still_runs_after_the_patience_is_named_and_ended(start, plant):
    # Long enough for a slow machine to come as far as what is planted.
    process, ready, folder, runtime = start(PLANTS[plant], patience=8.0)
    assert left(ready, folder, runtime)
    time.sleep(2.0 if "before" in plant else 0)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    # A plugin that was just about to serve misses its folder, and gRPC's C core says so whatever it is told.
    head, *lines = [line for line in err.splitlines() if line and "add_port.cc" not in line]
    assert process.returncode == 1
    assert head == "mews up --name test: told to end 8 s ago, and still running:"
    assert all(line.startswith(("  task ", "  the loop itself", "  thread ")) for line in lines), err
    if plant == "a task that never ends":
        assert any(line.startswith("  task planted: ") and line.endswith(" in stubborn") for line in lines), err
        assert not any("the loop itself" in line for line in lines), err
    else:
        assert lines[0].startswith("  the loop itself, which does not get on: ") and lines[0].endswith(" in spin"), err
    assert left(ready, folder, runtime) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(start, number):
    process, ready, folder, runtime = start(PLANTS["a task that never ends"], patience=600)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)  # as `timeout` and process groups deliver it: one request
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.startswith("mews up --name test: told to end a second time, and still running:\n")
    assert "task planted: " in err
    assert left(ready, folder, runtime) == []


def test_what_a_killed_one_left_goes_as_the_next_starts(tmp_path):
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}

        def up(name):
            command = [sys.executable, "-m", "mews.harness.cli", "up", "--json", "--stack", "none", "--name", name]
            command += ["--dir", str(tmp_path / name)]
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            return process, json.loads(process.stdout.readline())

        first, ready = up("first")
        sockets = next(iter(ready["nodes"].values()))["device_plugins"].rpartition("/mews-")
        scratch = f"{sockets[0]}/mews-{sockets[2].partition('/')[0]}"
        first.kill()
        first.communicate()
        assert os.path.isdir(scratch)
        second, _ = up("second")
        try:
            assert not os.path.exists(scratch)
            assert not (tmp_path / "first" / "ready.json").exists()
            assert list(offspring(str(tmp_path / "first"))) == []
        finally:
            second.terminate()
            second.communicate(timeout=60)
