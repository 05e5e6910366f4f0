"""One state behind chassis and hosts as processes have it: over control, with restarts, read by unmodified programs."""

import json
import re
import ssl
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from msgspec.structs import replace

from mews.emulator.hostd.serve import HostServer
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml.library import available
from mews.emulator.ready_file import write_ready
from mews.emulator.serve import ChassisServer

pytestmark = [pytest.mark.wall, pytest.mark.skipif(not available(), reason="no compiler for the library")]

ROOT_FOLDER = Path(__file__).resolve().parents[3]
ROOT = "/redfish/v1"
NVML = """
import pynvml as p
p.nvmlInit()
for i in range(p.nvmlDeviceGetCount()):
    h = p.nvmlDeviceGetHandleByIndex(i)
    print(p.nvmlDeviceGetUUID(h), p.nvmlDeviceGetPowerUsage(h), p.nvmlDeviceGetTemperature(h, 0),
          p.nvmlDeviceGetUtilizationRates(h).gpu, p.nvmlDeviceGetTotalEnergyConsumption(h))
"""


def until(condition, what, seconds=15.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class Stack:
    """Chassis and hosts of the demo, served by threads of this process; they know each other by HTTP alone."""

    def __init__(self, folder):
        demo = load_hardware(ROOT_FOLDER / "fixtures/hardware/demo.yaml")
        # Drivers before 580 count no time of a power cap.
        self.hardware = replace(demo, hosts=tuple(replace(host, driver="580.105.08") for host in demo.hosts))
        self.folder = folder
        self.ready = folder / "chassis.json"
        self.state = folder / "table.sqlite"
        self.start_chassis()
        self.hosts = HostServer(self.hardware, chassis=self.ready, root=folder / "h", fuse="no", token="t")
        self.hosts.start()
        self.nodes = self.hosts.ready()["hosts"]
        self.rows = next(iter(self.ask("GET", "/v1/table").values()))

    def start_chassis(self, **more):
        self.chassis = ChassisServer(self.hardware, state=self.state, password="secret-1234", **more)
        self.chassis.start()
        write_ready(self.ready, self.chassis.ready())

    def ask(self, method, path, body=None, control=None):
        control = control or self.chassis.ready()["control"]
        headers = {"Authorization": f"Bearer {control['token']}"}
        content = None if body is None else json.dumps(body).encode()
        with urlopen(Request(control["url"] + path, content, headers, method=method), timeout=30) as answer:
            text = answer.read().decode()
            return json.loads(text) if answer.headers["Content-Type"].startswith("application/json") else text

    def hold(self, device, load):
        host = self.rows[device]["host"]
        action = {"do": "hold", "key": device, "uuids": [self.rows[device]["uuid"]], "pid": 4711, "name": "train"}
        body = {"host": host, "action": {**action, "computing": True, "load": load}}
        return self.ask("POST", "/v1/operate", body, self.hosts.ready()["control"])

    def release(self, device):
        body = {"host": self.rows[device]["host"], "action": {"do": "release", "key": device}}
        return self.ask("POST", "/v1/operate", body, self.hosts.ready()["control"])

    def run(self, host, *command):
        environment = {
            "LD_LIBRARY_PATH": self.nodes[host]["nvml"],
            "PATH": self.nodes[host]["nvml"],
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def nvml(self):
        """UUID -> [mW, C, percent, mJ], of all hosts."""
        lines = [
            line.split() for host in self.nodes for line in self.run(host, sys.executable, "-c", NVML).splitlines()
        ]
        return {uuid: [int(value) for value in values] for uuid, *values in lines}

    def smi(self):
        query = "--query-gpu=uuid,power.draw,temperature.gpu,utilization.gpu"
        lines = [
            line.split(", ")
            for host in self.nodes
            for line in self.run(
                host, str(Path(self.nodes[host]["nvml"]) / "nvidia-smi"), query, "--format=csv,noheader,nounits"
            ).splitlines()
        ]
        return {uuid: [round(float(watts) * 1000), int(degrees), int(load)] for uuid, watts, degrees, load in lines}

    def metrics(self):
        found = {}
        names = ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL")
        text = self.ask("GET", "/metrics")
        for place, name in enumerate(names):
            for uuid, value in re.findall(rf'^{name}{{.*UUID="([^"]+)".*}} (\S+)$', text, re.M):
                found.setdefault(uuid, [0, 0, 0])[place] = round(float(value) * (1000 if place == 0 else 1))
        return found

    def redfish(self):
        session = {"UserName": "admin", "Password": "secret-1234"}
        url = next(iter(self.chassis.ready()["chassis"].values()))["redfish"]
        post = Request(
            url + f"{ROOT}/SessionService/Sessions", json.dumps(session).encode(), {"Content-Type": "application/json"}
        )
        trusted = ssl.create_default_context(cafile=self.chassis.ready()["ca"])
        with urlopen(post, timeout=30, context=trusted) as answer:
            token = answer.headers["X-Auth-Token"]

        def get(path):
            request = Request(url + path, headers={"X-Auth-Token": token})
            with urlopen(request, timeout=30, context=trusted) as answer:
                return json.load(answer)

        found = {}
        for device, row in self.rows.items():
            environment = get(f"{ROOT}/Chassis/A/PCIeDevices/{device}/EnvironmentMetrics")
            watts, degrees = environment["PowerWatts"]["Reading"], environment["TemperatureCelsius"]["Reading"]
            metrics = get(f"{ROOT}/Systems/{row['host']}/Processors/{device}/ProcessorMetrics")
            found[row["uuid"]] = [round(watts * 1000), round(degrees), metrics["BandwidthPercent"]]
        return found

    def stop(self):
        self.hosts.stop()
        self.chassis.stop()


@pytest.fixture
def stack(tmp_path):
    made = Stack(tmp_path)
    yield made
    made.stop()


def test_every_reader_shows_the_same_and_a_curve_is_seen_by_gpustat(stack):
    busy, other = list(stack.rows)[:2]
    uuid = stack.rows[busy]["uuid"]
    assert stack.hold(busy, {"curve": [[0, 100], [600, 0]]})["result"] == "done"
    assert stack.hold(other, {"utilization": 40, "memory_mib": 1000})["result"] == "done"
    until(lambda: stack.nvml()[uuid][2] == 100, "the load to be seen")
    stack.ask("POST", "/v1/telemetry", {"device": busy, "set": {"temperature": 71}})
    until(lambda: stack.nvml()[uuid][1] == 71, "the temperature to be seen")
    stack.ask("POST", "/v1/telemetry", {"device": other, "set": {"temperature": 55}})
    until(lambda: stack.nvml()[stack.rows[other]["uuid"]][1] == 55, "the temperature to be seen")
    nvml = {uuid: values[:3] for uuid, values in stack.nvml().items()}
    assert len(nvml) == len(stack.rows)
    assert nvml[uuid] == [250_000, 71, 100]
    assert stack.smi() == nvml
    assert stack.metrics() == nvml
    assert stack.redfish() == nvml
    gpustat = Path(sys.executable).parent / "gpustat"
    if not gpustat.exists():
        pytest.skip("gpustat is not installed")
    host = stack.rows[busy]["host"]
    shown = stack.run(host, sys.executable, str(gpustat), "--no-color", "--no-header", "-P")
    assert re.search(r"71°C, 100 %,  250 / 250 W", shown), shown


def test_a_power_limit_is_seen_by_every_reader_and_is_gone_with_the_persistence_mode(stack):
    busy = next(iter(stack.rows))
    uuid, host = stack.rows[busy]["uuid"], stack.rows[busy]["host"]
    smi = str(Path(stack.nodes[host]["nvml"]) / "nvidia-smi")
    stack.hold(busy, 100)
    until(lambda: stack.nvml()[uuid][0] == 250_000, "the load to be seen")
    assert "set to 150.00 W from 250.00 W" in stack.run(host, smi, "-i", uuid, "-pl", "150")
    until(lambda: stack.nvml()[uuid][0] == 150_000, "the limit to be kept")  # the load has the GPU open
    assert [stack.smi()[uuid][0], stack.metrics()[uuid][0], stack.redfish()[uuid][0]] == [150_000] * 3
    query = "--query-gpu=clocks.sm,power.limit,clocks_event_reasons.sw_power_cap"
    assert stack.run(host, smi, "-i", uuid, query, "--format=csv,noheader") == "975 MHz, 150.00 W, Active\n"
    stack.release(busy)
    until(lambda: stack.ask("GET", "/v1/telemetry")["A"][busy]["power_limit_mw"] == 250_000, "the end of the limit")
    stack.run(host, smi, "-i", uuid, "-pm", "1")
    stack.run(host, smi, "-i", uuid, "-pl", "120", "-lgc", "600")
    until(lambda: stack.ask("GET", "/v1/telemetry")["A"][busy]["sm_clock_mhz"] == 600, "locked clocks")
    assert stack.ask("GET", "/v1/telemetry")["A"][busy]["power_limit_mw"] == 120_000
    stack.run(host, smi, "-i", uuid, "-pm", "0")
    until(lambda: stack.ask("GET", "/v1/telemetry")["A"][busy]["power_limit_mw"] == 250_000, "the end of the limit")


def test_an_ecc_mode_is_pending_until_the_gpu_is_reset(stack):
    device = next(iter(stack.rows))
    uuid, host = stack.rows[device]["uuid"], stack.rows[device]["host"]
    smi = str(Path(stack.nodes[host]["nvml"]) / "nvidia-smi")

    def modes():
        query = "--query-gpu=ecc.mode.current,ecc.mode.pending"
        return stack.run(host, smi, "-i", uuid, query, "--format=csv,noheader").strip()

    assert stack.run(host, smi, "-i", uuid, "-e", "0").endswith("Reboot required.\n")
    assert modes() == "Enabled, Disabled"
    stack.run(host, smi, "-i", uuid, "-r")
    until(lambda: modes() == "Disabled, Disabled", "the reset")


def test_accounts_and_the_time_of_a_limit_are_kept_over_processes(stack):
    device = next(iter(stack.rows))
    uuid, host = stack.rows[device]["uuid"], stack.rows[device]["host"]
    smi = str(Path(stack.nodes[host]["nvml"]) / "nvidia-smi")

    def accounts():
        query = "--query-accounted-apps=pid,gpu_util,max_memory_usage,time"
        text = stack.run(host, smi, "-i", uuid, query, "--format=csv,noheader,nounits")
        return [[int(word) for word in line.split(", ")] for line in text.splitlines()]

    def capped_us():
        query = "--query-gpu=clocks_event_reasons_counters.sw_power_cap"
        return int(stack.run(host, smi, "-i", uuid, query, "--format=csv,noheader,nounits"))

    stack.run(host, smi, "-i", uuid, "-pm", "1")
    stack.run(host, smi, "-i", uuid, "-am", "1")
    assert accounts() == []
    stack.hold(device, {"utilization": 80, "memory_mib": 1000})
    until(lambda: accounts() == [[4711, 80, 1000, 0]], "the process to be accounted")
    assert capped_us() == 0
    stack.run(host, smi, "-i", uuid, "-pl", "100")
    until(lambda: capped_us() > 0, "the limit to be counted")
    before = capped_us()
    assert capped_us() > before
    stack.release(device)
    until(lambda: accounts()[0][3] > 0, "the end of the process")
    assert accounts()[0][:3] == [4711, 80, 1000]
    ended = capped_us()
    assert ended > before and capped_us() == ended
    stack.run(host, smi, "-i", uuid, "-caa")
    until(lambda: accounts() == [], "the accounts to be cleared")


WATCH = """
import os, sys, time
import pynvml as p
p.nvmlInit()
h = p.nvmlDeviceGetHandleByUUID(sys.argv[1])
time.sleep(0.3)
written, seen, until = os.stat(sys.argv[2]).st_mtime_ns, set(), time.monotonic() + 10
while time.monotonic() < until and len(seen) < 3:
    seen.add(p.nvmlDeviceGetUtilizationRates(h).gpu)
print(sorted(seen), os.stat(sys.argv[2]).st_mtime_ns - written)
"""


def test_a_curve_goes_on_without_anybody_writing_the_state(stack):
    device = next(iter(stack.rows))
    uuid, host = stack.rows[device]["uuid"], stack.rows[device]["host"]
    stack.hold(device, {"curve": [[0, 0], [1, 60], [2, 90]], "repeat_s": 3})
    until(lambda: stack.nvml()[uuid][0] > 25_000, "the process to be seen")
    state = Path(stack.nodes[host]["nvml"]) / "nvml.state"
    assert stack.run(host, sys.executable, "-c", WATCH, uuid, str(state)).strip() == "[0, 60, 90] 0"


def test_energy_is_counted_on_both_sides_alike(stack):
    device = next(iter(stack.rows))
    uuid = stack.rows[device]["uuid"]
    stack.hold(device, 100)
    until(lambda: stack.nvml()[uuid][2] == 100, "the load to be seen")
    before = stack.ask("GET", "/v1/telemetry")["A"][device]["energy_mj"]
    between = stack.nvml()[uuid][3]
    after = stack.ask("GET", "/v1/telemetry")["A"][device]["energy_mj"]
    assert before < between < after


def test_a_chassis_that_is_started_again_is_told_again(stack):
    device = next(iter(stack.rows))
    uuid = stack.rows[device]["uuid"]
    stack.hold(device, 100)
    until(lambda: stack.nvml()[uuid][2] == 100, "the load to be seen")
    earlier = stack.ask("GET", "/v1/telemetry")["A"][device]
    stack.chassis.stop()
    time.sleep(0.2)
    stack.start_chassis()
    until(lambda: stack.ask("GET", "/v1/telemetry")["A"][device]["utilization_percent"] == 100, "the report")
    later = stack.ask("GET", "/v1/telemetry")["A"][device]
    assert later["energy_mj"] > earlier["energy_mj"]
    assert later["temperature_c"] >= earlier["temperature_c"]
    stack.release(device)
    until(lambda: stack.nvml()[uuid][2] == 0, "the end to be seen")


def test_errors_of_a_driver_reach_the_chassis(stack):
    device = next(iter(stack.rows))
    spec = {"kind": "ecc-errors", "device": device, "corrected": 3, "uncorrected": 1}
    stack.ask("POST", "/v1/faults", {"host": stack.rows[device]["host"], "spec": spec}, stack.hosts.ready()["control"])

    def counters():
        return stack.ask("GET", "/v1/telemetry")["A"][device]["counters"]

    until(lambda: counters()["ecc_volatile_corrected"] == 3, "the errors")
    assert counters()["ecc_aggregate_uncorrected"] == 1
