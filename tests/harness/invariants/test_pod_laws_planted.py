"""Each law of pods and kubelets finds a fault of one line in our kubelet, and names the lines that show it."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.emulated.kubelet import podstatus
from mews.kube.emulated.kubelet.devices import admission
from mews.kube.emulated.kubelet.devices.allocations import DeviceAllocations
from mews.kube.emulated.kubelet.devices.inventory import Inventory
from mews.kube.emulated.kubelet.pod_worker import PodWorker
from tests.harness.invariants.law_runs import PlantedRow, check_found, each_planted

ONE_AFTER_ANOTHER = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: one-after-another}
hardware: demo
steps:
  - wait: {settled: {}}
    timeout: 2m
  - apply: {kind: Pod, metadata: {name: a}, spec: &spec {nodeName: host-1, terminationGracePeriodSeconds: 1, containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "1"}}}]}}
  - wait: {pod: {name: a, phase: Running}}
    timeout: 1m
  - delete: {kind: Pod, name: a}
  - apply: {kind: Pod, metadata: {name: b}, spec: *spec}
  - wait: {pod: {name: b, phase: Running}}
    timeout: 1m
"""  # noqa: E501


async def nothing(*_: Any) -> None:
    """A step that is left out."""


def the_api_is_never_asked_to_remove_a_pod(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PodWorker, "_remove", nothing)


def an_ended_pod_is_pending(patch: pytest.MonkeyPatch) -> None:
    real = podstatus.phase_of
    patch.setattr(podstatus, "phase_of", lambda state: "Pending" if state.ended else real(state))


def ended_pods_keep_their_devices(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeviceAllocations, "collect", lambda self, alive: None)


def one_device_less_is_given(patch: pytest.MonkeyPatch) -> None:
    real = admission.whole
    patch.setattr(admission, "whole", lambda quantity: real(quantity) - 1)


def broken_devices_are_offered(patch: pytest.MonkeyPatch) -> None:
    real = Inventory.numbers
    patch.setattr(Inventory, "numbers", lambda self, resource: (real(self, resource)[0],) * 2)


PLANTED = [
    (an_ended_pod_is_pending, 13, "kubelet/02", "default/three is Pending after it was Running", "phase", "phase"),
    (the_api_is_never_asked_to_remove_a_pod, 14, "kubelet/10", "default/waits is Terminating", "deleting", ""),
    (
        ended_pods_keep_their_devices,
        15,
        ONE_AFTER_ANOTHER,
        "host-1 has devices of default/a",
        "checkpoint",
        "pod-ended",
    ),
    (one_device_less_is_given, 15, "kubelet/02", "with 2 of 3 falcon.com/gpu", "container-started", "bound"),
    (broken_devices_are_offered, 16, "kubelet/08", "node host-1 offers 4 falcon.com/gpu", "devices", "devices"),
]


@each_planted(PLANTED)
def test_the_law_finds_it_and_names_the_lines(monkeypatch: pytest.MonkeyPatch, row: PlantedRow) -> None:
    check_found(monkeypatch, row)
