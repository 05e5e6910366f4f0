"""The oracle on a cluster: a store, a table, and a journal that says what a test wants."""

import asyncio
import random
from types import SimpleNamespace

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.invariants import Bounds, Oracle
from mews.harness.journal import Journal
from mews.harness.recorder import Recorder
from mews.kube.api.resources import PODS
from mews.kube.deviceplugin.port import ContainerDevices, PodDevices
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}


class Bench:
    """A cluster with one chassis of one device on host-1; ``report`` is what pod resources say."""

    name, time, systems, parts_are_ours = "bench", "virtual", (), True

    def __init__(self):
        loop = asyncio.get_running_loop()
        self.clock = virtual_clock()
        self.journal = Journal(loop.time)
        self.kube = InProcessKube(fresh_store(self.clock.now, random.Random(1)))
        self.row = {"uuid": "GPU-a", "gpuid": "0-a", "port": "1", "host": "host-1"}
        self.hardware = SimpleNamespace(table=self._table)
        self.report = ()
        self.journal.write(
            "chassis", "chassis/A", "table", pool="pool-0", ports={"1": "host-1"}, devices={"a": dict(self.row)}
        )

    async def _table(self):
        return {"A": {"a": self.row}}

    async def pod_resources(self, host):
        return self.report

    def components(self):
        return ("default-scheduler",)

    def start_pod(self, devices=("0-a",)):
        who = {"pod": "default/p", "uid": "u", "container": "main"}
        write = lambda event, **fields: self.journal.write("kubelet", "kubelet/host-1", event, **fields)  # noqa: E731
        write("allocated", **who, resource="falcon.com/gpu", devices=list(devices))
        write("checkpoint", entries=[["u", "main", "falcon.com/gpu", list(devices)]])
        write("container-started", **who, env={"DISAG_DEVICES": ",".join(devices)})
        entry = ContainerDevices("falcon.com/gpu", tuple(devices))
        self.report = (PodDevices("p", "default", (("main", (entry,)),)),)


def judged(play, **bounds):
    async def main():
        bench = Bench()
        recorder = Recorder(bench.kube, bench.journal)
        recording = asyncio.create_task(recorder.run())
        await recorder.synced()
        oracle = Oracle(bench, bounds=Bounds(**bounds))
        await oracle.start()
        await play(bench)
        violations = await oracle.finish()
        recording.cancel()
        return violations, bench.journal.lines()

    return run_virtual(main)


def test_a_run_in_which_all_is_well_has_no_violation():
    async def play(bench):
        await bench.kube.create(PODS, POD, namespace="default")
        bench.start_pod()
        await asyncio.sleep(5)

    violations, lines = judged(play)
    assert violations == []
    assert "created" in [line.event for line in lines if line.layer == "api"]


def test_a_violation_is_written_to_the_journal_when_it_is_found():
    async def play(bench):
        bench.start_pod()
        await asyncio.sleep(1)
        bench.journal.write("chassis", "chassis/A", "detached", **{**bench.row, "port": None, "host": None})
        bench.row = {**bench.row, "port": None, "host": None}
        await asyncio.sleep(1)

    violations, lines = judged(play)
    assert 2 in [violation.invariant for violation in violations]
    [told] = [line for line in lines if line.layer == "invariant" and line.actor == "2"]
    assert (told.t, told.event) == (1.0, "violated")
    assert lines[told.fields["first"]].event == "detached"


def test_a_table_that_moved_without_an_event_is_found_at_the_end():
    async def play(bench):
        bench.start_pod()
        bench.row = {**bench.row, "port": "2", "host": "host-2"}

    violations, _ = judged(play)
    assert {violation.invariant for violation in violations} == {6}
    assert any("at the end it is on host-2" in violation.what for violation in violations)


def test_pod_resources_that_say_something_else_are_found_at_the_end():
    async def play(bench):
        bench.start_pod()
        entry = ContainerDevices("falcon.com/gpu", ("0-b",))
        bench.report = (PodDevices("p", "default", (("main", (entry,)),)),)

    violations, _ = judged(play)
    assert [violation.what for violation in violations] == [
        "pod resources say 0-b for default/p (main), which was given 0-a"
    ]


def test_an_orphan_is_found_at_the_end_though_nothing_is_written_any_more():
    async def play(bench):
        before = {"old_port": bench.row["port"], "old_host": bench.row["host"]}
        bench.row = {**bench.row, "port": None, "host": None}
        bench.journal.write("chassis", "chassis/A", "detached", device="a", **bench.row, **before)
        await asyncio.sleep(1000)

    violations, _ = judged(play)
    assert [violation.invariant for violation in violations] == [5]


def test_a_pod_that_fits_and_is_never_scheduled_is_found():
    async def play(bench):
        from mews.kube.api.resources import NODES

        status = {
            "conditions": [{"type": "Ready", "status": "True"}],
            "allocatable": {"cpu": "4", "memory": "1Gi", "pods": "9"},
        }
        bench.journal.write("host", "host/host-1", "table", devices={})
        made = await bench.kube.create(NODES, {"metadata": {"name": "host-1"}, "status": status})
        said = {"type": "Normal", "reason": "RegisteredNode", "object": "node/host-1", "message": "it is there"}
        bench.journal.write("api", "node-controller", "event", **said)
        await bench.kube.replace(NODES, {**made, "status": status}, subresource="status")
        await bench.kube.patch(NODES, "host-1", {"spec": {"taints": None}})
        await bench.kube.create(PODS, POD, namespace="default")
        await asyncio.sleep(60)
        await bench.kube.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        await asyncio.sleep(60)

    violations, _ = judged(play, scheduled_s=100)
    assert [violation.what for violation in violations] == [
        "pod default/p fits host-1 and is unscheduled (bound 100 s)"
    ]
