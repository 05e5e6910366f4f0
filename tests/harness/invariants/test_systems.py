"""What systems bring to the judge: which pods hold what, laws and bounds of their own; on a toy system."""

import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from mews.harness.invariants import Bounds
from mews.harness.invariants.invariant import JudgedSystems
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.invariants.systems import bounds_of, judged_systems
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.invariant import Breach, ClusterObjects, Held, Invariant
from mews.kube.system.system import Component, Pooled, System
from mews.kube.system.system_parts import SystemJudging
from tests.harness.invariants.stream import Stream


def held_by_annotation(pod):
    devices = pod["metadata"].get("annotations", {}).get("toy.dev/devices", "")
    if devices:
        yield Held("main", "toy.dev/gpu", tuple(devices.split(",")))


class NoPodIsCalledBad(Invariant):
    """A law of the toy's: it looks at pods, and at a bound of its own."""

    number = 90
    name = "no pod is called bad"

    def on_objects(self, t, objects, state):
        if "default/bad" in objects.pods and t > state.bound_s("bad_s"):
            yield Breach(("bad",), f"bad was there at {t:g} s", None)


TOY = System(
    name="toy",
    summary="gives devices to pods by annotation",
    options=BaseModel,
    configure=lambda options, facility: "configured",
    components=(Component("toy-scheduler", lambda ports, config: None, scheduler=lambda config: "toys"),),
    pooled=lambda config: Pooled("toy.dev/gpu", "GPU", "toys", "TOY_DEVICES"),
    judging=SystemJudging(
        holds=lambda config: held_by_annotation,
        invariants=lambda: (NoPodIsCalledBad(),),
        bounds={"bad_s": 10.0},
    ),
)
CONFIGURED = (ConfiguredSystem(TOY, None, "configured"),)


def pod(name, devices, *, node="host-1", phase="Running"):
    notes = {"toy.dev/devices": ",".join(devices)}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": notes},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": phase},
    }


def looked_at(stream, *pods):
    objects = {f"default/{each['metadata']['name']}": each for each in pods}
    stream.judge.on_objects(stream.t, ClusterObjects({}, objects, stream.t))


def toy_stream():
    return Stream({"a": "1", "b": "1"}, judged_systems(CONFIGURED, ["toy-scheduler"]), bad_s=10.0)


def test_two_pods_that_hold_one_device_by_annotation_are_found_and_the_line_of_the_second_is_named():
    stream = toy_stream()
    looked_at(stream, pod("p", ["GPU-a"]))
    assert stream.numbers() == []
    second = stream.journal.write("api", "pod/default/q", "annotations", uid="q", annotations={})
    looked_at(stream, pod("p", ["GPU-a"]), pod("q", ["GPU-b", "GPU-a"]))
    [violation] = stream.judge.violations
    assert (violation.invariant, violation.first) == (3, second)
    assert violation.what == "device 0-a was given to default/q on host-1 while default/p on host-1 has it"


def test_what_a_kubelet_gives_is_not_to_be_held_by_annotation_already():
    stream = toy_stream()
    looked_at(stream, pod("p", ["0-a"]))
    stream.allocate("host-1", "q", ["a"])
    assert stream.numbers() == [3]


@pytest.mark.parametrize("by_laws", [True, False])
def test_what_a_system_leaves_its_users_to_keep_apart_is_known_where_no_step_keeps_it_apart(by_laws):
    published = (
        replace(
            CONFIGURED[0], system=replace(TOY, judging=replace(TOY.judging, outside_known=lambda options: "by design"))
        ),
    )
    stream = Stream({"a": "1", "b": "1"}, judged_systems(published, ["toy-scheduler"], by_laws=by_laws), bad_s=10.0)
    looked_at(stream, pod("p", ["0-a"]))
    stream.allocate("host-1", "q", ["a"])
    assert ([each.invariant for each in stream.judge.known], stream.numbers()) == (([3], []) if by_laws else ([], [3]))
    looked_at(stream, pod("p", ["0-a"]), pod("r", ["0-a"]))
    assert stream.numbers()[-1] == 3


def test_a_pod_that_ended_is_gone_or_waits_for_a_node_holds_nothing():
    stream = toy_stream()
    looked_at(stream, pod("p", ["0-a"]), pod("ended", ["0-a"], phase="Succeeded"), pod("waits", ["0-a"], node=""))
    looked_at(stream, pod("q", ["0-a"]))
    stream.journal.write("api", "pod/default/q", "deleted", uid="q")
    looked_at(stream, pod("q", ["0-a"]), pod("r", ["0-a"]))
    assert stream.numbers() == []


def test_a_device_that_is_held_by_annotation_must_not_move():
    stream = toy_stream()
    looked_at(stream, pod("p", ["GPU-a"]))
    stream.detach("a")
    assert stream.numbers() == [2]


def test_names_that_no_chassis_knows_are_told_apart_by_node():
    stream = toy_stream()
    looked_at(stream, pod("p", ["dev-0"]), pod("q", ["dev-0"], node="host-2"))
    assert stream.numbers() == []
    looked_at(stream, pod("p", ["dev-0"]), pod("r", ["dev-0"]))
    assert stream.numbers() == [3]


def test_a_law_of_a_system_is_judged_by_its_own_bound():
    assert bounds_of(CONFIGURED) == {"bad_s": 10.0}
    for bound_s, found in ((10.0, []), (3.0, [90])):
        judge = InvariantJudge(Bounds.of({"bad_s": bound_s}, bounds_of(CONFIGURED)), judged_systems(CONFIGURED, []))
        judge.on_objects(5.0, ClusterObjects({}, {"default/bad": pod("bad", [])}, 5.0))
        assert [violation.invariant for violation in judge.violations] == found


def test_a_bound_that_nobody_declares_is_refused():
    with pytest.raises(ValueError, match=r"^bounds\.worse_s: no such bound; allowed are unattached_s, .*, bad_s$"):
        Bounds.of({"worse_s": 1.0}, bounds_of(CONFIGURED))


def test_schedulers_count_while_their_components_run():
    assert judged_systems(CONFIGURED, ["default-scheduler"]).schedulers == ("default-scheduler",)
    assert judged_systems(CONFIGURED, ["toy-scheduler"]).schedulers == ("toys",)


def test_a_number_of_another_law_cannot_be_taken():
    class Taken(NoPodIsCalledBad):
        number = 8

    with pytest.raises(ValueError, match=r"^invariant 8 \(no pod is called bad\): that number is taken"):
        InvariantJudge(Bounds(), JudgedSystems(invariants=(Taken(),)))
    with pytest.raises(ValueError, match="that number is taken: no pod is called bad"):
        InvariantJudge(Bounds(), JudgedSystems(invariants=(NoPodIsCalledBad(), NoPodIsCalledBad())))


def of_parts(held, *, whole=()):
    return ConfiguredSystem(
        replace(
            TOY,
            judging=replace(
                TOY.judging, holds=lambda config: lambda pod: [held(pod)] if pod["metadata"]["name"] in whole else []
            ),
        ),
        None,
        "configured",
    )


def test_a_device_of_which_one_pod_has_a_part_by_annotation_is_given_whole_to_no_other():
    def held(pod):
        alone = pod["metadata"]["name"] == "alone"
        return Held("", "toy.dev/gpu", *((("GPU-a",), ()) if alone else ((), ("GPU-a",))))

    system = of_parts(held, whole=("one", "two", "alone"))
    stream = Stream({"a": "1"}, judged_systems((system,), ["toy-scheduler"]), bad_s=10.0)
    looked_at(stream, pod("one", []), pod("two", []))
    assert stream.numbers() == []
    looked_at(stream, pod("one", []), pod("two", []), pod("alone", []))
    assert set(stream.numbers()) == {3}


def test_what_a_pod_does_not_use_of_its_kubelet_s_is_held_by_it_no_more():
    system = of_parts(lambda pod: Held("", "toy.dev/gpu", ("GPU-b",), instead_of=("falcon.com/gpu",)), whole=("p",))
    stream = Stream({"a": "1", "b": "1"}, judged_systems((system,), ["toy-scheduler"]), bad_s=10.0)
    looked_at(stream, pod("p", []))
    stream.allocate("host-1", "p", ["a"])
    stream.allocate("host-1", "q", ["a"])
    assert stream.numbers() == []
    stream.allocate("host-1", "r", ["b"])
    assert stream.numbers() == [3]
