"""The scenarios of GPU Share pass, and each of those named after a complaint fails on the fault that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.result import Verdict
from mews.kube.api.objects import Object
from mews.kube.system.nvml import ListedGpu
from mews.systems.gpushare import extender, health, ledger, matching, node_plan, node_plugin, policy
from mews.systems.gpushare.policy import GpuUse, SharedGpu

FOLDER = Path(__file__).parents[3] / "scenarios" / "gpushare"


def verdict(name: str, **options: Any) -> Verdict:
    (path,) = FOLDER.glob(f"{name}*.yaml")
    return Engine(RunOptions(**options)).run(load_scenario(path)).result.verdict


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_passes_in_virtual_time(path: Path) -> None:
    assert verdict(path.stem) == "passed"


@pytest.mark.parametrize("complaint", ["extender-143", "extender-219"])
def test_143_and_219_fail_where_only_one_container_of_a_pod_is_matched(
    monkeypatch: pytest.MonkeyPatch, complaint: str
) -> None:
    def one_only(pod: Object, resource: str) -> list[tuple[str, int]]:
        return matching_requests(pod, resource)[:1]

    matching_requests = matching.container_requests
    monkeypatch.setattr(matching, "container_requests", one_only)
    assert verdict(complaint) == "failed"


def test_218_fails_where_the_sum_of_the_node_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_sum(gpus: Sequence[SharedGpu], uses: Sequence[GpuUse]) -> int:
        return sum(gpu.memory for gpu in gpus) - sum(use.memory for use in uses)

    monkeypatch.setattr(extender, "largest_free", by_sum)
    assert verdict("extender-218") == "failed"


def test_219_fails_where_all_gpus_of_a_node_are_taken_for_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    def equal(node: Object, memory: str, count: str) -> tuple[SharedGpu, ...]:
        gpus = node_gpus(node, memory, count)
        size = sum(gpu.memory for gpu in gpus) // max(len(gpus), 1)
        return tuple(SharedGpu(gpu.index, gpu.uuid, size, gpu.usable) for gpu in gpus)

    node_gpus = extender.node_gpus
    monkeypatch.setattr(extender, "node_gpus", equal)
    assert verdict("extender-219") == "failed"


def test_191_fails_where_a_pods_gpu_goes_by_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_index(use: GpuUse, gpus: Sequence[SharedGpu]) -> SharedGpu | None:
        return next((gpu for gpu in gpus if gpu.index == use.index), None)

    monkeypatch.setattr(policy, "gpu_of", by_index)
    assert verdict("extender-191") == "failed"


def test_191_fails_where_minor_numbers_are_taken_for_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_minor(self: Any, listed: Sequence[ListedGpu]) -> tuple[SharedGpu, ...]:
        minors = {gpu.uuid: gpu.minor for gpu in listed}
        return tuple(replace(gpu, index=minors[gpu.uuid]) for gpu in fitting(self, listed))

    fitting = node_plugin.GpuShareNodePlugin._fitting
    monkeypatch.setattr(node_plugin.GpuShareNodePlugin, "_fitting", by_minor)
    assert verdict("extender-191") == "failed"


def test_pinned_fails_where_pods_past_the_extender_are_not_decided_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_plan.NodePlan, "_claim", lambda self, uid: None)
    assert verdict("11-pinned") == "failed"


def test_1929_fails_where_only_one_slice_of_a_broken_gpu_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_slice(gpu: SharedGpu) -> list[Any]:
        made = slices(gpu)
        well = slices(SharedGpu(gpu.index, gpu.uuid, gpu.memory))
        return [*made[:1], *well[1:]]

    slices = node_plugin.slices
    monkeypatch.setattr(node_plugin, "slices", one_slice)
    assert verdict("device-plugin-1929") == "failed"


def test_the_design_cases_fail_where_gpus_are_spread_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def worst_fit(request: int, gpus: Sequence[SharedGpu], free: dict[str, int]) -> SharedGpu | None:
        fitting = [gpu for gpu in gpus if gpu.usable and free[gpu.uuid] >= request]
        return max(fitting, key=lambda gpu: free[gpu.uuid], default=None)

    monkeypatch.setattr(ledger, "best_fit", worst_fit)
    assert verdict("02-bind") == "failed"


def test_developers_fail_where_promises_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    choose: Callable[..., Any] = ledger.used_memory
    monkeypatch.setattr(ledger, "used_memory", lambda gpus, uses: choose(gpus, []))
    assert verdict("03-developers") != "passed"


def test_modules_under_test_are_those_that_run() -> None:
    assert node_plan.match is matching.match
    assert health.NodeHealth is node_plugin.NodeHealth
