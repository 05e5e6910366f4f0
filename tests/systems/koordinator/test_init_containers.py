"""kubernetes 133382 and 138446: devices of init containers that have ended, when a kubelet restarts.

A kubelet of 1.34 admits its pods anew before its device plugins are back. A container that runs keeps what it has; an
init container that has ended is to get its devices again, of which none are healthy: the pod is rejected and ends,
although nothing was wrong with it. Our kubelet does as it does. Pods whose devices stand in an annotation do not depend
on a plugin (``scenarios/koordinator/27-kubelet-restart.yaml``); of those that do, what they held is counted once while
they live, and given to others when they have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.emulated.kubelet.devices.errors import AdmissionRejectedError
from mews.systems.koordinator import names, usage
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.checkpoint import adopted, read_checkpoint
from mews.systems.koordinator.devices import CheckpointEntry, NodeDevice, NodeDeviceReport, as_object
from mews.systems.koordinator.usage import whole_of
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, Stand, a_pod, container
from tests.systems.koordinator.cluster import gpus

GPUS = gpus("n", 4)


def on_nvidia(name: str, count: int) -> dict[str, Any]:
    return container(name, count, resource=names.NVIDIA)


def restarted(init: int, main: int) -> tuple[str, str]:
    """What the kubelet says to a pod that runs, after a restart and before its plugin is back; and its checkpoint."""
    told: list[str] = []

    async def story() -> None:
        stand = await Stand().start()
        await stand.plug(FakePlugin([gpu.id for gpu in GPUS]), names.NVIDIA)
        inits = [on_nvidia("prepare", init)] if init else []
        pod = await stand.run(a_pod("p", on_nvidia("main", main), inits=inits))
        told.append(stand.checkpoint.text())
        await stand.restart()
        try:
            await stand.manager.admit(pod, running={"main"})
            told.append("")
        except AdmissionRejectedError as rejected:
            told.append(rejected.reason)

    run_virtual(story)
    return told[1], told[0]


def test_kubernetes_133382_a_container_that_runs_survives_a_kubelet_s_restart() -> None:
    assert restarted(0, 1)[0] == ""


def test_kubernetes_138446_a_pod_whose_init_container_had_devices_does_not() -> None:
    assert restarted(1, 1)[0] == "UnexpectedAdmissionError"


def books(entries: Iterable[CheckpointEntry], ended: bool = False) -> dict[str, Any]:
    live = {"metadata": {"name": "p", "namespace": "default", "uid": "uid-p"}, "spec": {"schedulerName": "theirs"}}
    live["status"] = {"phase": "Failed" if ended else "Running"}
    held = adopted(entries, [live], scheduler=names.SCHEDULER, resources=[names.NVIDIA])
    cache = NodeDeviceCache()
    cache.set_device(as_object(NodeDeviceReport("n", GPUS, held=held)))
    found = cache.summary()["n"]["deviceUsed"].get("gpu", {})
    return {minor: amounts[names.CORE] for minor, amounts in found.items()}


@pytest.mark.parametrize(("init", "main", "held"), [(1, 1, 1), (2, 1, 2), (1, 3, 3), (2, 2, 2)])
def test_kubernetes_138446_what_an_init_container_passed_on_is_held_once(init: int, main: int, held: int) -> None:
    entries = read_checkpoint(restarted(init, main)[1])
    assert {entry.container for entry in entries} == {"prepare", "main"}
    assert sorted(books(entries).values()) == ["100"] * held


def test_kubernetes_138446_fails_where_each_container_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def each(held: object, pod: str, devices: Iterable[NodeDevice]) -> list[Any]:
        return [whole_of(device) for device in devices]

    monkeypatch.setattr(usage, "_not_yet", each)
    assert list(books(read_checkpoint(restarted(1, 1)[1])).values()) == ["200"]


def test_kubernetes_133382_a_pod_that_a_restart_ended_holds_nothing_though_the_kubelet_s_file_names_it() -> None:
    entries = read_checkpoint(restarted(1, 1)[1])
    assert books(entries, ended=True) == {}
