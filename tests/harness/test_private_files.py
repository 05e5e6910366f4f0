"""What the product writes may hold users' Secrets and tokens: its owner alone may read it, whatever the umask says."""

from __future__ import annotations

import ast
import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mews.harness.conformance.recording import record
from mews.harness.report.html import write_report
from mews.harness.report.run import Run
from mews.harness.scenario.artefacts import own_folder, write_texts
from mews.harness.scenario.result import Result
from mews.kube.records_file import RecordsFile
from mews.own_files import append_own, make_own_folder, write_named, write_own
from tests.harness.at_rest import holders, open_files

PLANTED = "planted-secret-9f1c"
RESULT = Result("s", "s.yaml", "embedded", "virtual", 1, "failed", PLANTED)
ROOT = Path(__file__).resolve().parents[2]
MEWS = (sys.executable, "-m", "mews.harness.cli")


@pytest.fixture
def no_umask() -> Iterator[None]:
    """The worst one: everybody may read what names no mode."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("no_umask")
def test_files_and_folders_of_failed_runs_are_their_owners(tmp_path: Path):
    out = tmp_path / "deep" / "artefacts"
    target = own_folder(out, RESULT)
    write_texts(target, {"logs/default_a_main.log": PLANTED, "journal.jsonl": PLANTED})
    write_report(Run(RESULT, []), target)
    record(tmp_path / "recording", PLANTED, [])
    found = holders(tmp_path, [PLANTED.encode()])
    assert len(found) == 5
    assert {mode(path) for path in found} == {0o600}
    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert [mode(path) for path in folders] == [0o700] * len(folders)


@pytest.mark.usefixtures("no_umask")
def test_a_file_that_was_open_to_all_is_replaced_not_written_into(tmp_path: Path):
    path = tmp_path / "results.json"
    path.write_text("old")
    path.chmod(0o666)
    with path.open() as held:
        write_own(path, PLANTED)
        assert held.read() == "old", "who had it open before must not read on"
    assert (path.read_text(), mode(path)) == (PLANTED, 0o600)


@pytest.mark.usefixtures("no_umask")
def test_what_is_appended_to_is_shut_first(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    path.write_text("a")
    path.chmod(0o666)
    with append_own(path) as file:
        assert mode(path) == 0o600
        file.write(b"b")
    assert path.read_text() == "ab"
    records = RecordsFile(tmp_path / "records.jsonl")
    records.close()
    assert mode(tmp_path / "records.jsonl") == 0o600


def test_a_named_link_or_pipe_is_written_into_and_stays(tmp_path: Path):
    (tmp_path / "there").write_text("old and longer")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    write_named(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there").read_text() == "new"
    write_named(Path("/dev/null"), "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path):
    tmp_path.chmod(0o755)
    make_own_folder(tmp_path)
    assert mode(tmp_path) == 0o755


# Everything that the product writes goes by mews.own_files, but for these

BY_HAND = {
    "src/mews/own_files.py": "the one way",
    "src/mews/certificates.py": "gives each file its mode: the authority is for everybody",
    "emulator/ready_file.py": "0600 by hand, replaced in one step",
    "emulator/tls.py": "certificates; the key is 0600 before anything is in it",
    "emulator/fixture_tool.py": "hardware files, which hold nothing of a run",
    "emulator/nvml/state.py": "the state of GPUs, beside the library in the run's own folder",
    "emulator/nvml/library.py": "empty files that stand for libraries",
    "emulator/hostd/mirror.py": "a host's files, with the modes that a real host's have",
    "emulator/hostd/driver_root.py": "a host's device nodes",
    "harness/clusters/embedded/served_engine.py": "an empty mark",
    "harness/clusters/embedded/served_hosts.py": "writes into a host's file, which is there",
    "harness/clusters/kind/image/build.py": "what goes into an image, in a folder of tempfile",
    "harness/clusters/real/supervisor.py": "a number of a process, in a pod",
    "harness/commands/instances.py": "an empty lock",
    "harness/commands/new.py": "templates of ours",
    "harness/commands/simulate.py": "made by write_own first",
    "harness/conformance/restore.py": "0600 by hand, replaced in one step",
    "harness/conformance/suite.py": "an empty configuration, in a folder of tempfile",
    "harness/leftovers.py": "an empty lock",
    "harness/live/journal_file.py": "0600 by hand",
    "systems/cohdi/driver_container.py": "files and programs of a container's own root",
    "kube/deviceplugin/pb/generate.py": "code of ours",
    "kube/emulated/controllers/service_names.py": "names and addresses of services",
    "kube/emulated/kubelet/devices/checkpoint_store.py": "0600 by hand, replaced in one step",
    "kube/emulated/kubelet/cgroups.py": "files of the kernel, which shows them in control groups",
    "kube/emulated/kubelet/output.py": "logs of containers, in the run's own folder",
    "kube/emulated/kubelet/in_cluster.py": "for a container of any user, in the run's own folder",
    "kube/emulated/kubelet/volumes/host_paths.py": "an empty file of a pod's volume, in the run's own folder",
    "kube/emulated/kubelet/volumes/atomic_writer.py": "volumes of a container of any user, in the run's own folder",
    "kube/emulated/kubelet/pod_roots.py": "a program of a container of any user, in the run's own folder",
    "kube/emulated/kubelet/hosts_files.py": "/etc/hosts of containers, in the run's own folder",
    "kube/emulated/kubelet/resolver_files.py": "resolv.conf of containers, in the run's own folder",
    "kube/emulated/kubelet/namespace_entry.py": "files of /proc",
    "kube/emulated/kubelet/namespace_mounts.py": "mount points in a namespace",
}


def written_by_hand(source: str) -> list[tuple[int, str]]:
    """The places of a module that make a file: (line, call)."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        words = [*node.args, *(each.value for each in node.keywords)]
        modes = [each.value for each in words if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        makes = name == "open" and any(set(each) <= set("rwaxb+t") and set(each) & set("wax") for each in modes)
        creates = name == "open" and "O_CREAT" in ast.unparse(node)
        touches = name == "touch" and "state" not in ast.unparse(node.func) and ast.unparse(node.func) != "self.touch"
        if makes or creates or touches or name in ("write_text", "write_bytes"):
            found.append((node.lineno, ast.unparse(node)))
    return found


def test_files_are_written_by_one_function_or_for_a_reason():
    found = set()
    for top in ("src/mews", "emulator", "kube", "systems", "harness"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if written_by_hand(path.read_text("utf-8")):
                found.add(str(path.relative_to(ROOT)))
    assert sorted(found - set(BY_HAND)) == [], "use mews.own_files"
    assert sorted(set(BY_HAND) - found) == [], "these write nothing any more"


@pytest.mark.parametrize(
    "planted",
    [
        "path.write_text('x', encoding='utf-8')",
        "Path('x').write_bytes(b'')",
        "open('x', 'w')",
        "path.open('ab')",
        "path.open(mode='x', encoding='utf-8')",
        "os.open('x', os.O_WRONLY | os.O_CREAT)",
        "file.touch()",
    ],
)
def test_a_file_written_by_hand_is_found(planted: str):
    assert written_by_hand(planted)


# What a run and a session leave on the disk, all of it

SCENARIO = f"""apiVersion: mews/v1
kind: Scenario
metadata: {{name: leaking}}
hardware: demo
steps:
  - apply:
      - {{kind: Secret, apiVersion: v1, metadata: {{name: s}}, stringData: {{password: {PLANTED}}}}}
      - {{kind: Pod, metadata: {{name: p, annotations: {{note: {PLANTED}}}}}, spec: {{containers: [{{name: main, image: mews/gpu-hold, env: [{{name: TOKEN, value: {PLANTED}}}]}}]}}}}
  - wait: {{pod: {{name: {PLANTED}, phase: Running}}}}
    timeout: 5s
"""  # noqa: E501 - a scenario


def places(root: Path) -> dict[str, str]:
    """An environment in which everything is written below the folder."""
    for name in ("home", "run", "state", "cache", "tmp"):
        (root / name).mkdir()
    found = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache"}
    return {**os.environ, **{name: str(root / folder) for name, folder in found.items()}, "TMPDIR": str(root / "tmp")}


@pytest.mark.usefixtures("no_umask")
def test_nothing_that_a_run_writes_can_be_read_by_others(tmp_path: Path):
    environment = places(tmp_path)
    (tmp_path / "leaking.yaml").write_text(SCENARIO)
    (tmp_path / "leaking.yaml").chmod(0o600)
    files = {f"--{name}": tmp_path / f"out.{name}" for name in ("json", "junit", "html", "journal", "results")}
    words = [str(word) for option in files.items() for word in option]
    argv = [*MEWS, "run", str(tmp_path / "leaking.yaml"), *words]
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    found = holders(tmp_path, [PLANTED.encode()])
    assert {*files.values()} <= {*found}, "the test plants nothing"
    assert any((tmp_path / "mews-artefacts") in path.parents for path in found)
    assert set(found) & set(open_files(tmp_path)) == set()


@contextmanager
def session(environment: dict[str, str], folder: Path) -> Iterator[dict[str, object]]:
    argv = [*MEWS, "up", "--name", "rest", "--dir", str(folder), "--wait", "devices"]
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline(), process.stderr.read()
        yield json.loads((folder / "ready.json").read_text("utf-8"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def secrets_of(ready: dict[str, object]) -> list[bytes]:
    """What was planted, and the tokens and passwords of the run."""
    found = {PLANTED}

    def collect(value: object, name: str = "") -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                collect(each, key)
        elif isinstance(value, str) and name in ("token", "password"):
            found.add(value)

    collect(ready)
    collect(json.loads(Path(str(ready["kubeconfig"])).read_text("utf-8"))["users"][0])
    assert len(found) >= 3
    return [each.encode() for each in sorted(found)]


@pytest.mark.wall
@pytest.mark.usefixtures("no_umask")
def test_nothing_that_a_session_writes_can_be_read_by_others():
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        environment = places(root)
        (root / "pod.yaml").write_text(SCENARIO.partition("steps:\n")[2].partition("  - wait")[0])
        (root / "pod.yaml").chmod(0o600)

        def mews(*words: str) -> None:
            done = subprocess.run([*MEWS, *words], env=environment, capture_output=True, timeout=60, check=False)
            assert done.returncode in (0, 1), (words, done.stderr)

        with session(environment, root / "dir") as ready:
            secrets = secrets_of(ready)
            mews("step", "--name", "rest", str(root / "pod.yaml"))
            mews("record", "--name", "rest", "--out", str(root / "recorded.yaml"))
            mews("report", "--name", "rest", "--out", str(root / "report.html"))
            mews("snapshot", "save", "--name", "rest", str(root / "saved.json"))
            during = holders(root, secrets)
            opened = set(open_files(root))
        after = holders(root, secrets)
    names = {path.name for path in during}
    assert {"recorded.yaml", "saved.json", "ready.json", "kubeconfig", "journal.jsonl"} <= names, "nothing was planted"
    assert set(during) & opened == set()
    assert set(after) <= set(during), "the end wrote it elsewhere"
