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
from mews.harness.commands.up import _report
from mews.project import DOCUMENTATION

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
    command = [*MEWS, "up", "--dir", str(folder), "--json", "--speed", "10", "--name", "test", "--wait", "devices"]
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
    assert {"api", "kubeconfig", "ca", "chassis", "control", "nodes", "pid"} <= set(ready)
    assert ready["pid"] == process.pid
    assert [(folder / name).stat().st_mode & 0o077 for name in ("ready.json", "kubeconfig")] == [0, 0], (
        "they let one in"
    )
    assert set(ready["chassis"]["A"]) == {"h3api", "resource-pool", "redfish", "fm", "cdim"}
    assert all({"device_plugins", "pod_resources", "sysfs", "env"} <= set(node) for node in ready["nodes"].values())
    assert read(ready, ready["chassis"]["A"]["resource-pool"] + "/resources")[0] == 200
    assert ready["chassis"]["A"]["h3api"].startswith("http://"), "as the real box"
    nodes = json.loads(read(ready, ready["api"] + "/api/v1/nodes", token=token_of(ready))[1])["items"]
    assert [node["status"]["allocatable"]["falcon.com/gpu"] for node in nodes] == ["4", "4", "4"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert process.stderr.read() == ""
    assert not any((folder / name).exists() for name in ("ready.json", "kubeconfig", "ca.crt"))
    assert list(offspring(str(folder))) == []
    assert not any(os.path.exists(node["device_plugins"]) for node in ready["nodes"].values())


def token_of(ready):
    """The kubeconfig's token, None where it has none."""
    access = json.loads(Path(ready["kubeconfig"]).read_text())
    return access["users"][0]["user"].get("token")


def read(ready, url, token=None, **headers):
    """Status and text of a GET, by somebody who trusts ``ca`` of ready.json."""
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    context = ssl.create_default_context(cafile=ready["ca"]) if url.startswith("https") else None
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=120, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def faces(ready):
    """Every face that asks for a token: URL, a path, and the token."""
    return {
        "api": (ready["api"] + "/api/v1/nodes", token_of(ready)),
        "control": (ready["control"]["url"] + "/v1/table", ready["control"]["token"]),
        "hosts": (ready["hosts"]["url"] + "/v1/hosts", ready["hosts"]["token"]),
    }


FOREIGN = ({"Host": "rebound.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://rebound.example"})


@pytest.mark.parametrize("instance", [["--allow-host", "box.lab"], ["--tls"]], indirect=True, ids=["default", "tls"])
def test_by_default_all_that_asks_for_a_token_is_under_tls_and_lets_nobody_else_in(instance, request):
    process, ready, folder, _ = instance
    for name, (url, token) in faces(ready).items():
        assert url.startswith("https://"), name
        assert read(ready, url, token)[0] == 200, name
        assert read(ready, url, "another")[0] == 401, name
        assert read(ready, url)[0] == (403 if name == "api" else 401), "who shows no token is anonymous to the API"
        for header in FOREIGN:
            assert (name, header, read(ready, url, token, **header)[0]) == (name, header, 403)
        allowed = "--allow-host" in process.args
        assert (name, read(ready, url, token, Host="box.lab")[0]) == (name, 200 if allowed else 403)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(url, timeout=120, context=ssl.create_default_context())
        with pytest.raises((urllib.error.URLError, OSError)):  # 400, or cut off
            urllib.request.urlopen(url.replace("https://", "http://"), timeout=120)
    for header in FOREIGN:
        assert read(ready, ready["chassis"]["A"]["h3api"] + "/h3api/v1/resources", **header)[0] == 403
    if "--allow-host" in process.args:
        shown = ssl.get_server_certificate(("127.0.0.1", int(ready["api"].rpartition(":")[2])))
        assert "box.lab" in names_in(shown), "clients that call it so can verify it"
    access = json.loads((folder / "kubeconfig").read_text())["clusters"][0]["cluster"]
    assert access["server"] == ready["api"]
    assert base64.b64decode(access["certificate-authority-data"]) == Path(ready["ca"]).read_bytes()


def names_in(pem):
    from cryptography import x509

    found = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return found.value.get_values_for_type(x509.DNSName)


def test_nobody_else_can_read_the_key_or_the_tokens_and_no_command_line_has_them(instance):
    process, ready, folder, environment = instance
    runtime = Path(environment["XDG_RUNTIME_DIR"])
    keys = list(runtime.rglob("*.key"))
    assert keys, "the run has a key"
    for path in keys:
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not list(folder.rglob("*.key"))
    secrets = {token for _, token in faces(ready).values()} | {ready["accounts"]["redfish"]["password"]}
    running = [process.pid, *offspring(str(folder))]
    words = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in running).decode()
    logs = "".join(path.read_text(errors="replace") for path in runtime.rglob("*.log"))
    assert len(running) >= 3
    assert not [secret for secret in secrets - {ready["accounts"]["redfish"]["password"]} if secret in words + logs]


@pytest.mark.parametrize("instance", [["--insecure"]], indirect=True)
def test_insecure_is_the_old_way_says_so_in_one_line_and_refuses_foreign_pages_all_the_same(instance):
    process, ready, folder, _ = instance
    assert ready["ca"] is None
    assert not (folder / "ca.crt").exists()
    for name, (url, token) in faces(ready).items():
        assert url.startswith("http://"), name
        assert read(ready, url, token)[0] == 200, name
        assert read(ready, url)[0] == (200 if name == "api" else 401), name
        for header in FOREIGN:
            assert (name, header, read(ready, url, token, **header)[0]) == (name, header, 403)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert errors.count("\n") == 1
    assert errors.startswith("--insecure: plain HTTP; every user and process of this machine can do all")


def test_a_taken_port_is_told_in_one_line(instance):
    _, ready, folder, _ = instance
    taken = ready["api"].rpartition(":")[2]
    command = [*MEWS, "up", "--dir", str(folder / "other"), "--name", "other", "--api-port", taken]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = f"--api-port {taken}: Address already in use on 127.0.0.1 (see {DOCUMENTATION})\n"
    assert (ended.returncode, ended.stderr) == (3, said)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["up", "--insecure", "--tls"], "--insecure --tls: only one of the two"),
        (["up", "--allow-host", "http://x"], "--allow-host 'http://x': must be a host's name or address"),
        (["serve", "--allow-host", "a b"], "--allow-host 'a b': must be a host's name or address"),
        (
            ["run", "demo", "--insecure"],
            "--insecure: --cluster embedded in virtual time serves nothing on this machine",
        ),
    ],
)
def test_what_does_not_go_together_is_told(words, told):
    done = subprocess.run([*MEWS, *words], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert told in done.stderr


def test_a_folder_where_a_file_is_to_be_is_told_before_anything_is_made(tmp_path, runtime):
    (tmp_path / "kubeconfig").mkdir()
    environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
    argv = [*MEWS, "up", "--dir", str(tmp_path), "--name", "test"]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120, check=False)
    told = f"--dir {tmp_path}: kubeconfig in it is a folder; must be a file, or missing\n"
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
    assert "already runs" in done.stderr


def test_a_folder_is_of_one_cluster_at_a_time(instance):
    _, _, folder, environment = instance
    command = [*MEWS, "up", "--dir", str(folder), "--name", "second"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is used by test" in done.stderr


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
        assert b"already runs" in loser.stderr.read()
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


@pytest.mark.parametrize("chassis", [1, 2, 5])
@pytest.mark.parametrize("web", [False, True])
def test_what_up_prints_fits_in_eight_lines(chassis, web, capsys):
    faces = {"h3api": "http://127.0.0.1:1", "redfish": "https://127.0.0.1:2"}
    ready = {
        "api": "https://127.0.0.1:3",
        "ready_s": 1.0,
        "devices_s": None,
        "kubeconfig": "/tmp/kubeconfig",
        "session": {"url": "http://127.0.0.1:4", "token": "t"},
        "chassis": {f"C{number}": faces for number in range(chassis)},
        "nodes": {f"host-{number}": {"env": {"PATH": "/x:/y"}} for number in range(9)},
    }
    _report(ready, "lab", as_json=False, web=web)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= 8
    assert "/x:/y" not in "\n".join(shown)
    assert 'see the GPUs of a node: eval "$(mews env --name lab host-0)"' in shown[-2]
    assert shown[3 + web] == "  chassis C0: http://127.0.0.1:1 (h3api), https://127.0.0.1:2 (redfish)"
    most = 2 - web
    assert (f"  and {chassis - most} more chassis: see ready.json" in shown) == (chassis > most)
