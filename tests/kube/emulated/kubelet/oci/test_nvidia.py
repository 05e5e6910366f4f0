"""NVIDIA's runtime: who asks for what, and what of the driver is given."""

import pytest

from mews.kube.emulated.kubelet.oci.nvidia import (
    BY_MOUNTS,
    DriverFiles,
    NodeGpu,
    UnknownGpuError,
    capabilities,
    chosen,
    driver_edits,
    requested,
)

GPUS = tuple(NodeGpu(i, f"GPU-{i}", f"0000:2{i}:00.0", i + 4) for i in range(3))
FILES = DriverFiles(
    libraries=("/usr/lib/x/libnvidia-ml.so.1.2", "/usr/lib/x/libcuda.so.1.2", "/usr/lib/x/libnvidia-encode.so.1.2"),
    programs=("/usr/bin/nvidia-smi", "/usr/bin/nvidia-cuda-mps-server"),
    devices=("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-modeset", "/dev/nvidia4"),
)


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, None), ("", None), ("void", None), ("none", ()), ("all", ("all",)), ("0,GPU-2", ("0", "GPU-2"))],
)
def test_the_environment_asks(text, words):
    assert requested({} if text is None else {"NVIDIA_VISIBLE_DEVICES": text}, ()) == words


def test_mounts_ask_before_the_environment():
    mounts = (f"{BY_MOUNTS}/GPU-2", "/data", f"{BY_MOUNTS}/GPU-0")
    assert requested({"NVIDIA_VISIBLE_DEVICES": BY_MOUNTS}, mounts) == ("GPU-0", "GPU-2")


@pytest.mark.parametrize(
    ("words", "indexes"),
    [
        (("all",), [0, 1, 2]),
        ((), []),
        (("2", "0"), [2, 0]),
        (("gpu-1", "GPU-1"), [1]),
        (("0000:21:00.0", "00000000:22:00.0"), [1, 2]),
    ],
)
def test_gpus_are_chosen_by_index_uuid_and_address(words, indexes):
    assert [gpu.index for gpu in chosen(words, GPUS)] == indexes


def test_a_gpu_that_is_not_there_fails_the_container():
    with pytest.raises(UnknownGpuError, match="device error: GPU-9: unknown device"):
        chosen(("GPU-0", "GPU-9"), GPUS)


def test_capabilities_are_compute_and_utility_if_nothing_is_said_and_unknown_ones_are_refused():
    assert capabilities(None) == capabilities("") == ("compute", "utility")
    assert "video" in capabilities("all")
    assert capabilities("video,utility") == ("video", "utility")
    with pytest.raises(UnknownGpuError, match="unsupported capabilities found in 'compute,gaming'"):
        capabilities("compute,gaming")


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (("utility",), {"libnvidia-ml.so.1.2", "nvidia-smi"}),
        (("compute",), {"libcuda.so.1.2", "nvidia-cuda-mps-server"}),
        (("video",), {"libnvidia-encode.so.1.2"}),
    ],
)
def test_libraries_and_programs_follow_the_capabilities(wanted, names):
    edits = driver_edits(GPUS[:1], wanted, FILES)
    assert {mount.container_path.rpartition("/")[2] for mount in edits.mounts} == names
    assert [device.container_path for device in edits.devices] == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia4"]


def test_modeset_goes_with_graphics_alone():
    edits = driver_edits((), ("graphics",), FILES)
    assert "/dev/nvidia-modeset" in [device.container_path for device in edits.devices]
