"""The laws of Koordinator's protocol: streams that they must report, streams that they must not, and planted faults."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from mews.kube.api.errors import ConflictError
from mews.kube.scheduling.framework import SUCCESS, Status
from mews.kube.system.invariant import Breach
from mews.systems.koordinator import cache, coscheduling, hook, plugin, policy, usage
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.gang_plans import GangState
from mews.systems.koordinator.gpu_health import XID, GpuHealth
from mews.systems.koordinator.journal import gang_news, pod_group_news
from mews.systems.koordinator.laws import IGNORE_POLICY, laws
from mews.systems.koordinator.names import (
    ALLOCATED,
    CORE,
    GANG_MIN,
    GANG_NAME,
    HINT,
    JOINT,
    MIN_AVAILABLE,
    POD_GROUP,
    VISIBLE,
)
from mews.systems.koordinator.pod_notes import DeviceNotes
from tests.harness.invariants.law_runs import (
    PlantedRow,
    Said,
    breaches,
    check_found,
    each_planted,
    named,
    numbers,
    played,
)

BOUNDS = {"unbound_s": 15.0, "gang_s": 15.0}


def judged(number: int, said: Iterable[Said], *, until: float | None = None, **config: Any) -> list[Breach]:
    law = next(law for law in laws(KoordinatorConfig(nodes=("n1",), **config)) if law.number == number)
    return breaches(law, said, until=until, **BOUNDS)


def found(number: int, said: Iterable[Said], **how: Any) -> list[tuple[int | None, int | None]]:
    return numbers(judged(number, said, **how))


def device(minor: int, kind: str = "gpu", *, health: bool = True, pcie: str = "") -> dict[str, Any]:
    resource = CORE if kind == "gpu" else f"koordinator.sh/{kind}"
    row = {"type": kind, "minor": minor, "id": f"{kind}-{minor}", "health": health, "resources": {resource: "100"}}
    return row | ({"topology": {"pcieID": pcie}} if pcie else {})


def published(t: float, *devices: dict[str, Any]) -> Said:
    return (t, "devices", "device-published", {"node": "n1", "devices": list(devices)})


TWO = published(0, device(0), device(1))


def pod(t: float, uid: str, event: str, **fields: Any) -> Said:
    return (t, f"pod/default/{uid}", event, {"uid": uid, **fields})


def created(t: float, uid: str, **fields: Any) -> Said:
    return pod(t, uid, "created", **fields)


def given(t: float, uid: str, *minors: int, core: int = 100, **others: int) -> Said:
    by_type: dict[str, Any] = {"gpu": [{"minor": n, "id": f"gpu-{n}", "resources": {CORE: str(core)}} for n in minors]}
    for kind, minor in others.items():
        by_type[kind] = [{"minor": minor, "id": f"{kind}-{minor}", "resources": {f"koordinator.sh/{kind}": "100"}}]
    return pod(t, uid, "annotations", annotations={ALLOCATED: json.dumps(by_type)})


def taken_back(t: float, uid: str) -> Said:
    return pod(t, uid, "annotations", annotations={ALLOCATED: None})


def bound(t: float, uid: str, node: str = "n1") -> Said:
    return pod(t, uid, "bound", node=node)


def on_node(t: float, uid: str, event: str, host: str = "n1", **fields: Any) -> Said:
    who = {"pod": f"default/{uid}", "uid": uid, "container": "main"}
    return (t, f"kubelet/{host}", event, {**who, **fields})


def starts(t: float, uid: str, visible: str | None, host: str = "n1") -> Said:
    return on_node(t, uid, "container-started", host, env={} if visible is None else {VISIBLE: visible})


LIVES = [TWO, created(1, "a"), given(1, "a", 0), bound(1, "a"), starts(2, "a", "0"), pod(3, "a", "deleted")]


@pytest.mark.parametrize("number", [50, 51, 52, 53, 54, 55, 56, 57, 58])
def test_a_pod_that_lives_and_ends_breaks_no_law(number: int) -> None:
    assert found(number, [*LIVES, created(4, "b"), given(4, "b", 0), bound(4, "b")], until=900) == []


def asking(t: float, uid: str, *, scheduler: str = "koord-scheduler", **amounts: int) -> Said:
    requests = {f"koordinator.sh/{name.replace('_', '-')}": amount for name, amount in amounts.items()}
    return created(t, uid, scheduler=scheduler, requests=requests)


def test_a_pod_that_asks_for_devices_and_is_bound_without_is_reported() -> None:
    assert found(58, [TWO, asking(1, "a", gpu=50), bound(1, "a")]) == [(2, 1)]
    assert found(58, [TWO, asking(1, "a", gpu_memory=5), given(1, "a", 0), taken_back(1, "a"), bound(1, "a")]) == [
        (4, 1)
    ]
    assert found(58, [TWO, asking(1, "a", gpu=50), given(1, "a", 0), bound(1, "a")]) == []
    assert found(58, [TWO, asking(1, "a", gpu=0), bound(1, "a")]) == []
    assert found(58, [TWO, asking(1, "a", gpu=50, scheduler="another"), bound(1, "a")]) == []


BORN = [TWO, created(1, "a"), given(1, "a", 0, 1), bound(1, "a")]


@pytest.mark.parametrize("visible", ["0,1", "1,0", "gpu-0,gpu-1"])
def test_an_environment_may_name_minors_or_uuids(visible: str) -> None:
    assert found(50, [*BORN, starts(2, "a", visible)]) == []


@pytest.mark.parametrize("visible", ["0", "0,1,2", "gpu-1", None])
def test_an_environment_that_names_others_than_the_annotation_is_reported(visible: str | None) -> None:
    assert found(50, [*BORN, starts(2, "a", visible)]) == [(4, 2)]
    assert found(50, [*BORN, starts(2, "a", visible, host="without-koordlet")]) == []


def test_a_hook_that_failed_is_known_of_the_published_system_under_ignore_alone() -> None:
    said = [*BORN, on_node(2, "a", "hook-failed", message="nobody"), starts(2, "a", None)]
    [breach] = judged(50, said)
    assert (breach.known, breach.after and breach.after.event) == (IGNORE_POLICY, "hook-failed")
    assert [breach.known for breach in judged(50, said, hook_failure_policy="Fail")] == [""]
    again = [*said, starts(9, "a", None)]
    assert [breach.known for breach in judged(50, again)] == [IGNORE_POLICY, ""]


@pytest.mark.parametrize("now", [[device(0, health=False), device(1)], [device(1)]])
def test_a_binding_to_a_device_that_is_not_offered_when_it_is_annotated_is_reported(now: list[Any]) -> None:
    assert found(51, [TWO, published(1, *now), created(2, "a"), given(2, "a", 0), bound(2, "a")]) == [(4, 1)]
    between = [TWO, created(2, "a"), given(2, "a", 0), published(2, *now), bound(2, "a")]
    assert found(51, between) == []
    given_up = [TWO, published(1, *now), created(2, "a"), given(2, "a", 0), taken_back(2, "a")]
    assert found(51, given_up) == []


def test_devices_that_a_pod_came_with_are_its_makers() -> None:
    came = [TWO, published(1, device(1)), created(2, "a", annotated=[ALLOCATED]), given(2, "a", 0), bound(2, "a")]
    assert found(51, came) == []


def test_more_than_a_device_has_is_reported_as_the_second_pod_is_bound() -> None:
    first = [TWO, created(1, "a"), given(1, "a", 0, core=60), bound(1, "a")]
    second = [created(2, "b"), given(2, "b", 0, core=60), bound(2, "b")]
    assert found(52, [*first, *second]) == [(6, 3)]
    assert found(52, [*first, pod(2, "a", "phase", phase="Failed", reason=""), *second]) == []
    assert found(52, [*first, created(2, "b"), given(2, "b", 1, core=60), bound(2, "b")]) == []
    assert found(52, [*first, created(2, "b"), given(2, "b", 0, core=40), bound(2, "b")]) == []


def ganged(t: float, uid: str, wanted: int = 2) -> list[Said]:
    return [created(t, uid), pod(t, uid, "gang", gang="g", min_available=wanted), given(t, uid, 0, core=10)]


PAIR = [TWO, *ganged(1, "a"), *ganged(1, "b")]


def test_a_gang_that_is_bound_whole_and_to_one_node_breaks_nothing() -> None:
    assert found(53, [*PAIR, bound(2, "a"), bound(3, "b")], until=900) == []


def test_a_gang_on_two_nodes_is_reported_with_the_other_binding() -> None:
    assert found(53, [*PAIR, bound(2, "a"), bound(3, "b", "n2")]) == [(8, 7)]
    ended = pod(2, "a", "phase", phase="Succeeded", reason="")
    assert found(53, [*PAIR, bound(2, "a"), ended, bound(3, "b", "n2")]) == []


def test_a_gang_that_stays_bound_in_part_is_reported_with_the_last_binding() -> None:
    assert found(53, [*PAIR, bound(2, "a")], until=17.0) == []
    assert found(53, [*PAIR, bound(2, "a")], until=17.1) == [(7, 7)]
    assert found(53, [*PAIR, bound(2, "a"), pod(3, "b", "deleted")], until=900) == []
    down = [(3.0, "koord-scheduler", "killed", {}), (90.0, "koord-scheduler", "started", {})]
    assert found(53, [*PAIR, bound(2, "a"), *down, bound(91, "b")], until=900) == []


def test_a_pod_of_a_gang_that_is_not_all_there_is_reported_as_it_is_bound() -> None:
    assert found(53, [TWO, *ganged(1, "a"), bound(2, "a")]) == [(4, 2)]


def own(t: float, uid: str, wanted: int | None = 2) -> list[Said]:
    return [created(t, uid), pod(t, uid, "gang", gang="g", min_available=wanted, anywhere=True)]


def group(t: float, least: int) -> Said:
    return (t, "podgroup/default/g", "pod-group", {"min_member": least})


OWN = [*own(1, "a"), *own(1, "b")]


def test_a_gang_of_koordinators_own_may_be_on_any_nodes_and_goes_on_once_it_was_let_through() -> None:
    through = [*OWN, bound(2, "a"), bound(2, "b", "n2")]
    assert found(53, through, until=900) == []
    assert found(53, [*through, pod(3, "b", "deleted"), *own(4, "c"), bound(5, "c")], until=900) == []
    anew = [*through, pod(3, "a", "deleted"), pod(3, "b", "deleted"), *own(4, "c"), bound(5, "c")]
    assert found(53, anew) == [(10, 9)]


def test_a_gang_of_koordinators_own_that_stays_bound_in_part_or_is_incomplete_is_reported() -> None:
    assert found(53, [*OWN, bound(2, "a")], until=17.1) == [(4, 4)]
    assert found(53, [*own(1, "a"), bound(2, "a")]) == [(2, 1)]


def test_a_pod_group_says_how_many_go_together_and_before_it_nobody_goes() -> None:
    both = [*own(1, "a", None), *own(1, "b", None)]
    assert found(53, [*both, bound(2, "a")]) == [(4, 1)]
    assert found(53, [*both, group(1, 2), bound(2, "a"), bound(2, "b")], until=900) == []
    assert found(53, [*both, group(1, 3), bound(2, "a")]) == [(5, 1)]


def test_what_koordinators_annotations_and_pod_groups_say_of_gangs_are_lines() -> None:
    metadata = {"name": "a", "namespace": "default", "uid": "u", "annotations": {GANG_NAME: "g", GANG_MIN: "3"}}
    line = ("pod/default/a", "gang", {"uid": "u", "gang": "g", "min_available": 3, "anywhere": True})
    assert list(gang_news(None, {"metadata": metadata})) == [line]
    assert list(gang_news({"metadata": metadata}, {"metadata": metadata})) == []
    [(_, _, by_group)] = gang_news(None, {"metadata": {**metadata, "labels": {POD_GROUP: "h"}}})
    assert (by_group["gang"], by_group["min_available"]) == ("h", None)
    pod_group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 4}}
    assert list(pod_group_news(None, pod_group)) == [("podgroup/default/g", "pod-group", {"min_member": 4})]
    assert list(pod_group_news(pod_group, pod_group)) == []


def wants_alone(t: float, uid: str, level: str) -> Said:
    return pod(t, uid, "annotations", annotations={HINT: json.dumps({"gpu": {"exclusivePolicy": level}})})


NEAR = published(0, device(0, pcie="x"), device(1, pcie="x"), device(2, pcie="y"))


@pytest.mark.parametrize(
    ("level", "minor", "reported"),
    [
        ("DeviceLevel", 0, True),
        ("DeviceLevel", 1, False),
        ("PCIeLevel", 1, True),
        ("PCIeLevel", 2, False),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_pod_bound_beside_one_that_is_to_be_alone_is_reported_with_that_binding(
    level: str, minor: int, reported: bool, first: bool
) -> None:
    alone = [created(1, "a"), wants_alone(1, "a", level), given(1, "a", 0, core=10), bound(1, "a")]
    other = [created(2, "b"), given(2, "b", minor, core=10), bound(2, "b")]
    said = [NEAR, *alone, *other] if first else [NEAR, *other, *alone]
    assert found(57, said) == ([(7, 4 if first else 3)] if reported else [])
    assert found(57, [NEAR, *alone, pod(1, "a", "phase", phase="Failed", reason=""), *other]) == []


@pytest.mark.parametrize(("level", "breaches"), [("PCIeLevel", [(7, 4)]), ("DeviceLevel", [])])
def test_a_device_of_which_nobody_knows_the_switch_may_be_beside_any_other(
    level: str, breaches: list[tuple[int, int | None]]
) -> None:
    there = published(0, device(0), device(1, pcie="x"))
    alone = [created(1, "a"), wants_alone(1, "a", level), given(1, "a", 0, core=10), bound(1, "a")]
    other = [created(2, "b"), given(2, "b", 1, core=10), bound(2, "b")]
    assert found(57, [there, *alone, *other]) == breaches


def test_a_device_that_names_an_error_and_is_shown_as_healthy_is_reported() -> None:
    broken = {**device(0), "labels": {XID: "48"}}
    assert found(56, [TWO, published(1, broken)]) == [(1, None)]
    assert found(56, [TWO, published(1, {**broken, "health": False})]) == []


@pytest.mark.parametrize(
    ("xid", "between", "named"),
    [
        pytest.param(48, (), [(2, 1)], id="its own"),
        pytest.param(13, (), [], id="a program's"),
        pytest.param(48, ("nvml-hidden",), [], id="bound anew"),
    ],
)
def test_a_device_that_hides_the_xid_of_a_broken_gpu_is_reported(
    xid: int, between: tuple[str, ...], named: list[tuple[int, int]]
) -> None:
    shows = {"uuid": "gpu-0", "gpuid": "n1-0", "xid": xid}
    said = [TWO, (1.0, "host/n1", "xid", shows), *((2.0, "host/n1", event, shows) for event in between)]
    assert found(56, [*said, published(3, device(0, health=False))]) == named
    assert found(56, [*said, published(3, {**device(0, health=False), "labels": {XID: str(xid)}})]) == []


def test_devices_that_belong_together_below_other_switches_are_reported() -> None:
    there = published(0, device(0, pcie="x"), device(1, pcie="y"), device(0, "rdma", pcie="x"))
    joint = pod(
        1,
        "a",
        "annotations",
        annotations={JOINT: json.dumps({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"})},
    )
    assert found(54, [there, created(1, "a"), joint, given(1, "a", 1, rdma=0), bound(1, "a")]) == [(4, 3)]
    assert found(54, [there, created(1, "a"), joint, given(1, "a", 0, rdma=0), bound(1, "a")]) == []
    assert found(54, [there, created(1, "a"), given(1, "a", 1, rdma=0), bound(1, "a")]) == []


def test_a_pod_that_bears_devices_and_is_not_bound_is_reported_after_the_bound() -> None:
    open_ = [TWO, created(1, "a"), given(1, "a", 0)]
    assert found(55, open_, until=16.0) == []
    assert found(55, open_, until=16.1) == [(2, None)]
    assert found(55, [*open_, taken_back(2, "a")], until=900) == []
    assert found(55, [*open_, pod(2, "a", "deleted")], until=900) == []


def test_what_the_labels_of_a_pod_say_of_its_gang_is_a_line_when_it_is_new() -> None:
    metadata = {"name": "a", "namespace": "default", "uid": "u", "labels": {POD_GROUP: "g", MIN_AVAILABLE: "3"}}
    line = ("pod/default/a", "gang", {"uid": "u", "gang": "g", "min_available": 3})
    assert list(gang_news(None, {"metadata": metadata})) == [line]
    assert list(gang_news({"metadata": metadata}, {"metadata": metadata})) == []
    assert list(gang_news(None, {"metadata": {**metadata, "labels": {MIN_AVAILABLE: "3"}}})) == []


# Planted


async def nothing(*_: Any) -> None:
    """A step that is left out."""


async def yes(*_: Any) -> bool:
    return True


def the_hook_names_the_first_gpu(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hook, "visible_text", lambda given, node: "0")


def all_devices_count_as_healthy(patch: pytest.MonkeyPatch) -> None:
    real = cache.parse

    def parse(obj: Any) -> Any:
        report = real(obj)
        return replace(report, devices=tuple(dataclasses.replace(each, health=True) for each in report.devices))

    patch.setattr(cache, "parse", parse)
    patch.setattr(plugin, "still_offered", yes)


def nothing_counts_as_used(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(usage.NodeUse, "free", lambda self, device: dict(device.resources))


def gangs_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plugin, "refusal", lambda gang: "")
    patch.setattr(GangState, "needed", property(lambda self: 1))


def joint_devices_are_chosen_apart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy, "_jointly", lambda node, ask: None)


def a_refused_binding_is_not_undone(patch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> None:
        raise ConflictError("planted")

    patch.setattr(DeviceNotes, "bind", refuse)
    patch.setattr(DeviceNotes, "clear", nothing)


def nobody_waits_for_its_gang(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(coscheduling.Coscheduling, "permit", let_through)


async def let_through(*_: Any) -> Status:
    return SUCCESS


def errors_break_no_gpu(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GpuHealth, "healthy", lambda self, gpu: True)


def nobody_is_alone(patch: pytest.MonkeyPatch) -> None:
    chooser = next(each for each in vars(policy).values() if hasattr(each, "_may_share"))
    patch.setattr(chooser, "_may_share", lambda self, hint, device: True)


PLANTED = [
    (the_hook_names_the_first_gpu, 50, "koordinator/01", "names GPU-four-1", "container-started", "annotations"),
    (all_devices_count_as_healthy, 51, "koordinator/05", "shows as unhealthy", "bound", "device-published"),
    (nothing_counts_as_used, 52, "koordinator/01", "gpu GPU-four-0 of four has 8589934592", "bound", "bound"),
    (gangs_do_not_wait, 53, "koordinator/06", "only 1 of the 2 pods of gang g are there", "bound", "gang"),
    (joint_devices_are_chosen_apart, 54, "koordinator/02", "below the same switches", "bound", "annotations"),
    (a_refused_binding_is_not_undone, 55, "koordinator/06", "bears devices for", "annotations", ""),
    (nobody_waits_for_its_gang, 53, "koordinator/34", "1 of gang pair, of 2 that must be", "bound", "bound"),
    (errors_break_no_gpu, 56, "koordinator/05", "as healthy, with XID 48", "device-published", ""),
    (nobody_is_alone, 57, "koordinator/03", "one of them wants gpu devices for itself", "bound", "bound"),
]  # fmt: skip


@each_planted(PLANTED)
def test_the_law_finds_a_fault_of_one_line_and_names_the_lines(
    monkeypatch: pytest.MonkeyPatch, row: PlantedRow
) -> None:
    check_found(monkeypatch, row)


UNHOOKED = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: unhooked}
hardware: seed-004
stack: {kubecomp: null, koordinator: {}}
steps:
  - wait: {object: {kind: Node, metadata: {name: four}, status: {allocatable: {koordinator.sh/gpu-core: "400"}}}}
    timeout: 1m
  - kill: koordlet/four
  - apply: {kind: Pod, metadata: {name: a}, spec: {schedulerName: koord-scheduler, nodeSelector: {kubernetes.io/hostname: four}, containers: [{name: main, image: mews/gpu-hold, resources: {limits: {koordinator.sh/gpu: "50"}}}]}}
  - wait: {pod: {name: a, phase: Running}}
    timeout: 1m
"""  # noqa: E501


def test_a_run_without_its_hook_passes_and_reports_what_is_known_of_the_published_system() -> None:
    result = played(UNHOOKED)
    assert (result.verdict, result.violations) == ("passed", ())
    what, *lines = named(result, 50)
    assert what == "default/a (main) starts with no NVIDIA_VISIBLE_DEVICES, and its annotation names GPU-four-1"
    assert lines == ["container-started", "hook-failed"]
