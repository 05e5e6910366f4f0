"""NVIDIA's GPU Feature Discovery, unmodified, which MEWS_NVIDIA_GFD names: its labels for each strategy of MIG.

It is ``cmd/gpu-feature-discovery`` of k8s-device-plugin 0.18.0. It needs nothing but the library and a folder.
"""

import os

import pytest

from tests.emulator.nvml.mig_host import MigHost

pytestmark = pytest.mark.wall

OWN = "MEWS_NVIDIA_GFD"
GPUS, PARTS = 4, 7
PRODUCT = "NVIDIA-H100-PCIe"


@pytest.fixture
def four(host, monkeypatch):
    """A host with four H100."""
    monkeypatch.setattr("tests.emulator.host.bench.MODELS", ("H100",) * 4)
    with MigHost(host, GPUS) as served:
        yield served


def labels(host, folder, strategy):
    program = os.environ.get(OWN)
    if not program:
        pytest.skip(f"{OWN} names no binary of NVIDIA's gpu-feature-discovery")
    out = folder / f"labels-{strategy}"
    (folder / "machine").write_text("emulated\n")
    host.folder.run(
        program, "--device-discovery-strategy", "nvml", "--oneshot", "--no-timestamp", "--mig-strategy", strategy,
        "--output-file", str(out), "--machine-type-file", str(folder / "machine"),
    )  # fmt: skip
    found = dict(line.split("=", 1) for line in out.read_text().splitlines())
    return {name.removeprefix("nvidia.com/"): value for name, value in found.items()}


def test_labels_count_gpus_or_their_parts_by_the_strategy(four, tmp_path):
    whole = labels(four, tmp_path, "none")
    assert (whole["gpu.count"], whole["gpu.product"], whole["gpu.memory"]) == (str(GPUS), PRODUCT, "81559")
    assert (whole["gpu.family"], whole["gpu.compute.major"], whole["mig.capable"]) == ("hopper", "9", "true")
    four.folder.smi("-mig", "1")
    four.folder.smi("mig", "-cgi", ",".join(["1g.10gb"] * PARTS), "-C")
    assert labels(four, tmp_path, "none")["gpu.count"] == str(GPUS)
    single = labels(four, tmp_path, "single")
    assert (single["gpu.count"], single["gpu.product"]) == (str(GPUS * PARTS), f"{PRODUCT}-MIG-1g.10gb")
    assert (single["gpu.slices.gi"], single["gpu.engines.copy"], single["mig.strategy"]) == ("1", "1", "single")
    mixed = labels(four, tmp_path, "mixed")
    assert (mixed["gpu.count"], mixed["mig-1g.10gb.count"]) == (str(GPUS), str(GPUS * PARTS))
    assert (mixed["mig-1g.10gb.slices.ci"], mixed["mig-1g.10gb.memory"]) == ("1", single["gpu.memory"])


def test_unlike_parts_have_labels_of_their_own_and_make_single_invalid(four, tmp_path):
    four.folder.smi("-mig", "1")
    four.folder.smi("mig", "-cgi", "3g.40gb,2g.20gb,1g.10gb", "-C")
    mixed = labels(four, tmp_path, "mixed")
    assert [mixed[f"mig-{name}.count"] for name in ("3g.40gb", "2g.20gb", "1g.10gb")] == [str(GPUS)] * 3
    assert mixed["mig-2g.20gb.multiprocessors"] == "32"
    assert labels(four, tmp_path, "single")["gpu.product"].endswith("-MIG-INVALID")
