"""`mews up` and `mews down` as their users type them."""

import base64
import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from mews.harness.commands.instances import MARK, offspring

pytestmark = pytest.mark.wall

MEWS = [sys.executable, "-m", "mews.harness.cli"]


@pytest.fixture
def runtime():
    """Short, as the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        yield folder


@pytest.fixture
def instance(request, tmp_path, runtime):
    """A running `mews up --json`: (process, content of ready.json, folder, environment)."""
    folder = tmp_path / "dir"
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
    command = [*MEWS, "up", "--dir", str(folder), "--json", "--speed", "10", "--name", "test"]
    command += getattr(request, "param", ())
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        told = process.stdout.readline()
        assert told, process.stderr.read()
        yield process, json.loads(told), folder, environment
    finally:
        process.kill()
        process.communicate()
        subprocess.run([*MEWS, "down", "--all"], env=environment, capture_output=True, check=True)


def down(environment):
    return subprocess.run(
        [*MEWS, "down", "--name", "test"], env=environment, capture_output=True, text=True, timeout=60
    )


def test_ready_json_says_all_that_is_fixed_and_sigterm_leaves_nothing(instance):
    process, ready, folder, _ = instance
    assert json.loads((folder / "ready.json").read_text()) == ready
    assert {"api", "kubeconfig", "chassis", "control", "nodes", "pid"} <= set(ready)
    assert ready["pid"] == process.pid
    assert [(folder / name).stat().st_mode & 0o077 for name in ("ready.json", "kubeconfig")] == [0, 0], (
        "they let one in"
    )
    assert set(ready["chassis"]["A"]) == {"h3api", "resource-pool", "redfish"}
    assert all({"device_plugins", "pod_resources", "sysfs", "env"} <= set(node) for node in ready["nodes"].values())
    with urllib.request.urlopen(ready["api"] + "/api/v1/nodes", timeout=120) as answer:
        nodes = json.load(answer)["items"]
    assert [node["status"]["allocatable"]["falcon.com/gpu"] for node in nodes] == ["4", "4", "4"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert process.stderr.read() == ""
    assert not (folder / "ready.json").exists()
    assert list(offspring(str(folder))) == []
    assert not any(os.path.exists(node["device_plugins"]) for node in ready["nodes"].values())


@pytest.mark.parametrize("instance", [["--tls"]], indirect=True)
def test_under_tls_the_kubeconfigs_token_opens_the_api_and_nothing_else_does(instance):
    _, ready, folder, _ = instance
    access = json.loads((folder / "kubeconfig").read_text())
    cluster, user = access["clusters"][0]["cluster"], access["users"][0]["user"]
    assert (cluster["server"], ready["api"][:8]) == (ready["api"], "https://")
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    nodes = urllib.request.Request(ready["api"] + "/api/v1/nodes")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(nodes, context=trusted, timeout=120)
    with caught.value as refused:
        assert refused.code == 403
    nodes.add_header("Authorization", f"Bearer {user['token']}")
    with urllib.request.urlopen(nodes, context=trusted, timeout=120) as answer:
        assert len(json.load(answer)["items"]) == 3
    taken = ready["api"].rpartition(":")[2]
    command = [*MEWS, "up", "--dir", str(folder / "other"), "--name", "other", "--api-port", taken]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (3, f"--api-port {taken}: Address already in use on 127.0.0.1\n")


def test_a_folder_where_a_file_is_to_be_is_told_before_anything_is_made(tmp_path, runtime):
    (tmp_path / "kubeconfig").mkdir()
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
    argv = [*MEWS, "up", "--dir", str(tmp_path), "--name", "test"]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    told = f"--dir {tmp_path}: kubeconfig in it is a folder, and would be a file\n"
    assert (ended.returncode, ended.stderr) == (2, told)
    assert not list(Path(runtime).glob("mews*"))


def test_down_ends_it_whatever_its_folder_has_become(instance):
    process, ready, folder, environment = instance
    (folder / "ready.json").unlink()
    (folder / "ready.json").mkdir()
    done = down(environment)
    assert (done.returncode, done.stdout) == (0, "test: ended\n"), done.stderr
    assert process.wait(60) == 0
    assert not any(os.path.exists(node["device_plugins"]) for node in ready["nodes"].values())


def test_down_ends_it(instance):
    process, _, _, environment = instance
    done = down(environment)
    assert (done.returncode, done.stdout) == (0, "test: ended\n")
    assert process.wait(5) == 0


def test_down_after_kill_9_removes_the_leftovers(instance):
    process, ready, folder, environment = instance
    assert list(offspring(str(folder))), "the chassis have a process of their own"
    process.kill()
    process.wait()
    assert down(environment).returncode == 0
    assert list(offspring(str(folder))) == []
    assert not (folder / "kubeconfig").exists()
    assert not any(os.path.exists(node["device_plugins"]) for node in ready["nodes"].values())


def test_a_name_is_up_once(instance, tmp_path):
    _, _, _, environment = instance
    command = [*MEWS, "up", "--dir", str(tmp_path / "other"), "--name", "test"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "is up already" in done.stderr


def test_a_folder_is_of_one_cluster_at_a_time(instance):
    _, _, folder, environment = instance
    command = [*MEWS, "up", "--dir", str(folder), "--name", "second"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is that of test" in done.stderr


def test_a_runtime_folder_whose_name_is_too_long_for_sockets_is_told(tmp_path):
    long = tmp_path / ("x" * 90)
    long.mkdir()
    command = [*MEWS, "up", "--dir", str(tmp_path / "dir")]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(long)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert "choose a shorter folder" in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in long.iterdir()) == ["mews"]
    run = [*MEWS, "run", "demo", "--time", "wall"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert "choose a shorter folder" in done.stderr
    assert sorted(path.name for path in long.iterdir()) == ["mews"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "a\nb", "x" * 64])
def test_a_name_that_is_no_files_is_refused(name, runtime):
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
    command = [*MEWS, "up", "--name", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert os.listdir(runtime) == []


def test_of_two_that_come_up_at_once_one_gets_the_name(runtime):
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
    both = [
        subprocess.Popen([*MEWS, "up", "--json"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        [ready] = [json.loads(line) for process in both if (line := process.stdout.readline())]
        [loser] = [process for process in both if process.pid != ready["pid"]]
        assert loser.wait(30) == 2
        assert b"is up already" in loser.stderr.read()
    finally:
        for process in both:
            process.terminate()
            process.communicate(timeout=120)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_wall_clock_run_that_is_ended_leaves_nothing_running(number, runtime):
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, MARK: runtime}
    command = [*MEWS, "run", "demo", "--time", "wall", "--keep", "--speed", "20"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "kept until you press Ctrl-C" in process.stderr.readline()
        process.send_signal(number)
        told, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "1 passed" in told
    assert list(offspring(runtime)) == []
    assert os.listdir(runtime) == []


def test_a_run_that_is_told_to_end_in_its_midst_leaves_nothing_running(runtime, tmp_path):
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, MARK: runtime}
    scenario = tmp_path / "long.yaml"
    scenario.write_text(
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: long}\nhardware: demo\nsteps: [{sleep: 10m}]\n"
    )
    process = subprocess.Popen([*MEWS, "run", str(scenario), "--time", "wall"], env=environment, stderr=subprocess.PIPE)
    try:
        for _ in range(400):
            if list(Path(runtime).glob("mews-*/chassis.json")):
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert list(offspring(runtime)) == []
    assert os.listdir(runtime) == []
