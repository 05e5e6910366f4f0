"""Drawn cases of tainted devices put to a device-taint-eviction-controller: ours in virtual time, the real one on a
real control plane."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.controllers import kube_controller_manager
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.api.objects import Object, condition_of, is_deleting, name_of, uid_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    taint_rules_of,
)
from mews.kube.client.http import HttpKube
from mews.kube.client.port import DeleteOptions, KubeApi, Patch
from mews.kube.clock import Pace, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.catalogue import DEVICE_TAINTS
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.gated_features import features_of
from tests.kube.emulated.controllers.device_taint_cases import ClaimCase, PodCase, TaintCase, by

RELEASE = cluster_release("1.37")
OLD_RELEASE = cluster_release("1.34", {"DRADeviceTaints": True}, {"resource.k8s.io/v1alpha3": True})
Seen = list[dict[str, Any]]
"""What there is of a case at each look."""
_LOOKS_S = (2.0, 4.0, 15.0, 26.0)
"""After the taints. The change comes right after the first look; a rule's status is updated every ten seconds."""
_PATIENCE_S = 60.0
_APART_S = 0.5
"""Between taints: of those that come together the first may have evicted the pod or not when the second is seen."""


class _Stage:
    """Where one case is played."""

    def __init__(self, kube: KubeApi, case: TaintCase, devices: DeviceFeatures) -> None:
        self.kube = kube
        self.case = case
        self.rules = taint_rules_of(devices.taint_rules)
        self.untold = ("Marking for deletion",) if devices.tracks_rules else ()
        """Of the evictions of a process the real controller of 1.34 reports the first alone."""
        self.pods: dict[str, Object] = {}

    async def play(self) -> Seen:
        await self.kube.create(NAMESPACES, {"metadata": {"name": self.case.name}})
        await self.kube.create(RESOURCE_SLICES, self.slice("slice"))
        for name, spec in self.case.classes.items():
            await self.kube.create(DEVICE_CLASSES, {"metadata": {"name": name}, "spec": spec})
        for pod in self.case.pods:
            self.pods[pod.name] = await self.pod(pod)
        for claim in self.case.claims:
            await self.claim(claim)
        await asyncio.sleep(1.0)
        if self.case.taints:
            await self.publish(self.case.taints)
        for name, spec in self.case.rules.items():
            await asyncio.sleep(_APART_S)
            await self.kube.create(self.rules, {"metadata": {"name": name}, "spec": spec})
        began_s = asyncio.get_running_loop().time()
        found: Seen = []
        for number, look_s in enumerate(_LOOKS_S):
            await asyncio.sleep(max(0.0, began_s + look_s - asyncio.get_running_loop().time()))
            found.append(await self.look())
            if number == 0:
                await self.change(self.case.change)
        return found

    # ----------------------------------------------------------------------------------------------------------- making

    def slice(self, name: str, *, generation: int = 1, taints: dict[str, Any] | None = None) -> Object:
        devices = []
        for number, each in enumerate(self.case.devices):
            attributes = {"number": {"int": number}, "odd": {"bool": number % 2 == 1}}
            tainted = {"taints": taints[each]} if taints and each in taints else {}
            devices.append({"name": each, "attributes": attributes, **tainted})
        pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": self.case.driver, "pool": pool, "nodeName": "nowhere", "devices": devices}
        return {"metadata": {"name": f"{self.case.name}-{name}"}, "spec": spec}

    async def pod(self, pod: PodCase) -> Object:
        made = await self.kube.create(
            PODS, {"metadata": {"name": pod.name}, "spec": pod.spec}, namespace=self.case.name
        )
        status: dict[str, Any] = {}
        if pod.named:
            status["resourceClaimStatuses"] = pod.named
        if pod.extended:
            mapping = {"containerName": "m", "resourceName": "example.com/gpu", "requestName": "r"}
            status["extendedResourceClaimStatus"] = {
                "resourceClaimName": pod.extended,
                "requestMappings": [mapping],
            }
        if status:
            made = await self.kube.replace(PODS, {**made, "status": {**made["status"], **status}}, subresource="status")
        return made

    async def claim(self, claim: ClaimCase) -> None:
        metadata: dict[str, Any] = {"name": claim.name}
        if claim.owner:
            owner = {"apiVersion": "v1", "kind": "Pod", "name": claim.owner, "uid": uid_of(self.pods[claim.owner])}
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k"}}]}}
        made = await self.kube.create(RESOURCE_CLAIMS, {"metadata": metadata, "spec": spec}, namespace=self.case.name)
        if claim.results:
            status = {"allocation": {"devices": {"results": claim.results}}, **self.reserved(claim.users)}
            await self.kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")

    def reserved(self, users: Sequence[str]) -> dict[str, Any]:
        entries = [{"resource": "pods", "name": user, "uid": uid_of(self.pods[user])} for user in users]
        return {"reservedFor": entries} if entries else {}

    async def publish(self, taints: dict[str, Any]) -> None:
        current = await self.kube.get(RESOURCE_SLICES, f"{self.case.name}-slice")
        wanted = self.slice("slice", taints=taints)
        await self.kube.replace(RESOURCE_SLICES, {**current, "spec": wanted["spec"]})

    # --------------------------------------------------------------------------------------------------------- changing

    # Complex: one branch for each drawn change.
    async def change(self, what: str) -> None:  # noqa: C901
        first = f"{self.case.name}-r0"
        if what == "taint removed":
            await self.publish({})
        elif what == "taint softened":
            soft = {
                key: [{**each, "effect": "NoSchedule"} for each in taints] for key, taints in self.case.taints.items()
            }
            await self.publish(soft)
        elif what == "taint of another value":
            other = {key: [{**each, "value": "w"} for each in taints] for key, taints in self.case.taints.items()}
            await self.publish(other)
        elif what == "newer slice":
            await self.kube.create(RESOURCE_SLICES, self.slice("newer", generation=2))
        elif what == "slice deleted":
            await self.kube.delete(RESOURCE_SLICES, f"{self.case.name}-slice")
        elif what == "rule removed":
            await self.kube.delete(self.rules, first)
        elif what == "rule softened":
            await self.patch_rule(first, {"taint": {"effect": "NoSchedule"}})
        elif what == "rule for another device":
            await self.patch_rule(first, {"deviceSelector": {"device": "gpu-3"}})
        elif what == "rule evicts":
            await self.patch_rule(first, {"taint": {"effect": "NoExecute"}})
        elif what == "rule made anew":
            await self.kube.delete(self.rules, first)
            await self.kube.create(self.rules, {"metadata": {"name": first}, "spec": self.case.rules[first]})
        elif what.startswith("class"):
            await self.change_class(what)
        elif what.startswith("pod"):
            await self.change_pod(what)
        elif what.startswith("claim"):
            await self.change_claim(what)

    def taints_with(self, **changes: str) -> dict[str, Any]:
        return {key: [{**each, **changes} for each in taints] for key, taints in self.case.taints.items()}

    async def patch_rule(self, name: str, spec: dict[str, Any]) -> None:
        await self.kube.patch(self.rules, name, {"spec": spec}, kind=Patch.MERGE)

    async def change_class(self, what: str) -> None:
        others = {"selectors": [by("number >= 2", self.case.driver)]}
        if what == "class changed":
            await self.kube.patch(DEVICE_CLASSES, f"{self.case.name}-low", {"spec": others}, kind=Patch.MERGE)
        elif what == "class deleted":
            await self.kube.delete(DEVICE_CLASSES, f"{self.case.name}-low")
        elif what == "class made":
            await self.kube.create(DEVICE_CLASSES, {"metadata": {"name": f"{self.case.name}-new"}, "spec": others})

    async def change_pod(self, what: str) -> None:
        here = {name_of(pod): pod for pod in (await self.kube.list(PODS, namespace=self.case.name)).items}
        if what == "pod deleted" and "p0" in here:
            options = DeleteOptions(grace_period_s=0)
            await self.kube.delete(PODS, "p0", namespace=self.case.name, options=options)
        elif what == "pod bound":
            for name, pod in here.items():
                if not pod["spec"].get("nodeName"):
                    await self.kube.bind(self.case.name, name, "nowhere")

    async def change_claim(self, what: str) -> None:
        chosen = next((each for each in self.case.claims if each.results), None)
        if chosen is None:
            return
        claim = await self.kube.get(RESOURCE_CLAIMS, chosen.name, namespace=self.case.name)
        if what == "claim deleted":
            await self.kube.delete(RESOURCE_CLAIMS, chosen.name, namespace=self.case.name)
            return
        status = {} if what == "claim deallocated" else {**claim["status"], **self.reserved(["p0"])}
        if what == "claim for another pod" and chosen.users == ["p0"]:
            status.pop("reservedFor")
        await self.kube.replace(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")

    # ---------------------------------------------------------------------------------------------------------- looking

    async def look(self) -> dict[str, Any]:
        """Pods with the condition that says why they go, the events, and the rules' conditions; no times."""
        pods = (await self.kube.list(PODS, namespace=self.case.name)).items
        events = (await self.kube.list(EVENTS, namespace=self.case.name)).items
        rules = [rule for rule in (await self.kube.list(self.rules)).items if name_of(rule) in self.case.rules]
        said = Counter[str]()
        for event in (each for each in events if each["message"] not in self.untold):
            words = [event["source"]["component"], event["type"], event["reason"], event["message"]]
            said[" ".join([*words, event["involvedObject"]["name"]])] += event["count"]
        return {
            "pods": {
                name_of(pod): [is_deleting(pod), _timeless(condition_of(pod, "DisruptionTarget"))] for pod in pods
            },
            "events": dict(sorted(said.items())),
            "rules": {name_of(rule): [*map(_timeless, _conditions(rule))] for rule in rules},
            "writers": {name_of(rule): _writers(rule) for rule in rules},
        }


def _end_of(pod: Object) -> list[Any]:
    return [is_deleting(pod), _timeless(condition_of(pod, "DisruptionTarget"))]


def _conditions(rule: Object) -> Sequence[Any]:
    return (rule.get("status") or {}).get("conditions") or ()


def _timeless(condition: Any) -> Any:
    return condition and {key: value for key, value in condition.items() if key != "lastTransitionTime"}


def _writers(rule: Object) -> list[str]:
    """Who wrote the conditions, and how."""
    return sorted(
        f"{each['manager']} {each['operation']} {each.get('subresource')}"
        for each in rule["metadata"].get("managedFields") or ()
        if "f:conditions" in each["fieldsV1"].get("f:status", {})
    )


_PROBE = TaintCase(
    "probe",
    ["gpu-0"],
    [
        PodCase(
            "p",
            {
                "nodeName": "nowhere",
                "containers": [{"name": "m", "image": "x"}],
                "resourceClaims": [{"name": "e", "resourceClaimName": "c"}],
            },
            [],
        )
    ],
    [ClaimCase("c", [{"request": "r", "driver": "probe.example.com", "pool": "p", "device": "gpu-0"}], ["p"])],
)


async def _woken(kube: KubeApi, devices: DeviceFeatures) -> None:
    """Wait until the controller works: what it finds at its start it sees in an order that is nobody's."""
    stage = _Stage(kube, _PROBE, devices)
    await kube.create(NAMESPACES, {"metadata": {"name": "probe"}})
    tainted = {"gpu-0": [{"key": "a", "effect": "NoExecute"}]}
    await kube.create(RESOURCE_SLICES, stage.slice("slice", taints=tainted))
    stage.pods["p"] = await stage.pod(_PROBE.pods[0])
    await stage.claim(_PROBE.claims[0])
    ends_s = asyncio.get_running_loop().time() + _PATIENCE_S
    while not any(map(is_deleting, (await kube.list(PODS, namespace="probe")).items)):
        assert asyncio.get_running_loop().time() < ends_s, "the controller does not evict the first pod"
        await asyncio.sleep(0.1)


async def _played(
    kube: KubeApi, controller: Runnable, cases: Sequence[TaintCase], devices: DeviceFeatures
) -> dict[str, Seen]:
    running = asyncio.create_task(controller.run())
    try:
        await _woken(kube, devices)
        found = await asyncio.gather(*(_Stage(kube, case, devices).play() for case in cases))
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return {case.name: seen for case, seen in zip(cases, found, strict=True)}


def ours(cases: Sequence[TaintCase], release: ClusterRelease = RELEASE) -> dict[str, Seen]:
    """Our controller on our store."""
    devices = features_of(release)

    async def main() -> dict[str, Seen]:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), release=release))
        context = Context(kube, clock, stream(1, "controllers"), logging.getLogger("controllers"))
        controllers = ControllerManager(context, Pace(), controllers=[DEVICE_TAINTS], devices=devices)
        return await _played(kube, controllers, cases, devices)

    return run_virtual(main)


def theirs(cases: Sequence[TaintCase], folder: Path, release: ClusterRelease = RELEASE) -> dict[str, Seen]:
    """The real controller on the real control plane."""
    servers = Servers(release=release)

    async def main() -> dict[str, Seen]:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        program = kube_controller_manager(folder, kubeconfig, run=[DEVICE_TAINTS], release=release)
        assert program is not None
        kube = HttpKube(servers.url, token=identity.token, ssl=identity.client_context())
        try:
            return await _played(kube, program(Fence()), cases, features_of(release))
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()
