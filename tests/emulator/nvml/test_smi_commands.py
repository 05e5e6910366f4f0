"""nvidia-smi as programs and people call it: monitors by process, links, pairs of GPUs, and exporters' arguments."""

import re
import subprocess
import xml.etree.ElementTree as tree

import pytest
from msgspec.structs import replace

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.hardware.topology import cube_mesh
from mews.emulator.nvml.compile import compiler
from mews.emulator.nvml.state import NvmlProcess, StateClock
from mews.emulator.telemetry.controls import BoardControls
from mews.emulator.telemetry.gpu import GpuTelemetry
from mews.emulator.telemetry.load import constant
from mews.emulator.telemetry.units import ns
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_instances import parts


def working(model="H100-SXM", number=0, percent=60, **controls):
    """A GPU with a process that takes that much of it."""
    board = GpuTelemetry(uuid_of(number), PROFILES[model], seed="1", powered=True)
    board.begin("a", constant(percent), 0)
    board.control(BoardControls(**controls), 0)
    board.begin("b", constant(0), 0)
    processes = (NvmlProcess(41, "train", 512), NvmlProcess(42, "idle", 8))
    return gpu(number, model, record=board.record(ns(5), 8), processes=processes, memory_used_mib=512)


def test_pmon_shows_the_share_of_each_process(host):
    host.show(working(), gpu(1, "H100-SXM"), clock=StateClock(0, ns(5), speed=0))
    code, text = host.smi("pmon", "-c", "1", "-s", "um")
    head, units, busy, waiting, idle = (line.split() for line in text.splitlines())
    assert code == 0
    assert head[1:] == ["gpu", "pid", "type", "sm", "mem", "enc", "dec", "jpg", "ofa", "fb", "ccpm", "command"]
    assert units[-3:] == ["MB", "MB", "name"]
    assert busy == ["0", "41", "C", "60", "30", "-", "-", "-", "-", "512", "0", "train"]
    assert waiting == ["0", "42", "C", *"-" * 6, "8", "0", "idle"]
    assert idle == ["1", *"-" * 11]
    assert host.smi("pmon", "--count=1", "--select=m")[1].splitlines()[2].split() == [
        "0", "41", "C", "512", "0", "train",
    ]  # fmt: skip


def test_dmon_shows_what_the_power_limit_took_between_two_lines(host):
    host.show(working("A100", power_limit_mw=150_000), working("A100", 1), clock=None)
    code, text = host.smi("dmon", "-s", "v", "-c", "2", "-d", "1")
    lines = [line.split() for line in text.splitlines()]
    assert (code, lines[0][2:], lines[1][2:]) == (0, ["pviol", "tviol"], ["%", "bool"])
    assert lines[2:] == [["0", "0", "0"], ["1", "0", "0"], ["0", "100", "0"], ["1", "0", "0"]]


def test_dmon_writes_csv_with_and_without_its_head(host):
    host.show(working(), gpu(1, "L4"), clock=None)
    measured = ("--gpm-metrics=1", "--gpm-options=d")
    code, text = host.smi("dmon", "-s", "pm", "--format", "csv", "-c", "3", "-d", "1", *measured)
    head, units, *lines = text.splitlines()
    assert code == 0 and len(lines) == 6
    assert head == "#gpu, pwr, gtemp, mtemp, fb, bar1, ccpm, gract"
    assert units == "#Idx, W, C, C, MB, MB, MB, GPM:%"
    assert re.fullmatch(r"0, \d+, \d+, \d+, 512, 1, 0, 60", lines[4]), lines
    assert re.fullmatch(r"1, \d+, \d+, -, 0, 1, 0, -", lines[5]), lines
    assert host.smi("dmon", "-s", "m", "-c", "1", "--format=csv,noheader,nounit") == (0, "0, 512, 1, 0\n1, 0, 1, 0\n")
    assert host.smi("dmon", "-s", "m", "-c", "1", "--format=csv,noheader")[1].startswith("#Idx, MB, MB, MB\n0,")
    stamped = host.smi("dmon", "-s", "m", "-c", "1", "-o", "DT", "--format=csv,nounit")[1].splitlines()
    assert stamped[0] == "#Date, Time, gpu, fb, bar1, ccpm"
    assert re.fullmatch(r"\d{8}, \d\d:\d\d:\d\d, 0, 512, 1, 0", stamped[1])


@pytest.fixture
def unpaused(tmp_path):
    """A library to preload that ends all sleeps at once."""
    source = tmp_path / "unpaused.c"
    source.write_text("int nanosleep(const void *wanted, void *left) { return 0; }\n")
    subprocess.run([*compiler(), "-shared", "-fPIC", "-o", str(source.with_suffix(".so")), str(source)], check=True)
    return str(source.with_suffix(".so"))


def test_dmon_repeats_the_head_of_a_table_and_not_of_csv(host, unpaused):
    host.show(gpu(0))
    for words, heads in (((), 3), (("--format=csv",), 1)):
        code, text = host.smi("dmon", "-s", "m", "-c", "41", *words, LD_PRELOAD=unpaused)
        assert (code, text.count("gpu"), len(text.splitlines())) == (0, heads, 41 + 2 * heads)


@pytest.mark.parametrize(
    "words", [("--format", "xml"), ("--format", "noheader"), ("--format", "csv,"), ("--gpm-options", "x")]
)
def test_dmon_refuses_forms_that_there_are_not(host, words):
    host.show(gpu(0))
    code, text = host.smi("dmon", "-c", "1", *words)
    assert code == 2 and "Usage: dmon" in text
    assert host.smi("pmon", "-c", "1", "--format", "csv")[0] == 2


def divided():
    """An H100 with a half and a seventh, and a process in each."""
    board = GpuTelemetry(uuid_of(0), PROFILES["H100-SXM"], seed="1", powered=True)
    board.begin("a", constant(28), 0)
    board.begin("b", constant(4), 0)
    mig = parts("H100-SXM")
    processes = [NvmlProcess(41 + n, key, 8, "C", mig.instances[n].id, 0) for n, key in enumerate("ab")]
    return gpu(0, "H100-SXM", record=board.record(ns(5), 8), processes=tuple(processes), mig=mig)


@pytest.mark.parametrize("whose", ["d", "m", "dm"])
def test_dmon_has_lines_of_gpus_and_of_their_instances(host, whose):
    """A process that takes 28 % of the GPU takes 65 % of a part with three of seven slices."""
    shown = divided()
    host.show(shown, clock=None)
    half, seventh = (str(instance.id) for instance in shown.mig.instances)
    wanted = {"-": ["32", "16"], half: ["65", "33"], seventh: ["28", "14"]}
    wanted = {one: values for one, values in wanted.items() if ("d" if one == "-" else "m") in whose}
    words = ("dmon", "-c", "3", "-s", "c", "--gpm-metrics", "1,10", "--gpm-options", whose)
    code, text = host.smi(*words)
    head, units, *lines = [line.split() for line in text.splitlines()]
    has_instances = "m" in whose
    assert (code, len(lines)) == (0, 3 * len(wanted))
    assert head[2:] == [*["gi"] * has_instances, "mclk", "pclk", "gract", "dram"] and units[-2:] == ["GPM:%"] * 2
    assert [line[-2:] for line in lines[-len(wanted) :]] == list(wanted.values())
    if has_instances:
        assert [line[1] for line in lines] == [*wanted] * 3
        assert all(line[2:4] == ["-", "-"] for line in lines if line[1] != "-")
    code, text = host.smi(*words, "--format", "csv,nounit")
    assert text.splitlines()[0] == f"#gpu, {'gi, ' * has_instances}mclk, pclk, gract, dram"
    assert [len(line.split(", ")) for line in text.splitlines()] == [5 + has_instances] * (1 + 3 * len(wanted))


def test_dmon_measures_gpm_metrics_before_the_last_of_its_lines(host):
    """The first two have none, as Lei Mao shows ("NVIDIA NVML GPU Statistics", 2025)."""
    host.show(working(), gpu(1, "A100"), switched=True, clock=None)
    code, text = host.smi("dmon", "-s", "m", "--gpm-metrics", "1,10,30,160", "-c", "3", "-d", "1")
    lines = [line.split() for line in text.splitlines()]
    assert (code, lines[0][5:], lines[1][5:]) == (0, ["gract", "dram", "30", "160"], ["GPM:%"] * 4)
    assert [line[4:] for line in (*lines[2:6], lines[7])] == [["-"] * 4] * 5
    assert lines[6][4:] == ["60", "30", "0", "-"]


@pytest.mark.parametrize("metrics", ["", "0", "210", "1,", "1;2", "x"])
def test_gpm_metrics_are_numbers_that_there_are(host, metrics):
    host.show(gpu(0, "H100-SXM"))
    code, text = host.smi("dmon", "--gpm-metrics", metrics, "-c", "1")
    assert code == 2 and "Usage: dmon" in text


def test_p2p_tells_what_pairs_can(host):
    host.show(*(gpu(number) for number in range(8)), topology=cube_mesh())
    code, text = host.smi("topo", "-p2p", "n")
    assert code == 0
    rows = [line.split() for line in text.splitlines()[1:9]]
    assert rows[0] == ["GPU0", "X", "OK", "OK", "OK", "OK", "NS", "NS", "NS"]
    assert rows[7][1:5] == ["NS", "NS", "NS", "OK"]
    host.show(gpu(0), replace(gpu(1), numa_node=1))
    assert host.smi("topo", "-p2p", "r")[1].splitlines()[1].split() == ["GPU0", "X", "CNS"]


def test_topo_names_the_gpus_near_a_cpu(host):
    host.show(gpu(0, cpus="0-3"), gpu(1, cpus="4-7"), gpu(2, cpus="0-3"))
    assert host.smi("topo", "-c", "2") == (0, "The GPUs that have an affinity with CPU 2 are: 0, 2\n")
    assert host.smi("topo", "-c", "99")[1].endswith("are: none\n")


def test_nvlink_shows_ends_capabilities_errors_and_traffic(host):
    ends = ("0000:11:00.0", "0000:12:00.0")
    host.show(gpu(0, link_ends=ends), gpu(1), gpu(2))
    assert re.findall(r"Link \d: (.*)", host.smi("nvlink", "-p", "-i", "0")[1]) == [
        "00000000:11:00.0",
        "00000000:12:00.0",
    ]
    one = host.smi("nvlink", "-c", "-i", "0", "-l", "1")[1]
    assert one.count("Link 1, ") == 6 and one.count("true") == 5 and "SLI is supported: false" in one
    assert re.findall(r"(\w+) Errors: (\d+)", host.smi("nvlink", "-e", "-i", "0", "-l", "0")[1]) == [
        ("Replay", "0"), ("Recovery", "0"), ("CRC", "0"),
    ]  # fmt: skip
    code, text = host.smi("nvlink", "--reseterrorcounters", "-i", "0", MEWS_NVML_RIGHTS="none")
    assert code == 4 and "Insufficient Permissions" in text
    assert host.smi("nvlink", "-re", "-i", "0")[0] == 0
    host.show(working(), switched=True, clock=StateClock(0, ns(9), speed=0))
    data, raw = (re.findall(r": (?:Data|Raw) Tx: (\d+) KiB", host.smi("nvlink", "-gt", kind)[1]) for kind in "dr")
    assert len(data) == len(raw) == 18 and int(raw[0]) > int(data[0]) > 0


def fields_of(host):
    """What the most used exporter does first: the names are the quoted words after an empty line."""
    code, text = host.smi("--help-query-gpu")
    assert code == 0
    return re.findall(r'\n\s*\n"([^"]+)"', text)


def test_the_exporter_of_prometheus_reads_all_fields(host):
    host.show(gpu(0, "H100-SXM", utilization_percent=30), gpu(1, "L4"), driver_version="580.105.08")
    fields = fields_of(host)
    assert len(fields) > 150 and {"uuid", "name", "power.draw", "clocks_event_reasons.hw_slowdown"} <= set(fields)
    code, text = host.smi(f"--query-gpu={','.join(fields)}", "--format=csv")
    head, *rows = text.splitlines()
    assert code == 0 and len(rows) == 2
    assert all(len(row.split(", ")) == len(fields) for row in (head, *rows))


@pytest.mark.parametrize("words", [("-q", "-x"), ("-q", "-x", "-i", "0")])
def test_telegraf_reads_the_xml(host, words):
    """The elements that telegraf 1.37's nvidia_smi input reads of each GPU, with the unit that it cuts off."""
    host.show(gpu(0, "A100", utilization_percent=30), driver_version="570.86.15")
    code, text = host.smi(*words)
    one = tree.fromstring(text).find("gpu")
    wanted = {
        "product_name": "", "uuid": "", "performance_state": "", "compute_mode": "", "vbios_version": "",
        "fb_memory_usage/total": " MiB", "fb_memory_usage/used": " MiB", "fb_memory_usage/free": " MiB",
        "temperature/gpu_temp": " C", "utilization/gpu_util": " %", "utilization/memory_util": " %",
        "utilization/encoder_util": " %", "utilization/decoder_util": " %", "clocks/graphics_clock": " MHz",
        "clocks/sm_clock": " MHz", "clocks/mem_clock": " MHz", "clocks/video_clock": " MHz",
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "",
        "pci/pci_gpu_link_info/link_widths/current_link_width": "x",
        "encoder_stats/session_count": "", "fbc_stats/average_latency": "",
        "gpu_power_readings/instant_power_draw": " W",
    }  # fmt: skip
    shown = {path: one.findtext(path) for path in wanted}
    assert code == 0 and [path for path, unit in wanted.items() if unit not in (shown[path] or "-")] == []


def test_mamba_finds_the_version_of_cuda(host):
    host.show(gpu(0), driver_version="580.105.08")
    code, text = host.smi("--query", "-u", "-x")
    assert code == 0
    assert re.search(r"<cuda_version>(.*)</cuda_version>", text)[1] == "13.0"
    assert tree.fromstring(text).findtext("attached_units") == "0"
    code, text = host.smi("-q", "-u")
    assert code == 0 and re.search(r"Attached Units\s+: 0", text) and "GPU 0" not in text
    assert host.smi("-L", "-u") == (0, "No units were found\n")
