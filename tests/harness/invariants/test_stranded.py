"""Law 19, and what of it is law 8: capacity is per device, and not per sum."""

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.invariants import Bounds
from mews.harness.invariants.fault_windows import FaultWindows
from mews.harness.invariants.invariant import JudgedSystems, ObservedState
from mews.harness.invariants.scheduled import Scheduled
from mews.harness.invariants.stranded import COUNTED, Stranded
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario
from mews.kube.system.invariant import ClusterObjects
from tests.harness.invariants.stream import Stream
from tests.harness.invariants.test_scheduled import node, pod

GPU = "nvidia.com/gpu"
SCHEDULERS = ("default-scheduler",)


def one_of(device):
    return device.partition("-_-")[0] if "-_-" in device else ""


def host(allocatable):
    found = node()
    found["status"]["allocatable"][GPU] = str(allocatable)
    return found


def uses(name, amount, bound=""):
    return pod(name, bound=bound, limits={GPU: str(amount)})


def world(healthy, unhealthy=(), given=()):
    """A kubelet whose plugin lists these, and which gave (pod, devices)."""
    stream = Stream({})
    stream.judge.state.world.part_of = (one_of,)
    stream.kubelet("host-1", "registered", resource=GPU)
    line = stream.kubelet("host-1", "devices", resource=GPU, healthy=list(healthy), unhealthy=list(unhealthy))
    for name, devices in given:
        who = {"pod": f"default/{name}", "uid": name, "container": "main"}
        stream.kubelet("host-1", "allocated", **who, resource=GPU, devices=list(devices))
    return stream.judge.state.world, line


def judged(law, seen, pods, allocatable, until=250):
    state = ObservedState(Bounds(scheduled_s=100), JudgedSystems(part_of=(one_of,)), seen, FaultWindows())
    nodes, pods = {"host-1": host(allocatable)}, {each["metadata"]["uid"]: each for each in pods}
    found = []
    for t in range(0, until, 10):
        found += [(t, breach) for breach in law.on_objects(float(t), ClusterObjects(nodes, pods, float(t)), state)]
    return found


def test_what_a_pod_holds_of_a_broken_device_strands_as_much_that_is_healthy():
    seen, line = world(["b"], ["a"], [("holder", ["a"])])
    pods = [uses("holder", 1, "host-1"), uses("waits", 1)]
    [(t, breach), *more] = judged(Stranded(SCHEDULERS), seen, pods, 1)
    assert (t, breach.key, breach.known, breach.first) == (30, ("host-1", GPU, "a"), COUNTED, line)
    assert breach.what == (
        "default/holder hold 1 nvidia.com/gpu of a on host-1, which is broken; "
        "as much that is healthy is stranded, and default/waits would fit"
    )
    assert {other.key for _, other in more} == {breach.key}
    assert judged(Scheduled(SCHEDULERS), seen, pods, 1) == []


def test_each_broken_device_is_reported():
    seen, _ = world(["c", "d"], ["a", "b"], [("one", ["a"]), ("two", ["b"])])
    pods = [uses("one", 1, "host-1"), uses("two", 1, "host-1"), uses("waits", 1), uses("too", 2)]
    keys = {breach.key for _, breach in judged(Stranded(SCHEDULERS), seen, pods, 2)}
    assert keys == {("host-1", GPU, "a"), ("host-1", GPU, "b")}


@pytest.mark.parametrize(
    ("healthy", "unhealthy", "given", "allocatable", "asks"),
    [
        pytest.param(["b"], ["a"], [], 1, 2, id="nobody holds what is broken"),
        pytest.param(["b"], ["a"], [("holder", ["a"])], 1, 2, id="the healthy ones are too few"),
        pytest.param(["a", "b"], [], [("holder", ["a", "b"])], 2, 1, id="nothing is broken"),
        pytest.param(["b", "c"], ["a"], [("holder", ["a", "b"])], 2, 2, id="the healthy one is held"),
    ],
)
def test_what_is_taken_or_not_there_strands_nothing(healthy, unhealthy, given, allocatable, asks):
    seen, _ = world(healthy, unhealthy, given)
    holders = [uses(name, len(devices), "host-1") for name, devices in given]
    assert judged(Stranded(SCHEDULERS), seen, [*holders, uses("waits", asks)], allocatable) == []


def test_of_parts_those_of_one_device_must_be_enough():
    parts = [f"{gpu}-_-{n}" for gpu in "bc" for n in range(4)]
    broken = [f"a-_-{n}" for n in range(4)]
    given = [("holder", broken[:3]), ("b", parts[:2]), ("c", parts[4:5])]
    seen, _ = world(parts, broken, given)
    pods = [uses(name, len(devices), "host-1") for name, devices in given]
    [(_, breach), *_] = judged(Stranded(SCHEDULERS), seen, [*pods, uses("waits", 3)], 8)
    assert breach.key == ("host-1", GPU, "a")
    assert judged(Stranded(SCHEDULERS), seen, [*pods, uses("waits", 5)], 8) == []


def test_a_pod_that_is_bound_and_was_given_nothing_yet_is_counted():
    seen, _ = world(["b"], ["a"], [("holder", ["a"])])
    pods = [uses("holder", 1, "host-1"), uses("comes", 1, "host-1"), uses("waits", 1)]
    assert judged(Stranded(SCHEDULERS), seen, pods, 1) == []


def test_a_node_that_does_not_show_a_healthy_device_that_nobody_holds_breaks_law_8():
    seen, _ = world(["a", "b"], [], [("holder", ["a"])])
    pods = [uses("holder", 1, "host-1"), uses("waits", 1)]
    [(t, breach), *_] = judged(Scheduled(SCHEDULERS), seen, pods, 1)
    assert (t, breach.what) == (110, "pod default/waits fits host-1 and is unscheduled (bound 100 s)")
    assert judged(Scheduled(SCHEDULERS), seen, [*pods, uses("comes", 1, "host-1")], 1) == []


def test_what_a_plugin_listed_before_it_or_its_kubelet_began_anew_says_nothing():
    seen, _ = world(["a", "b"])
    stream = Stream({})
    seen.take(stream.journal.write("component", "kubelet/host-1", "killed"))
    assert judged(Scheduled(SCHEDULERS), seen, [uses("waits", 1)], 0) == []


SHARED = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: stranded}
hardware: seed-001
stack: {kubecomp: null, gpushare: {unit: GiB, nodes: [n1]}}
steps:
  - wait: {object: {kind: Node, metadata: {name: n1}, status: {allocatable: {aliyun.com/gpu-mem: "30"}}}}
    timeout: 1m
  - apply:
      - {kind: Pod, metadata: {name: holds}, spec: {nodeSelector: {kubernetes.io/hostname: n1}, containers: [
          {name: c0, image: mews/gpu-hold, resources: {limits: {aliyun.com/gpu-mem: "10"}}}]}}
  - wait: {pod: {name: holds, phase: Running}}
    timeout: 2m
  - fault: {host: n1, add: {kind: xid, device: "n1-0", xid: 48}}
  - wait: {object: {kind: Node, metadata: {name: n1}, status: {allocatable: {aliyun.com/gpu-mem: "15"}}}}
    timeout: 2m
  - apply:
      - {kind: Pod, metadata: {name: waits}, spec: {nodeSelector: {kubernetes.io/hostname: n1}, containers: [
          {name: c0, image: mews/gpu-hold, resources: {limits: {aliyun.com/gpu-mem: "8"}}}]}}
  - hold: {for: 60s, check: {pod: {name: waits, phase: Pending}}}
"""


def test_one_xid_strands_what_its_pods_hold_and_the_run_reports_it_and_passes():
    path = shipped("hardware", "demo").parent / "stranded.yaml"
    run = Engine(RunOptions()).run(parse_scenario(SHARED, path), 1)
    assert (run.result.verdict, run.result.reason) == ("passed", "")
    [known] = run.result.known
    assert (known["invariant"], known["known"], known["first"]["event"]) == (19, COUNTED, "devices")
    assert known["what"].startswith("default/holds hold 10 aliyun.com/gpu-mem of GPU-n1-0 on n1, which is broken")
    assert known["what"].endswith("as much that is healthy is stranded, and default/waits would fit")
