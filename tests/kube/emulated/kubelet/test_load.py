"""What a container asks of its devices: its pod's annotation, else its image."""

import asyncio

import pytest

from mews.emulator.telemetry.load import parse_load
from mews.harness.ports.hosts_http import WireUsers
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.images import Image, load_images
from mews.kube.emulated.kubelet.load import LOAD, load_of
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.users import ReportingRuntime


def launch(annotation=None, load=None, env=None):
    annotations = {} if annotation is None else {LOAD: annotation}
    pod = {"metadata": {"name": "train", "namespace": "default", "uid": "u", "annotations": annotations}}
    return Launch(pod, "main", 0, Image("mews/x", load=load), (), (), {"NVIDIA_VISIBLE_DEVICES": "GPU-1"} | (env or {}))


class Started:
    """A runtime that remembers whether it was asked."""

    asked = 0

    async def start(self, launch):
        self.asked += 1
        return self


class Told:
    """Users that remember what they were told."""

    def __init__(self):
        self.loads = []

    def check(self, load):
        parse_load(load)

    def begin(self, key, uuids, *, pid, name, load=None, cgroup="/"):
        self.loads.append((tuple(uuids), load))

    def end(self, key):
        pass


def start(given, folder=None):
    """(loads told, starts) of one container."""
    users, runtime = Told(), Started()
    asyncio.run(ReportingRuntime(runtime, users, ("NVIDIA_VISIBLE_DEVICES",), folder).start(given))
    return users.loads, runtime.asked


def test_the_annotation_comes_before_the_image_and_nothing_is_idle():
    assert start(launch("60", load=80)) == ([(("GPU-1",), 60)], 1)
    assert start(launch(load=80)) == ([(("GPU-1",), 80)], 1)
    assert start(launch()) == ([(("GPU-1",), None)], 1)
    assert start(launch("{walk: {low: 5}}")) == ([(("GPU-1",), {"walk": {"low": 5}})], 1)


def test_a_trace_beside_the_scenario_becomes_a_curve(tmp_path):
    (tmp_path / "load.csv").write_text("t_s,utilization\n0,10\n2.5,90\n")
    [(_, load)], _ = start(launch("{trace: load.csv, memory_mib: 5}"), tmp_path)
    assert load == {"curve": [[0.0, 10.0], [2.5, 90.0]], "memory_mib": 5}
    assert parse_load(load).memory_mib == 5


@pytest.mark.parametrize(
    ("annotation", "complaint"),
    [
        ("{", "annotation mews.dev/gpu-load: '{': not YAML: "),
        ("fast", "annotation mews.dev/gpu-load: load 'fast': must be a percentage, or a mapping with one of"),
        ("{curve: {0: 101}}", "annotation mews.dev/gpu-load: curve's percent 101: must be a percentage from 0 to 100"),
        (
            "{trace: ../x.csv}",
            "annotation mews.dev/gpu-load: trace '../x.csv': must be a file in the scenario's folder",
        ),
        ("{trace: /etc/passwd}", "annotation mews.dev/gpu-load: trace '/etc/passwd': must be a file in the"),
        ("{trace: no.csv}", "annotation mews.dev/gpu-load: trace 'no.csv': cannot be read: "),
        ("{trace: bad.csv}", "annotation mews.dev/gpu-load: trace 'bad.csv': line 2: must have numbers in the columns"),
    ],
)
def test_what_is_no_load_keeps_the_container_from_starting(tmp_path, annotation, complaint):
    (tmp_path / "bad.csv").write_text("t_s,load\n0,10\n")
    users, runtime = Told(), Started()
    reporting = ReportingRuntime(runtime, users, ("NVIDIA_VISIBLE_DEVICES",), tmp_path)
    with pytest.raises(StartError) as refusal:
        asyncio.run(reporting.start(launch(annotation)))
    assert refusal.value.message.startswith(complaint)
    assert (users.loads, runtime.asked) == ([], 0)


def test_without_a_scenario_there_are_no_traces():
    with pytest.raises(StartError, match="only pods of a scenario file can name a trace"):
        load_of(launch("{trace: a.csv}"), None)


def test_the_load_of_a_shipped_image_is_one_and_a_container_without_devices_has_none():
    book = load_images()
    loads = {name: book.find(name).load for name in book.names() if book.find(name).load is not None}
    assert {"mews/train", "mews/tf-trainer"} <= set(loads)
    for load in loads.values():
        parse_load(load)
    assert start(launch("fast", env={"NVIDIA_VISIBLE_DEVICES": ""})) == ([], 1)


def test_a_load_travels_to_the_hosts_as_it_is():
    users = WireUsers(lambda: None)
    users.of("host-1").begin("k", ["GPU-1"], pid=1, name="n", load={"walk": {"low": 5}})
    [action] = users._held.values()
    assert parse_load(action["load"]) == parse_load({"walk": {"low": 5}})
