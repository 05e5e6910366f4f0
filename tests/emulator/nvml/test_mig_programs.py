"""Programs of others that divide GPUs: NVIDIA's mig-parted, which MEWS_NVIDIA_MIG_PARTED names, and nvidia-ml-py.

mig-parted looks for GPUs in ``/sys`` and for the driver in ``/proc/modules``: it gets the host's in a mount namespace.
"""

import os
import shutil
import subprocess

import pytest
import yaml

from tests.emulator.host.fixture_hosts import write_files
from tests.emulator.nvml.mig_host import MigHost

pytestmark = pytest.mark.wall

OWN = "MEWS_NVIDIA_MIG_PARTED"
GPUS, PARTS = 8, 7
INSIDE = (
    'mount --bind "$1/sys" /sys && mount -t tmpfs none /proc && echo "nvidia 1 0 - Live 0x0" > /proc/modules && '
    'shift && exec "$@"'
)

DIVIDE = """
import pynvml as p
p.nvmlInit()
for n in range(p.nvmlDeviceGetCount()):
    h = p.nvmlDeviceGetHandleByIndex(n)
    if n in {chosen} and p.nvmlDeviceGetMigMode(h) != [1, 1]:
        assert p.nvmlDeviceSetMigMode(h, 1) == 0
        small = p.nvmlDeviceGetGpuInstanceProfileInfo(h, p.NVML_GPU_INSTANCE_PROFILE_1_SLICE)
        while p.nvmlDeviceGetGpuInstanceRemainingCapacity(h, small.id):
            instance = p.nvmlDeviceCreateGpuInstance(h, small.id)
            one = p.nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, p.NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE, 0)
            p.nvmlGpuInstanceCreateComputeInstance(instance, one.id)
"""


@pytest.fixture
def eight(host, monkeypatch):
    """A host with eight H100."""
    monkeypatch.setattr("tests.emulator.host.bench.MODELS", ("H100",) * 4)
    with MigHost(host, GPUS) as served:
        yield served


def devices(eight):
    """How many MIG devices each GPU has, as nvidia-smi lists them."""
    counts = []
    for line in eight.folder.smi("-L")[1].splitlines():
        if line.startswith("GPU"):
            counts.append(0)
        else:
            counts[-1] += 1
    return counts


def wanted(divided):
    return [PARTS] * divided + [0] * (GPUS - divided)


def test_nvidia_ml_py_divides_all_and_half(eight):
    for chosen in (range(GPUS // 2), range(GPUS)):
        eight.folder.python(DIVIDE.format(chosen=list(chosen)))
        assert devices(eight) == wanted(len(chosen))


def test_mig_parted_divides_all_half_and_none_and_agrees_that_it_did(eight, tmp_path):
    program = os.environ.get(OWN)
    if not program:
        pytest.skip(f"{OWN} names no binary of NVIDIA's mig-parted")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "mount", "--bind", "/", "/mnt"]).returncode:
        pytest.skip("no mount namespace can be made here; the program's files are those of this machine")
    small = {"mig-enabled": True, "mig-devices": {"1g.10gb": PARTS}}
    parts = {"all": GPUS, "half": GPUS // 2, "none": 0}
    document = {
        name: [
            {"devices": list(range(count)), **small},
            {"devices": list(range(count, GPUS)), "mig-enabled": False},
        ]
        for name, count in parts.items()
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"version": "v1", "mig-configs": document}))
    (tmp_path / "files").mkdir()
    write_files(eight.pair.tree, tmp_path / "files")

    def parted(act, name):
        command = ["unshare", "-m", "sh", "-c", INSIDE, "sh", str(tmp_path / "files"), program, act]
        return eight.folder.run(*command, "-f", str(tmp_path / "config.yaml"), "-c", name)

    for name, count in parts.items():
        parted("apply", name)
        assert devices(eight) == wanted(count)
        parted("assert", name)
