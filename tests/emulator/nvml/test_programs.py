"""Programs of others, of ``programs.yaml``, on a host: each prints what its line says.

They are those of the virtual environment that MEWS_GPU_PROGRAMS names, or of the one that runs the tests; those in Go
are in the folder that MEWS_GO_PROGRAMS names, on the PATH, or where ``go install`` puts them.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ci.reference.nvml import CLASSES, page
from mews.emulator.nvml.state import NvmlProcess
from mews.kube.emulated.kubelet import namespace_entry
from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from tests.emulator.nvml.hosts import gpu

OWN, IN_GO = "MEWS_GPU_PROGRAMS", "MEWS_GO_PROGRAMS"
TESTS = Path(__file__).resolve().parents[2]
PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8"))
HAS = "import importlib.metadata as m, sys; m.version(sys.argv[1])"


def test_each_line_says_what_must_be_set_and_what_is_shown():
    assert len({entry["name"] for entry in PROGRAMS}) == len(PROGRAMS)
    for entry in PROGRAMS:
        assert entry["class"] in ("works", "set", "wrong", "cannot"), entry
        assert (entry["class"] == "works") == ("needs" not in entry), entry
        assert sum(way in entry for way in ("run", "python", "test")) == 1, entry
        assert ("shows" in entry) != ("test" in entry), entry
        assert (TESTS / entry.get("test", "")).exists(), entry


def test_the_reference_has_a_row_for_each():
    rows = re.findall(r"^\| ([^|`]+) \| ([\d.-]+) \| (.+) \| (.+) \|$", page(), re.MULTILINE)
    told = [(entry["name"], entry["version"], entry["class"]) for entry in PROGRAMS]
    words = {word: name for name, word in CLASSES.items()}
    assert [(name, version, words[state.partition(":")[0]]) for name, version, state, _ in rows] == told


def program_of(entry, folder):
    """The command, of a program that is installed; else skips."""
    if module := entry.get("go"):
        places = [os.environ.get(IN_GO, ""), os.environ["PATH"], str(Path.home() / "go" / "bin")]
        found = shutil.which(entry["run"][0], path=os.pathsep.join(filter(None, places)))
        if found is None:
            pytest.skip(f"`go install github.com/{module}@v{entry['version']}` builds it, {IN_GO} names its folder")
        return [found, *entry["run"][1:]]
    python, package = str(folder / "python"), entry.get("package", entry["name"])
    if subprocess.run([python, "-c", HAS, package], capture_output=True).returncode:
        pytest.skip(f"{package} is not installed; {OWN} names a virtual environment that has it")
    return entry.get("run") or [python, "-W", "ignore", "-c", entry["python"]]


def placing(paths, host, folder):
    """What starts a program that finds the host's files at those paths of this machine."""
    if not paths:
        return []
    if namespaces_lacking():
        pytest.skip(f"no mount namespace can be made here: {namespaces_lacking()}")
    for number in range(2):
        gpus = folder / "proc/driver/nvidia/gpus" / gpu(number).bus_id
        gpus.mkdir(parents=True)
        (gpus / "information").write_text(f"GPU UUID: {gpu(number).uuid}\nDevice Minor: {number}\n")
    (folder / "dev").mkdir()
    for name in ("nvidia0", "nvidiactl"):
        (folder / "dev" / name).touch()
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "usr/bin/nvidia-smi").symlink_to(host.folder / "nvidia-smi")
    pairs = [word for path in paths for word in (os.path.realpath(f"{folder}{path}"), path)]
    return [sys.executable, "-I", "-S", namespace_entry.__file__, "boot", "2", "", *pairs, "--"]


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize("entry", [entry for entry in PROGRAMS if "shows" in entry], ids=lambda entry: entry["name"])
def test_the_program_shows_the_host(host, entry, tmp_path):
    folder = Path(os.environ.get(OWN) or sys.prefix) / "bin"
    command = program_of(entry, folder)
    boards = entry.get("boards", ["V100", "A100"])
    busy = {"utilization_percent": 50, "memory_used_mib": 1234, "processes": (NvmlProcess(1, "train", 1234),)}
    host.show(*(gpu(number, model, **(busy if number else {})) for number, model in enumerate(boards)))
    path = f"{host.folder}:{folder}:{os.environ['PATH']}"
    command = [*placing(entry.get("at", ()), host, tmp_path), *command]
    environment = host.environment(PATH=path, TERM="xterm", COLUMNS="140")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment, cwd=host.folder, stdin=subprocess.DEVNULL
    )
    assert (done.returncode == 0) == (entry["class"] != "cannot"), done.stdout[-2000:] + done.stderr[-2000:]
    for pattern in entry["shows"]:
        assert re.search(pattern, done.stdout + done.stderr), done.stdout[-2000:] + done.stderr[-2000:]
