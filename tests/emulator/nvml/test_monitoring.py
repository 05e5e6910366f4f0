"""GPM metrics, samples of the last seconds, and what a board tells of its condition."""

import ctypes
import itertools

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.state import EccCounts, NvmlProcess
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import constant, parse_load
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.hosts import gpu, uuid_of

OK, INVALID, NOT_SUPPORTED, NOT_FOUND, SMALL, MISMATCH = 0, 2, 3, 6, 7, 25
METRICS = 210


class Metric(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint),
        ("result", ctypes.c_uint),
        ("value", ctypes.c_double),
        ("names", ctypes.c_char_p * 3),
    )


class MetricsGet(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("samples", ctypes.c_void_p * 2),
        ("metrics", Metric * METRICS),
    )


class Sample(ctypes.Structure):
    _fields_ = (("timestamp", ctypes.c_ulonglong), ("value", ctypes.c_uint), ("rest", ctypes.c_uint))


def board_of(model, load):
    board = GpuTelemetry(uuid_of(0), PROFILES[model], seed="1", powered=True)
    board.begin("a", load, 0)
    return board


def show(read, model, board, at_s, **more):
    read.show(gpu(0, model, record=board.record(ns(at_s), 64)), at_s=at_s, **more)


def sample(read):
    handle = ctypes.c_void_p()
    assert read.calls.nvmlGpmSampleAlloc(ctypes.byref(handle)) == OK
    assert read.calls.nvmlGpmSampleGet(read.device, handle) == OK
    return handle.value


def metrics(read, first, second, *ids, version=1, count=None):
    """The code, or metric -> its value or minus its code."""
    wish = MetricsGet(version, len(ids) if count is None else count, (first, second))
    for place, number in enumerate(ids):
        wish.metrics[place].id = number
    code = read.calls.nvmlGpmMetricsGet(ctypes.byref(wish))
    found = wish.metrics[: len(ids)]
    return code or {one.id: one.value if one.result == 0 else -one.result for one in found}


def test_metrics_are_means_between_two_samples(read):
    curve = parse_load({"curve": [[0, 20], [10, 80]], "repeat_s": 21})
    board = board_of("H100-SXM", curve)
    show(read, "H100-SXM", board, 5, switched=True)
    first = sample(read)
    show(read, "H100-SXM", board, 15, switched=True)
    second = sample(read)
    found = metrics(read, first, second, 1, 2, 5, 6, 10, 20, 60, 62, 97, 30, 100, 160)
    assert found[1] == found[2] == pytest.approx(50, abs=1)
    assert (found[5], found[6], found[10]) == (found[1] / 2, 0, pytest.approx(found[1] / 2))
    sent = (board.pcie_bytes(ns(15)) - board.pcie_bytes(ns(5))) / 10 / 2**20
    assert found[20] == pytest.approx(sent, rel=1e-3)
    assert found[60] == pytest.approx(18 * found[62]) and found[62] == found[97] > 0
    assert (found[30], found[100], found[160]) == (0, -NOT_SUPPORTED, -NOT_SUPPORTED)


def test_metrics_of_wrong_samples_are_refused(read):
    board = board_of("H100-SXM", constant(50))
    show(read, "H100-SXM", board, 5)
    first, empty = sample(read), ctypes.c_void_p()
    assert read.calls.nvmlGpmSampleAlloc(ctypes.byref(empty)) == OK
    show(read, "H100-SXM", board, 6)
    second = sample(read)
    assert metrics(read, first, second, 1) == {1: pytest.approx(50)}
    assert metrics(read, second, first, 1) == INVALID
    assert metrics(read, first, empty.value, 1) == metrics(read, empty.value, second, 1) == INVALID
    assert metrics(read, first, 0x1234, 1) == metrics(read, first, None, 1) == INVALID
    assert metrics(read, first, second, count=METRICS + 1) == INVALID
    assert metrics(read, first, second, 1, version=2) == MISMATCH
    assert read.calls.nvmlGpmSampleFree(ctypes.c_void_p(first)) == OK
    assert read.calls.nvmlGpmSampleFree(ctypes.c_void_p(first)) == INVALID
    assert metrics(read, first, second, 1) == INVALID


@pytest.mark.parametrize(("model", "supported"), [("A100", 0), ("L40S", 0), ("H100", 1), ("GB200", 1)])
def test_monitoring_began_with_hopper(read, model, supported):
    read.show(gpu(0, model))
    told, handle = (ctypes.c_uint * 2)(1, 7), ctypes.c_void_p()
    assert read.calls.nvmlGpmQueryDeviceSupport(read.device, told) == OK
    assert told[1] == supported
    assert read.calls.nvmlGpmSampleAlloc(ctypes.byref(handle)) == OK
    assert read.calls.nvmlGpmSampleGet(read.device, handle) == (OK if supported else NOT_SUPPORTED)


def samples(read, kind, since=0, room=200):
    """The code and what was sampled, oldest first."""
    value, count, out = ctypes.c_uint(9), ctypes.c_uint(room), (Sample * max(room, 1))()
    arguments = (read.device, kind, ctypes.c_ulonglong(since), ctypes.byref(value), ctypes.byref(count))
    code = read.calls.nvmlDeviceGetSamples(*arguments, out if room else None)
    assert value.value == 1
    return code, [(one.timestamp, one.value) for one in out[: count.value]] if room and not code else count.value


def test_samples_show_the_last_seconds(read):
    board = board_of("A100", constant(70))
    show(read, "A100", board, 5)
    assert samples(read, 1, room=0) == (OK, 120)
    code, found = samples(read, 1)
    assert code == OK and len(found) == 120 and {value for _, value in found} == {70}
    steps = {later - earlier for (earlier, _), (later, _) in itertools.pairwise(found)}
    assert steps == {167_000}
    newest = found[-4][0]
    code, later = samples(read, 0, since=newest)
    assert code == OK and 3 <= len(later) <= 5 and later[0][0] > newest
    assert {value for _, value in later} == {board.reading(ns(5)).power_mw}
    assert samples(read, 1, room=10) == (SMALL, 120)
    assert samples(read, 1, since=2**62) == (NOT_FOUND, 0)


def test_processes_show_their_share(read):
    board = board_of("A100", constant(60))
    record = board.record(ns(5))
    read.show(gpu(0, "A100", record=record, processes=(NvmlProcess(41, "a", 10),)), at_s=5)
    share = (ctypes.c_uint * 10)()
    wish = (ctypes.c_uint * 6)(0x1000018, 1)
    ctypes.memmove(ctypes.addressof(wish) + 16, ctypes.byref(ctypes.c_void_p(ctypes.addressof(share))), 8)
    assert read.calls.nvmlDeviceGetProcessesUtilizationInfo(read.device, wish) == OK
    assert (wish[1], share[2], share[3], share[4]) == (1, 41, 60, 30)


def text(read, name, *arguments):
    out = ctypes.create_string_buffer(64)
    code = getattr(read.calls, name)(read.device, *arguments, out, 64)
    return code or out.value.decode()


def test_a_board_tells_of_its_inforom(read):
    read.show(gpu(0, "H100-SXM"))
    code, shown = read.host.smi("--query-gpu=inforom.img,inforom.oem,inforom.ecc", "--format=csv,noheader")
    told = [text(read, "nvmlDeviceGetInforomImageVersion")]
    told += [text(read, "nvmlDeviceGetInforomVersion", number) for number in (0, 1)]
    assert (code, shown) == (0, f"{', '.join(told)}\n")
    assert text(read, "nvmlDeviceGetInforomVersion", 2) == NOT_SUPPORTED
    assert text(read, "nvmlDeviceGetInforomVersion", 4) == INVALID
    assert read.calls.nvmlDeviceGetInforomVersion(read.device, 0, ctypes.create_string_buffer(2), 2) == SMALL
    read.show(gpu(0, "RTX 3090"))
    assert text(read, "nvmlDeviceGetInforomVersion", 1) == NOT_SUPPORTED


def test_sram_is_counted_from_ampere_on(read):
    for model, expected in (("T4", NOT_SUPPORTED), ("A100", OK), ("RTX 3090", NOT_SUPPORTED)):
        read.show(gpu(0, model))
        status = (ctypes.c_uint * 26)(0x1000068)
        assert read.calls.nvmlDeviceGetSramEccErrorStatus(read.device, status) == expected
        status[0] = 0x2000068
        assert read.calls.nvmlDeviceGetSramEccErrorStatus(read.device, status) == MISMATCH
    read.show(gpu(0, "A100", ecc_enabled=False))
    assert read.calls.nvmlDeviceGetSramEccErrorStatus(read.device, (ctypes.c_uint * 26)(0x1000068)) == NOT_SUPPORTED


def test_errors_cost_pages_before_ampere(read):
    ecc = EccCounts(volatile_uncorrected=1, aggregate_uncorrected=3)
    read.show(gpu(0, "V100", ecc=ecc))
    count, pages, times = ctypes.c_uint(8), (ctypes.c_ulonglong * 8)(), (ctypes.c_ulonglong * 8)(*[5] * 8)
    get = read.calls.nvmlDeviceGetRetiredPages_v2
    assert get(read.device, 1, ctypes.byref(count), pages, times) == OK
    assert count.value == 3 and len({*pages[:3]}) == 3 and times[:4] == [0, 0, 0, 5]
    assert all(page % 4096 == 0 and 0 <= page < 32768 << 20 for page in pages[:3])
    count.value = 2
    assert get(read.device, 1, ctypes.byref(count), pages, times) == SMALL and count.value == 3
    assert get(read.device, 0, ctypes.byref(count), pages, times) == OK and count.value == 0
    names = ("DEV_RETIRED_DBE", "DEV_RETIRED_SBE", "DEV_RETIRED_PENDING", "DEV_RETIRED_PENDING_DBE")
    assert [read(name) for name in names] == [3, 0, 1, 1]
    code, text = read.host.smi(
        "--query-retired-pages=retired_pages.address,retired_pages.cause", "--format=csv,noheader"
    )
    assert (code, text.splitlines()) == (0, [f"0x{page:016x}, Double Bit ECC" for page in pages[:3]])
    read.show(gpu(0, "V100", ecc=EccCounts(aggregate_uncorrected=900)))
    assert read("DEV_RETIRED_DBE") == 64 and read("DEV_RETIRED_PENDING") == 0


@pytest.mark.parametrize(("model", "banks"), [("A100", 640), ("L4", 192)])
def test_errors_cost_rows_from_ampere_on(read, model, banks):
    read.show(gpu(0, model, ecc=EccCounts(volatile_uncorrected=2, aggregate_uncorrected=5)))
    histogram = (ctypes.c_uint * 5)()
    assert read.calls.nvmlDeviceGetRowRemapperHistogram(read.device, histogram) == OK
    assert [*histogram] == [banks - 5, 5, 0, 0, 0]
    fields = ",".join(f"remapped_rows.histogram.{name}" for name in ("max", "high", "none"))
    assert read.host.smi(f"--query-gpu={fields}", "--format=csv,noheader")[1] == f"{banks - 5}, 5, 0\n"
    assert read("DEV_REMAPPED_UNC") == 5 and read("DEV_GET_GPU_RECOVERY_ACTION") == 4
    assert read.calls.nvmlDeviceGetRetiredPages(read.device, 1, ctypes.byref(ctypes.c_uint()), None) == NOT_SUPPORTED
