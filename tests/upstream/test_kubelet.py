"""What ours has from upstream's kubelet, asked of upstream's own code, from its module: the fault that ours has only on
request, and the recorded situations of ``tests/kube/emulated/kubelet/recorded``."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.upstream.building import HERE, KUBERNETES, ModuleTests, NotBuiltError, go_environment

pytestmark = pytest.mark.upstream
OURS = HERE / "kubelet"
RECORDED = HERE.parent / "kube" / "emulated" / "kubelet" / "recorded"
PACKAGE = "pkg/kubelet/cm/devicemanager"
_PHASE = """package phase

import (
	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/features"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

"""


def module(folder: Path, source: Path) -> None:
    """A module of two packages whose others are upstream's: the device manager, its files unmodified, and the function
    of a pod's phase."""
    lines = (source / "go.mod").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.startswith(("go ", "godebug "))]
    released = KUBERNETES.replace("v1.", "v0.")
    names = [line.split(" => ")[0].strip().removeprefix("replace ") for line in lines if " => ./staging" in line]
    replaced = [f"replace {name} => {name} {released}" for name in names]
    text = "\n".join(("module judged", *kept, f"require k8s.io/kubernetes {KUBERNETES}", *replaced, ""))
    (folder / "go.mod").write_text(text, encoding="utf-8")
    own, phase = folder / "devicemanager", folder / "phase"
    own.mkdir()
    phase.mkdir()
    for path in sorted((source / PACKAGE).glob("*.go")):
        if not path.name.endswith("_test.go"):
            shutil.copyfile(path, own / path.name)
    for name, place in (("devices_in_flight", own), ("choices", own), ("admissions", own), ("phases", phase)):
        shutil.copyfile(OURS / f"{name}_test.go", place / f"{name}_test.go")
    whole = (source / "pkg/kubelet/kubelet_pods.go").read_text(encoding="utf-8")
    begun = whole.index("func getPhase(")
    (phase / "phase.go").write_text(_PHASE + whole[begun : whole.index("\n}\n", begun) + 3], encoding="utf-8")


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The folder of the module."""
    try:
        source = ModuleTests("k8s.io/kubernetes", KUBERNETES, "").folder()
    except NotBuiltError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("judged")
    module(folder, source)
    return folder


def run(folder, package, **environment):
    done = subprocess.run(
        ["go", "test", "-vet=off", "-v", f"./{package}"],
        cwd=folder, env=go_environment() | environment, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_upstream_gives_a_device_of_an_unanswered_allocate_to_a_second_pod(judged):
    shown = run(judged, "devicemanager")
    assert "both live pods hold [a] and [a]" in shown or "both live pods hold [b] and [b]" in shown
    assert "the second pod is refused" in shown


@pytest.mark.parametrize(
    ("name", "package"), [("choices", "devicemanager"), ("admissions", "devicemanager"), ("phases", "phase")]
)
def test_the_recorded_situations_are_what_upstream_makes_of_them(judged, name, package):
    written = judged / f"{name}.csv"
    run(judged, package, **{f"MEWS_{name.upper()}": str(written)})
    assert written.read_text(encoding="utf-8") == (RECORDED / written.name).read_text(encoding="utf-8")
