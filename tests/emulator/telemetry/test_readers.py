"""NVML's view, Redfish and /metrics show one state: the same numbers at any moment, and none of their own."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mews.emulator.dialects.redfish.resources.registry import ROUTES
from mews.emulator.dialects.redfish.route import RouteTree
from mews.emulator.dialects.redfish.service_state import RedfishView, ServiceState
from mews.emulator.dialects.redfish.settings import without_a_wire
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.holders import Holder
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.host.telemetry import report_of
from mews.emulator.rack_telemetry import exposed
from mews.emulator.telemetry.exposition import exposition
from mews.emulator.telemetry.load import constant, parse_load
from mews.emulator.telemetry.units import ns
from tests.emulator.host.bench import hardware

ROOT = Path(__file__).resolve().parents[3]
CURVE = parse_load({"curve": [[0, 10], [20, 90], [45, 0]], "repeat_s": 70})
WALK = parse_load({"walk": {"every_s": 11, "step": 30}})
TREE = RouteTree(ROUTES)
DEVICES = [f"{n:06d}" for n in range(1, 5)]


class World:
    """A chassis with two hosts; what happens to the one is told to the other as in a run in virtual time."""

    def __init__(self):
        from mews.emulator.chassis.fleet import Fleet
        from mews.emulator.host.fleet import Hosts

        self.t = 0.0
        self.hosts = Hosts(hardware(), EmulationContext(1))
        self.fleet = Fleet(hardware(), EmulationContext(1), listener=self._on_event)
        self.box = self.fleet.box("A")
        self.redfish = ServiceState(self.box, without_a_wire("A", "p"))
        self.hosts.begin(0.0)
        self.energy = {}

    def _on_event(self, event):
        self.hosts.on_event(event.chassis, event.number, event.event, event.fields, event.t)

    def report(self):
        for name, host in self.hosts.hosts.items():
            host.settle(self.t)
            self.fleet.telemetry["A"].report(name, report_of(host), self.t)

    def step(self, what, device, argument):
        spec = self.box.table.spec(device)
        host = self.hosts.hosts.get(self.box.spec.ports.get(spec.port))
        if what == "hold" and host is not None:
            host.hold(Holder(f"pod/{device}", (spec.uuid,), pid=9, name="x", computing=True, load=argument), self.t)
        elif what == "release" and host is not None:
            host.release(f"pod/{device}", self.t)
        elif what == "move":
            self.box.edits.edit(device, argument, self.t)
        elif what == "set":
            self.fleet.telemetry["A"].set(device, argument, self.t)
        elif what == "ecc" and host is not None:
            host.faults.add({"kind": "ecc-errors", "device": device, "corrected": 1, "uncorrected": 1}, self.t)
        self.report()

    def get(self, path):
        route, arguments = TREE.find(path)
        return route.read(RedfishView(self.redfish, self.box.rows(self.t), self.t), *arguments)

    def by_redfish(self, device):
        """What the resources of a device say: mW, C, percent, MHz, kWh, ECC."""
        environment = self.get(f"/redfish/v1/Chassis/A/PCIeDevices/{device}/EnvironmentMetrics")
        sensors = {
            kind: self.get(f"/redfish/v1/Chassis/A/Sensors/{device}{kind}")["Reading"]
            for kind in ("Power", "Temp", "Energy")
        }
        report = self.get("/redfish/v1/TelemetryService/MetricReports/Sensors")["MetricValues"]
        reported = {each["MetricId"]: float(each["MetricValue"]) for each in report}
        for kind, name in (("Power", "PowerWatts"), ("Temp", "TemperatureCelsius"), ("Energy", "EnergykWh")):
            assert environment[name]["Reading"] == sensors[kind] == reported[f"{device}{kind}"]
        block = f"/redfish/v1/CompositionService/ResourceBlocks/{device}/Processors/{device}"
        processor, memory = self.get(f"{block}/ProcessorMetrics"), self.get(f"{block}/MemorySummary/MemoryMetrics")
        ecc = [memory[part][f"{kind}ECCErrorCount"] for part in ("CurrentPeriod", "LifeTime") for kind in ERRORS]
        load = [processor["BandwidthPercent"], processor["OperatingSpeedMHz"], *ecc]
        return round(1000 * sensors["Power"]), sensors["Temp"], sensors["Energy"], load

    def by_metrics(self):
        """UUID -> name -> value."""
        found = {}
        text = exposition(exposed(self.box, self.t))
        for name, uuid, value in re.findall(r'^(\w+){.*?UUID="([^"]+)".*?} (\S+)$', text, re.M):
            found.setdefault(uuid, {})[name] = float(value)
        return found

    def by_nvml(self):
        """UUID -> what NVML's state says of it, from all hosts."""
        records = self.fleet.telemetry["A"].records(self.t, 1)
        shown = [nvml_host(host, records=records, now_s=self.t) for host in self.hosts.hosts.values()]
        return {gpu.uuid: gpu for each in shown for gpu in each.gpus}

    def check(self):
        nvml, metrics = self.by_nvml(), self.by_metrics()
        for device in DEVICES:
            uuid, board = self.box.table.spec(device).uuid, self.fleet.telemetry["A"].gpu(device)
            power, degrees, kwh, load = self.by_redfish(device)
            metric = metrics[uuid]
            assert round(1000 * metric["DCGM_FI_DEV_POWER_USAGE"]) == power
            assert metric["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] / 3.6e9 == pytest.approx(kwh, abs=2e-9)
            assert [metric["DCGM_FI_DEV_GPU_UTIL"], metric["DCGM_FI_DEV_SM_CLOCK"]] == load[:2]
            assert [metric[f"DCGM_FI_DEV_ECC_{name}_TOTAL"] for name in COUNTS] == load[2:]
            assert (
                board.span(ns(self.t)).energy_at(ns(self.t)) // 10**9 == metric["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
            )
            if uuid not in nvml:
                continue
            gpu = nvml[uuid]
            ecc = gpu.ecc
            assert (gpu.power_mw, gpu.energy_mj) == (power, metric["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"])
            assert gpu.temperature_c == metric["DCGM_FI_DEV_GPU_TEMP"] == pytest.approx(degrees, abs=0.51)
            assert [gpu.utilization_percent, gpu.sm_clock_mhz] == load[:2]
            assert [
                ecc.volatile_corrected, ecc.volatile_uncorrected, ecc.aggregate_corrected, ecc.aggregate_uncorrected
            ] == load[2:]  # fmt: skip
            assert gpu.memory_used_mib == metric["DCGM_FI_DEV_FB_USED"]


ERRORS = ("Correctable", "Uncorrectable")
COUNTS = ("SBE_VOL", "DBE_VOL", "SBE_AGG", "DBE_AGG")
STEPS = st.one_of(
    st.tuples(
        st.just("hold"), st.sampled_from(DEVICES), st.sampled_from([constant(87), constant(100, 512), CURVE, WALK])
    ),
    st.tuples(st.just("release"), st.sampled_from(DEVICES), st.none()),
    st.tuples(st.just("move"), st.sampled_from(DEVICES), st.sampled_from(["1", "2", None])),
    st.tuples(st.just("ecc"), st.sampled_from(DEVICES), st.none()),
    st.tuples(
        st.just("set"),
        st.sampled_from([*DEVICES, "all"]),
        st.sampled_from([{"temperature": 96}, {"power": 55.5}, {"utilization": 7}, {"all": "none"}, {"sm_clock": 300}]),
    ),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 200), STEPS), max_size=8))
def test_all_readers_agree_at_every_moment_of_a_run(steps):
    world = World()
    world.report()
    world.check()
    for wait_s, (what, device, argument) in steps:
        world.t += wait_s
        world.report()
        world.check()
        if device == "all":
            world.fleet.telemetry["A"].set(device, argument, world.t)
        else:
            world.step(what, device, argument)
        world.check()


READERS = (
    "emulator/host/nvml_view.py",
    "emulator/nvml/state.py",
    "emulator/dialects/redfish/resources/sensors.py",
    "emulator/dialects/redfish/resources/metrics.py",
    "emulator/dialects/redfish/resources/telemetry.py",
    "emulator/telemetry/exposition.py",
    "emulator/rack_telemetry.py",
    "emulator/hostd/telemetry.py",
    "emulator/hostd/nvml_files.py",
    "harness/commands/telemetry.py",
)
C_READERS = sorted(ROOT.glob("emulator/nvml/c/*/*.c"))
ALLOWED = {-1, 0, 1, 2, 10, 18, 100, 1000, 1_000_000, 256, 12080, 0.1, 0.02, 30.0, 4, 9, 0x20, 0x7F, 0x25}
"""Signs, places, percent, units; bytes of text; real seconds of patience; sizes of the state file and its versions;
how many links a GPU has at most."""


@pytest.mark.parametrize("path", READERS)
def test_no_reader_has_a_watt_or_a_degree_of_its_own(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    numbers = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    }
    assert numbers - ALLOWED == set()


@pytest.mark.parametrize("path", C_READERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_line_of_c_sets_a_power_or_a_temperature_to_a_number(path):
    value = re.compile(
        r"\b(?:power|temperature|energy|utilization|fan|sm_clock|memory_clock)\w*(?:\.value|\s*->\s*\w+)?\s*=\s*\(?[0-9.]+"
    )
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if value.search(line)]
    assert lines == []
