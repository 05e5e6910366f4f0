"""Invariant 12: annotations of pods against the Device objects of their nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mews.harness.invariants.systems import judged_systems
from mews.kube.api.objects import Object
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import ClusterObjects
from mews.systems.koordinator.devices import device_object
from mews.systems.koordinator.names import ALLOCATED, CORE, RATIO
from mews.systems.koordinator.options import KoordinatorOptions
from mews.systems.koordinator.system import SYSTEM, configure
from tests.harness.invariants.stream import Stream
from tests.systems.koordinator.cluster import gpus

BOUND_S = 15.0


class Judged(Stream):
    """A run with Koordinator, on host-1 and chassis c with GPU a."""

    def __init__(self, *devices: str) -> None:
        config = configure(KoordinatorOptions(), Facility())
        systems = judged_systems((ConfiguredSystem(SYSTEM, KoordinatorOptions(), config),), [])
        super().__init__(dict.fromkeys(devices, "1"), systems, **{**SYSTEM.judging.bounds, "unlisted_s": BOUND_S})

    def published(self, *ids: str, first: int = 0) -> None:
        listed = [
            {**device_object(device), "id": ids[number], "minor": first + number}
            for number, device in enumerate(gpus("host-1", len(ids)))
        ]
        self.journal.write("api", "devices", "device-published", node="host-1", devices=listed)

    def pods(self, *pods: Object) -> None:
        objects = {f"default/{each['metadata']['name']}": each for each in pods}
        self.judge.on_objects(self.t, ClusterObjects({}, objects, self.t))

    def wait(self, seconds: float) -> None:
        self.t += seconds
        self.judge.pass_time(self.t)

    def told(self) -> list[str]:
        return [each.what for each in self.judge.violations if each.invariant == 12]


def pod(name: str, *devices: dict[str, Any], core: int = 50) -> Object:
    given = [{"minor": 0, "resources": {CORE: core, RATIO: core}, **device} for device in devices]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": {ALLOCATED: json.dumps({"gpu": given})},
        },
        "spec": {"nodeName": "host-1", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def test_a_pod_whose_device_is_listed_no_more_is_told_once_the_bound_has_passed() -> None:
    run = Judged()
    run.published("GPU-0", "GPU-1")
    run.pods(pod("p", {"id": "GPU-1", "minor": 1}))
    run.wait(60)
    run.published("GPU-0")
    run.wait(BOUND_S - 1)
    assert run.told() == []
    run.wait(2)
    what = "pod default/p has gpu GPU-1, which the Device of host-1 has not listed for 15 s"
    assert run.told() == [what]
    run.wait(60)
    assert run.told() == [what]


@pytest.mark.parametrize("device", [{"id": "GPU-9", "minor": 0}, {"minor": 5}])
def test_a_pod_that_was_given_what_was_never_listed_is_told(device: dict[str, Any]) -> None:
    run = Judged()
    run.published("GPU-0")
    run.pods(pod("p", device))
    run.wait(BOUND_S + 1)
    assert len(run.told()) == 1


def test_a_minor_that_another_card_has_by_now_is_not_the_pod_s_device() -> None:
    run = Judged()
    run.published("GPU-0")
    run.pods(pod("p", {"id": "GPU-0"}))
    run.published("GPU-9")
    run.wait(BOUND_S + 1)
    assert len(run.told()) == 1


def test_what_is_listed_again_in_time_is_nothing() -> None:
    run = Judged()
    run.published("GPU-0")
    run.pods(pod("p", {"id": "GPU-0"}))
    for _ in range(3):
        run.published()
        run.wait(BOUND_S - 5)
        run.published("GPU-0")
        run.wait(10)
    assert run.told() == []


def test_a_device_object_that_is_gone_takes_no_pod_s_device_away() -> None:
    run = Judged()
    run.published("GPU-0")
    run.pods(pod("p", {"id": "GPU-0"}))
    run.journal.write("api", "devices", "device-withdrawn", node="host-1")
    run.wait(60)
    assert run.told() == []


def test_a_pod_that_has_ended_has_nothing() -> None:
    run = Judged()
    run.published("GPU-0")
    run.pods(pod("p", {"id": "GPU-0"}))
    run.published()
    run.wait(10)
    run.pods({**pod("p", {"id": "GPU-0"}), "status": {"phase": "Succeeded"}})
    run.wait(60)
    assert run.told() == []


def test_a_fault_that_takes_it_from_under_its_pod_excuses_that_for_as_long_as_the_pod_keeps_it() -> None:
    run = Judged("a")
    run.published("GPU-a")
    run.pods(pod("p", {"id": "GPU-a"}))
    run.chassis("edited", "a", None, old_port="1")
    run.published()
    run.wait(300)
    assert run.told() == []


def test_moved_by_the_system_itself_it_is_not_excused() -> None:
    run = Judged("a")
    run.published("GPU-a")
    run.pods(pod("p", {"id": "GPU-a"}))
    run.detach("a")
    run.published()
    run.wait(300)
    assert len(run.told()) == 1


def test_a_device_is_one_whether_it_goes_by_its_id_or_by_its_minor() -> None:
    run = Judged()
    run.published("GPU-0")
    run.pods(pod("p", {"id": "GPU-0"}, core=60), pod("q", {"minor": 0}, core=60))
    assert any("was given for 120: to default/p, default/q" in each for each in run.told())
