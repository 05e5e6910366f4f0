"""MIG devices in containers: which are asked for, and the device nodes that come with them."""

import pytest

from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver
from mews.kube.emulated.kubelet.oci.nvidia import (
    DriverFiles,
    NodeGpu,
    NodeMig,
    UnknownGpuError,
    chosen,
    chosen_parts,
    driver_edits,
    names_parts,
)
from tests.emulator.host.fixture_hosts import write_files
from tests.emulator.nvml.hosts import Host
from tests.emulator.nvml.mig_host import H100, MigHost

GPUS = (NodeGpu(0, "GPU-a", "0000:20:00.0", 3), NodeGpu(1, "GPU-b", "0000:21:00.0", 4))
PARTS = tuple(
    NodeMig(GPUS[1], n, f"MIG-{n}", (f"/dev/nvidia-caps/nvidia-cap{n}", f"/dev/nvidia-caps/nvidia-cap{n + 50}"))
    for n in range(3)
)


@pytest.mark.parametrize(("words", "asked", "found"), [
    (("MIG-1",), True, ["MIG-1"]), (("mig-1", "1:1", "1:0"), True, ["MIG-1", "MIG-0"]),
    (("GPU-a", "MIG-2"), True, ["MIG-2"]),
    (("GPU-a", "0000:21:00.0"), False, []), (("all",), False, []), (("0", "1"), False, []),
])  # fmt: skip
def test_parts_are_chosen_by_uuid_and_by_numbers(words, asked, found):
    assert names_parts(words) is asked
    assert [part.uuid for part in chosen_parts(words, PARTS)] == found


def test_words_of_parts_are_none_of_gpus_and_unknown_ones_are_refused():
    assert [gpu.uuid for gpu in chosen(("GPU-a", "MIG-1", "1:2"), GPUS)] == ["GPU-a"]
    for word in ("MIG-9", "0:0", "1:3"):
        with pytest.raises(UnknownGpuError, match=word):
            chosen_parts((word,), PARTS)


def test_a_part_comes_with_its_gpus_node_and_its_capabilities_alone():
    edits = driver_edits((), (), DriverFiles(), parts=PARTS[:2])
    assert [device.host_path for device in edits.devices] == [
        "/dev/nvidia4", *PARTS[0].nodes, *PARTS[1].nodes,
    ]  # fmt: skip


def test_a_nodes_parts_are_those_that_its_driver_has(tmp_path):
    host = Host(tmp_path / "host")
    with MigHost(host) as mig:
        assert host.smi("-i", "1", "-mig", "1")[0] == 0
        assert host.smi("mig", "-cgi", "19,9", "-C")[0] == 0
        root = tmp_path / "root"
        (root / "usr/bin").mkdir(parents=True)
        program = root / "usr/bin/nvidia-smi"
        program.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={host.folder} exec {host.folder}/nvidia-smi "$@"\n')
        program.chmod(0o755)
        write_files(mig.pair.tree, root)
        function = mig.function(H100)
        first = 3 + function.minor * 135
        parts = NodeDriver(root).parts()
        assert [part.uuid for part in parts] == [one.uuid for _, one in function.mig.devices()]
        assert [(part.gpu.uuid, part.index) for part in parts] == [(function.device.uuid, n) for n in (0, 1)]
        cap = "/dev/nvidia-caps/nvidia-cap{}"
        numbers = [first + instance.id * 9 for instance, _ in function.mig.devices()]
        assert [part.nodes for part in parts] == [(cap.format(n), cap.format(n + 1)) for n in numbers]
        program.write_text("#!/bin/sh\necho broken; exit 9\n")
        with pytest.raises(OSError, match="broken"):
            NodeDriver(root).parts()
