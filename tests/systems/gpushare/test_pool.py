"""A node whose GPUs are shared, and the pool that asks for them: each scenario fails on the fault that it is about, and
what is left of a request after a crash does no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mews.harness.cli import exit_code
from mews.harness.clock import run_virtual
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.ports.nvml import LocalNvml
from mews.harness.scenario.loader import load_scenario
from mews.kube.api.errors import ConflictError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import PODS
from mews.kube.client.port import KubeApi
from mews.kube.component import Context
from mews.kube.deviceplugin.release import DeviceAnswer, ReleaseState
from mews.kube.system.cgroups import pod_of_cgroup
from mews.systems.gpushare import evictions, extender
from mews.systems.gpushare.evictions import protection
from mews.systems.gpushare.ledger import NodeLedgers, SharedNode
from mews.systems.gpushare.node_plugin import GpuShareNodePlugin
from mews.systems.gpushare.over_use import MemoryUse
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import LedgerEntry
from mews.systems.gpushare.releases import GpuReleases
from mews.systems.kubecomp import policy
from mews.systems.kubecomp.device_manager import ChassisDeviceManager
from mews.systems.kubecomp.lent_devices import LentDevices
from tests.systems.gpushare.test_extender import Bench

FOLDER = Path(__file__).parents[3] / "scenarios" / "gpushare"


def outcome(name: str, **changes: Any) -> tuple[str, str]:
    (path,) = FOLDER.glob(f"{name}*.yaml")
    found = Engine(RunOptions()).run(load_scenario(path, changes.get("settings", {}))).result
    return str(found.verdict), f"{found.reason} {found.violations}"


async def nobody(self: GpuReleases, uuid: str) -> dict[str, Object | None]:
    return {}


def test_refuse_fails_where_the_plugin_does_not_look_who_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GpuReleases, "_users", nobody)
    verdict, why = outcome("20-pool-refuse")
    assert verdict == "failed", why


def test_a_gpu_that_pods_share_moves_where_the_plugin_does_not_look_and_hosts_are_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GpuReleases, "_users", nobody)
    verdict, why = outcome("20-pool-refuse", settings={"stack.kubecomp.removal": "surprise"})
    assert verdict == "failed"
    assert "GPU-2" in why or "0-000200 moved from port 2" in why


def test_refuse_fails_where_the_device_manager_takes_no_answer_for_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    def eager(self: LentDevices, uuid: str, request: str) -> DeviceAnswer:
        return DeviceAnswer(request, ReleaseState.RELEASED)

    monkeypatch.setattr(LentDevices, "answer", eager)
    verdict, why = outcome("20-pool-refuse")
    assert verdict == "failed", why


def test_refuse_fails_where_whole_devices_are_announced_beside_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    make = ChassisDeviceManager.__init__

    def beside(self: ChassisDeviceManager, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        self._book._announces = True

    monkeypatch.setattr(ChassisDeviceManager, "__init__", beside)
    assert outcome("20-pool-refuse")[0] == "failed"


def test_evict_fails_where_pods_are_deleted_and_not_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def delete(context: Context, pod: Object) -> str:
        await context.kube.delete(PODS, name_of(pod), namespace=namespace_of(pod))
        return ""

    monkeypatch.setattr(evictions, "_evict", delete)
    assert outcome("21-pool-evict")[0] == "failed"
    assert outcome("22-pool-budget")[0] == "passed"  # the budget was looked at before


def test_budget_fails_where_budgets_are_left_to_each_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evictions, "protection", lambda pods, budgets: "")
    verdict, why = outcome("22-pool-budget")
    assert verdict == "failed", why


def test_evict_fails_where_the_most_shared_gpu_is_taken_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "ranked", lambda found: tuple(sorted(found)))
    assert outcome("21-pool-evict")[0] == "failed"


def test_idle_fails_where_the_plugin_keeps_nvml_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keep(self: LocalNvml) -> None:
        return

    monkeypatch.setattr(LocalNvml, "close", keep)
    assert outcome("24-pool-idle")[0] == "failed"


def test_idle_fails_where_nvml_is_opened_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def always(self: GpuReleases) -> bool:
        return True

    monkeypatch.setattr(GpuReleases, "may_open", always)
    slow = {"hardware.hosts": [{"name": "whole"}, {"name": "sharing", "profile": {"drain": 2.5, "remove": 2.5}}]}
    assert outcome("24-pool-idle", settings=slow)[0] == "failed"


def test_idle_passes_on_hosts_that_take_their_time() -> None:
    slow = {"hardware.hosts": [{"name": "whole"}, {"name": "sharing", "profile": {"drain": 2.5, "remove": 2.5}}]}
    verdict, why = outcome("24-pool-idle", settings={**slow, "bounds.scheduled_s": 30})
    assert verdict == "passed", why


def test_arrives_fails_where_gpus_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    look = GpuShareNodePlugin._look

    async def once(self: GpuShareNodePlugin) -> None:
        if self._listed is None:
            await look(self)

    monkeypatch.setattr(GpuShareNodePlugin, "_look", once)
    assert outcome("23-pool-arrives")[0] == "failed"


def test_76_and_51_fail_where_a_pod_is_believed_to_use_what_it_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def believed(self: MemoryUse, *given: Any) -> Mapping[str, int]:
        return {}

    monkeypatch.setattr(MemoryUse, "_used", believed)
    assert outcome("extender-76")[0] == "failed"


def test_76_and_51_fail_where_what_is_used_counts_for_the_next_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_use(gpus: Sequence[SharedGpu], uses: Sequence[Any]) -> int:
        return 16 - 11 - 4 if len(uses) > 1 else 16

    monkeypatch.setattr(extender, "largest_free", by_use)
    assert outcome("extender-76")[0] == "failed"


def test_a_plugin_that_does_not_answer_keeps_its_gpus(tmp_path: Path) -> None:
    text = (FOLDER / "24-pool-idle.yaml").read_text(encoding="utf-8")
    begun, _, _ = text.partition("  - name: it gets the one that nobody shares")
    before, _, after = begun.partition("  - name: a trainer wants two whole GPUs")
    silent = f"""{before}  - kill: gpushare-device-plugin/sharing
  - name: a trainer wants two whole GPUs{after}  - name: nobody says that it may go
    hold: {{for: 2m, check: [{{hosts: {{whole: 1, sharing: 2}}}}, {{pod: {{name: trainer, phase: Pending}}}}]}}
  - start: gpushare-device-plugin/sharing
  - name: and now somebody does
    wait: {{pod: {{name: trainer, phase: Running, node: whole}}, gpus: {{pod: trainer, count: 2, host: whole}}}}
    timeout: 15m
""".replace("bounds: {scheduled_s: 25}", "")
    path = tmp_path / "silent.yaml"
    path.write_text(silent, encoding="utf-8")
    found = Engine(RunOptions()).run(load_scenario(path)).result
    assert found.verdict == "passed", found.reason


@pytest.mark.parametrize("moment", ["at once", "draining", "function-removed", "detached"])
@pytest.mark.parametrize("part", ["gpushare-device-plugin/sharing", "device-manager/sharing"])
def test_a_part_that_dies_on_the_way_holds_up_nothing_and_no_gpu_is_lost(
    moment: str, part: str, tmp_path: Path
) -> None:
    text = (FOLDER / "24-pool-idle.yaml").read_text(encoding="utf-8")
    begun, _, _ = text.partition("  - name: a trainer wants two whole GPUs")
    layer = "chassis" if moment == "detached" else "host"
    at = "" if moment == "at once" else f", at: {{layer: {layer}, event: {moment}, uuid: GPU-3}}"
    trainer = (
        "{kind: Pod, metadata: {name: trainer}, spec: {schedulerName: kubecomp-scheduler, containers: "
        "[{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: '2'}}}]}}"
    )
    path = tmp_path / "dies.yaml"
    path.write_text(
        f"""{begun.replace("bounds: {scheduled_s: 25}", "")}  - apply: {trainer}
  - name: it dies
    restart: {{component: {part}{at}}}
  - name: the trainer has its two GPUs
    wait: {{pod: {{name: trainer, phase: Running, node: whole}}, gpus: {{pod: trainer, count: 2, host: whole}}}}
    timeout: 20m
  - name: the other one is shared still
    wait: {{object: {{kind: Node, metadata: {{name: sharing}}, status: {{allocatable: {{aliyun.com/gpu-mem: "16"}}}}}}}}
    timeout: 10m
  - assert: {{pod: {{name: dev, phase: Running}}}}
""",
        encoding="utf-8",
    )
    found = Engine(RunOptions()).run(load_scenario(path)).result
    assert found.verdict == "passed", found.reason


@pytest.mark.parametrize(
    "moment",
    [
        "layer: api, event: condition, type: DisruptionTarget",
        "layer: kubelet, event: pod-ended, pod: default/notebook",
        "layer: host, event: draining, uuid: GPU-3",
    ],
)
@pytest.mark.parametrize("part", ["gpushare-device-plugin/sharing", "device-manager/sharing", "reconfig-manager"])
def test_a_part_that_dies_while_pods_are_evicted_goes_on_where_it_was(moment: str, part: str, tmp_path: Path) -> None:
    text = (FOLDER / "21-pool-evict.yaml").read_text(encoding="utf-8")
    begun, found, rest = text.partition("  - name: the notebook has to go, for fewer share its GPU")
    goes, _, _ = rest.partition("  - name: a second trainer wants another one")
    dies = f"  - name: it dies\n    restart: {{component: {part}, at: {{{moment}}}}}\n"
    path = tmp_path / "dies.yaml"
    path.write_text(
        f"{begun}{dies}{found}{goes}".replace("bounds: {scheduled_s: 20}", "").replace("timeout: 3m", "timeout: 20m"),
        encoding="utf-8",
    )
    result = Engine(RunOptions()).run(load_scenario(path)).result
    assert result.verdict == "passed", result.reason


@pytest.mark.parametrize(
    ("setting", "value", "allowed"),
    [("onShared", "ask", "must be one of refuse, evict"), ("evict_s", 0, "must be above 0")],
)
def test_what_an_option_may_be_is_said_in_one_line_and_the_exit_code_is_2(
    setting: str, value: object, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"stack.gpushare.{setting}={value}"
    code = exit_code(["run", str(FOLDER / "24-pool-idle.yaml"), "--set", place])
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert code == 2
    assert f"stack.gpushare.{setting}" in line and str(value) in line and allowed in line


def pod(name: str, *, phase: str = "Running", deleting: bool = False, **labels: str) -> Object:
    metadata: dict[str, Any] = {"namespace": "default", "name": name, "uid": name, "labels": labels}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "status": {"phase": phase}}


def budget(allowed: int, *, observed: int = 1, namespace: str = "default", **labels: str) -> Object:
    return {
        "metadata": {"namespace": namespace, "name": "keep", "generation": 1},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed, "observedGeneration": observed},
    }


def test_a_budget_counts_all_pods_that_are_to_go_together() -> None:
    both = [pod("a", app="x"), pod("b", app="x")]
    assert protection(both, [budget(2, app="x")]) == ""
    assert protection(both, [budget(1, app="x")]) == "default/b is protected by PodDisruptionBudget keep"
    assert protection(both, [budget(1, observed=0, app="x")]) == "default/a is protected by PodDisruptionBudget keep"


def test_a_budget_of_others_or_for_pods_that_go_anyway_protects_nobody() -> None:
    assert protection([pod("a", app="x")], [budget(0, app="y"), budget(0, namespace="other", app="x")]) == ""
    assert (
        protection([pod("a", deleting=True, app="x"), pod("b", phase="Pending", app="x")], [budget(0, app="x")]) == ""
    )


def test_a_process_belongs_to_the_pod_of_its_cgroup() -> None:
    uid = "4b0d3c9e-8b8e-4d0a-9c0f-2f6f0f3a1b2c"
    assert pod_of_cgroup(f"0::/kubepods/burstable/pod{uid}/abc\n") == uid
    slice_ = f"kubepods-besteffort-pod{uid.replace('-', '_')}.slice"
    assert pod_of_cgroup(f"0::/kubepods.slice/kubepods-besteffort.slice/{slice_}/cri-containerd-1.scope\n") == uid
    assert pod_of_cgroup("0::/system.slice/dcgm.service\n") == ""


GPUS = (SharedGpu(0, "GPU-0", 10), SharedGpu(1, "GPU-1", 10))


def test_whoever_promises_after_a_gpu_is_withheld_has_seen_it() -> None:
    async def play() -> tuple[str | None, str | None, str | None]:
        bench = Bench()
        kube = bench.kube
        await bench.pod("a", 4)
        await bench.pod("b", 4)
        extender, plugin = NodeLedgers(kube, "kube-system"), NodeLedgers(kube, "kube-system")
        first = await promised(extender, kube, "a")
        await plugin.read("n")
        await plugin.withhold("n", frozenset({"GPU-0"}))
        # The extender has not heard of it: its write is refused, it looks again, and takes the other one.
        second = await promised(extender, kube, "b")
        await plugin.read("n")
        await plugin.withhold("n", frozenset())
        return first, second, await promised(extender, kube, "b")

    assert run_virtual(play) == ("GPU-0", "GPU-1", "GPU-0")


async def promised(ledgers: NodeLedgers, kube: KubeApi, name: str) -> str | None:
    there = await kube.get(PODS, name, namespace="default")

    async def stands(entry: LedgerEntry) -> bool:
        return True

    for _ in range(3):
        try:
            gpu = await ledgers.promise(there, 4, SharedNode("n", GPUS, []), stands)
        except ConflictError:
            await ledgers.read("n")
            continue
        return gpu.uuid if gpu is not None else None
    raise AssertionError("three conflicts")


GPUS = (SharedGpu(0, "GPU-0", 10), SharedGpu(1, "GPU-1", 10))
