"""Faults that our kubelet has only on request are upstream's: shown on its own code, from its module."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.upstream.building import HERE, KUBERNETES, ModuleTests, NotBuilt, go_environment

pytestmark = pytest.mark.upstream
TEST = HERE / "kubelet" / "devices_in_flight_test.go"
PACKAGE = "pkg/kubelet/cm/devicemanager"


def module(folder: Path, source: Path) -> None:
    """A module of that one package, its files unmodified, whose other packages are upstream's."""
    lines = (source / "go.mod").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.startswith(("go ", "godebug "))]
    released = KUBERNETES.replace("v1.", "v0.")
    staging = [line.split(" => ")[0].strip() for line in lines if " => ./staging" in line]
    names = [name.removeprefix("replace ") for name in staging]
    replaced = [f"replace {name} => {name} {released}" for name in names]
    text = "\n".join(("module judged", *kept, f"require k8s.io/kubernetes {KUBERNETES}", *replaced, ""))
    (folder / "go.mod").write_text(text, encoding="utf-8")
    own = folder / "devicemanager"
    own.mkdir()
    for path in sorted((source / PACKAGE).glob("*.go")):
        if not path.name.endswith("_test.go"):
            shutil.copyfile(path, own / path.name)
    shutil.copyfile(TEST, own / TEST.name)


def test_upstream_gives_a_device_of_an_unanswered_allocate_to_a_second_pod(tmp_path):
    try:
        source = ModuleTests("k8s.io/kubernetes", KUBERNETES, "").folder()
    except NotBuilt as error:
        pytest.skip(str(error))
    module(tmp_path, source)
    done = subprocess.run(
        ["go", "test", "-vet=off", "-v", "./devicemanager"],
        cwd=tmp_path, env=go_environment(), capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "both live pods hold [a] and [a]" in done.stdout or "both live pods hold [b] and [b]" in done.stdout
    assert "the second pod is refused" in done.stdout
