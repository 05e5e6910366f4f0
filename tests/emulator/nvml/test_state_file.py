"""The state file's bytes and the requests' lines."""

import zlib

import pytest

from benchmarks.nvml import GPU_BYTES_BEFORE_MIG, GPUS, idle
from mews.emulator.hardware.gpu_profiles import PROFILES, profile_of
from mews.emulator.hardware.topology import cube_mesh, nvswitch, pcie
from mews.emulator.nvml.requests import (
    Discover,
    Drain,
    Hold,
    NvmlReply,
    Persistence,
    ProtocolError,
    Release,
    Remove,
    decode_reply,
    decode_request,
    encode_reply,
    encode_request,
    socket_path,
)
from mews.emulator.nvml.state import NvmlEvent, NvmlGpu, NvmlHost, NvmlProcess, StateClock, render, write_state


def gpu(index=0, **more):
    identity = {"bus_id": f"0000:{0x40 + index:02x}:00.0", "uuid": f"GPU-{index:08d}-0000-4000-8000-000000000000"}
    return NvmlGpu(**{"index": index, "minor": index, "profile": PROFILES["V100"], **identity, **more})


def test_the_head_names_version_length_and_checksum():
    head, body = render(NvmlHost(gpus=(gpu(),))).split(b"\n", 1)
    assert head == f"mews-nvml 1 {len(body)} {zlib.crc32(body):08x}".encode()


def test_a_gpu_takes_no_tenth_more_than_before_gpus_could_be_divided():
    assert len(render(idle())) / GPUS < 1.1 * GPU_BYTES_BEFORE_MIG


def test_the_same_host_is_the_same_bytes():
    host = NvmlHost(gpus=(gpu(), gpu(1)), events=(NvmlEvent(1, "xid", "0000:40:00.0", 79),))
    assert render(host) == render(host)


def test_strings_cannot_break_out_of_their_line():
    body = render(NvmlHost(gpus=(gpu(processes=(NvmlProcess(7, "a b%\nindex 9", 1),)),)))
    assert b"process 7 C 1048576 a%20b%25%0aindex%209\n" in body


def test_load_moves_power_temperature_and_clocks():
    idle, busy = render(NvmlHost(gpus=(gpu(),))), render(NvmlHost(gpus=(gpu(utilization_percent=100),)))
    assert b"\nspan 0 -1 0 0 25000 135 877 555 0 1 0 0 0 33000000 33000000\n" in idle
    assert b"\nspan 0 -1 100 50 250000 1380 877 1237 0 4 1970000 0 0 62000000 62000000\n" in busy


def test_a_topology_needs_a_row_for_each_gpu():
    with pytest.raises(ValueError, match="8 rows for 1 GPUs"):
        render(NvmlHost(gpus=(gpu(),), topology=cube_mesh()))


def test_every_gpu_of_the_cube_mesh_has_six_links():
    assert [sum(int(word[2:]) for word in row if word.startswith("NV")) for row in cube_mesh()] == [6] * 8
    assert all(cube_mesh()[a][b] == cube_mesh()[b][a] for a in range(8) for b in range(8))


def test_switches_join_all_and_pcie_keeps_to_the_numa_node():
    assert nvswitch(3) == (("X", "NV12", "NV12"), ("NV12", "X", "NV12"), ("NV12", "NV12", "X"))
    assert pcie((0, 0, 1))[0] == ("X", "PXB", "SYS")


def test_writing_replaces_the_file_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "nvml.state"
    write_state(path, NvmlHost())
    write_state(path, NvmlHost(gpus=(gpu(),)))
    clock = StateClock(int(path.read_text().split("clock_monotonic ")[1].split()[0]))
    assert path.read_bytes() == render(NvmlHost(gpus=(gpu(),), clock=clock))
    assert [one.name for one in tmp_path.iterdir()] == ["nvml.state"]


@pytest.mark.parametrize("model", ["V100", "A100", "H100", "H200", "B200", "L40S", "T4", "RTX 3090", "B300",
                                   "RTX PRO 6000", "RTX PRO 5000", "RTX PRO 4500"])  # fmt: skip
def test_every_model_is_plausible(model):
    profile = profile_of(f"NVIDIA {model.lower()}")
    assert profile.device_id & 0xFFFF == 0x10DE
    assert profile.min_power_limit_mw <= profile.power_limit_mw <= profile.max_power_limit_mw
    assert profile.idle_power_mw < profile.power_limit_mw
    assert profile.memory_mib > 10_000


def test_an_unknown_model_names_those_there_are():
    with pytest.raises(KeyError, match="A100, A100-SXM4-40GB"):
        profile_of("MI300X")


REQUESTS = (
    Hold(4711, ("0000:44:00.0", "0000:45:00.0")),
    Hold(4711, ()),
    Release(),
    Drain("0000:44:00.0", True),
    Remove("0000:44:00.0", True, False),
    Discover(None),
    Discover("0000:44:00.0"),
    Persistence("0000:44:00.0", False),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=repr)
def test_requests_survive_the_wire(request_):
    line = encode_request(request_)
    assert line.endswith(b"\n")
    assert decode_request(line) == request_


@pytest.mark.parametrize(
    "line",
    [b"", b"mews-nvml 1", b"mews-nvml 2 release\n", b"mews-nvml 1 drain 0000:44:00.0 2\n", b"\xff", b"mews-nvml 1 x\n"],
)
def test_a_line_that_is_no_request_is_told(line):
    with pytest.raises(ProtocolError):
        decode_request(line)


def test_bus_ids_of_eight_digits_become_sysfs_ones():
    assert decode_request(b"mews-nvml 1 drain 00000000:4A:00.0 1") == Drain("0000:4a:00.0", True)


def test_replies_survive_the_wire():
    assert decode_reply(encode_reply(NvmlReply(19, "held by\n 4711"))) == NvmlReply(19, "held by 4711")
    assert encode_reply(NvmlReply(0)) == b"0\n"


def test_the_socket_lies_beside_the_state(tmp_path):
    assert socket_path(tmp_path / "nvml.state") == tmp_path / "nvml.state.sock"
