"""A running session made as a snapshot has it, by steps: each is done, journaled and recorded as a user's would be.

All that can be wrong with the snapshot is looked for before the first step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mews.harness.live.node_pin import pinned
from mews.harness.live.recording import ObjectRecording, placement_of
from mews.harness.live.scenario_file import stack_document
from mews.harness.live.snapshot import LATE, PlacedPod, Snapshot
from mews.harness.live.standing import StandingTroubles
from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.errors import CapabilityError
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.model import Scenario
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Resource
from mews.names import must_be

_PATIENCE_S = 300.0
_HOSTS_S = 120.0
_OURS = "node.kubernetes.io/"

StepFields = Mapping[str, Any]
"""A step as a scenario has it."""


class Restoration:
    """``await check()``, then ``await run()``. ``perform`` does one step: why it failed, "" where it did not."""

    def __init__(
        self,
        snapshot: Snapshot,
        scenario: Scenario,
        cluster: Cluster,
        recording: ObjectRecording,
        standing: StandingTroubles,
        perform: Callable[[StepFields], Awaitable[str]],
    ) -> None:
        self._snapshot = snapshot
        self._scenario = scenario
        self._cluster = cluster
        self._recording = recording
        self._standing = standing
        self._perform = perform

    # What is looked for beforehand

    async def check(self, check_step: Callable[[StepFields], object]) -> None:
        """``check_step`` raises ValueError for what is no step.

        Raises ValueError, in one line, for a snapshot of another session's sort, or one that cannot be.
        """
        snapshot = self._snapshot
        self._check_hardware(snapshot.as_scenario())
        table = await self._cluster.hardware.table()
        ports = {spec.name: spec.ports for spec in hardware_of(self._scenario).chassis}
        for chassis, rows in snapshot.table.items():
            for device, port in rows.items():
                if device not in table.get(chassis, {}):
                    raise ValueError(f"table.{chassis}.{device}: the session has no such device")
                if port is not None and port not in ports[chassis]:
                    raise ValueError(f"table.{chassis}.{device}: port {port!r}: {must_be(port, ports[chassis])}")
        gpuids = {str(row["gpuid"]) for rows in table.values() for row in rows.values()}
        hosts = {host.name for host in hardware_of(self._scenario).hosts}
        _check_known("telemetry", snapshot.telemetry, gpuids)
        _check_known("hosts", snapshot.hosts, hosts)
        _check_known("down", snapshot.down, self._cluster.components())
        nodes = {name_of(node) for node in (await self._cluster.kube.list(NODES)).items}
        _check_known("nodes", snapshot.nodes, nodes)
        _check_known("pods: node", [pod.node for pod in snapshot.pods if pod.node], nodes)
        steps = [*self._faults(), *self._settings(), *({"kill": name} for name in snapshot.down)]
        for step in (*steps, *({"apply": [obj]} for obj in snapshot.objects())):
            check_step(step)
        await self._check_objects()

    def _check_hardware(self, other: Scenario) -> None:
        mine, its = hardware_of(self._scenario), hardware_of(other)
        if (mine.hosts, mine.chassis) != (its.hosts, its.chassis):
            raise ValueError(f"hardware: {_sizes(its)}: differs from the session's: {_sizes(mine)}")
        here, there = stack_document(self._scenario), stack_document(other)
        differing = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
        if differing:
            raise ValueError(
                f"stack.{differing[0]}: differs from the session's: start another with mews up --snapshot FILE"
            )

    async def _check_objects(self) -> None:
        served = {(each.api_version, each.kind) for each in await self._cluster.kube.discovery()}
        namespaces = {name_of(each) for each in (await self._cluster.kube.list(NAMESPACES)).items}
        for obj in self._snapshot.objects():
            kind, spec = (obj.get("apiVersion"), obj.get("kind")), obj.get("spec") or {}
            if kind not in served:
                raise ValueError(
                    f"{obj.get('kind')} {name_of(obj)}: the session serves no {obj.get('apiVersion')} of that kind"
                )
            if namespace_of(obj) and namespace_of(obj) not in namespaces:
                raise ValueError(f"{obj['kind']} {name_of(obj)}: no namespace {namespace_of(obj)}")
            if obj["kind"] == "Namespace":
                namespaces.add(name_of(obj))
            if obj["kind"] == "CustomResourceDefinition":
                group, names = spec["group"], spec["names"]
                served |= {(f"{group}/{version['name']}", names["kind"]) for version in spec["versions"]}

    # The steps

    async def run(self) -> list[str]:
        """Return why it is not as it was, in the order in which it was tried; a step that is refused ends it."""
        self._recording.restoring = True
        problems: list[str] = []
        try:
            for part in (self._clear, self._restore_hardware, self._restore_objects):
                async for step in part():
                    reason = await self._perform(step)
                    if reason:
                        problems.append(reason)
                    if reason and "wait" not in step:
                        return problems
        finally:
            self._recording.restoring = False
        return problems

    async def _clear(self) -> Any:
        """Yield nothing of users', no faults, all components there."""
        yield {"fault": {"clear": "all"}}
        for name in sorted(self._down()):
            yield {"start": name}
        for node in self._recording.nodes():
            if body := _untouched(node):
                yield _patch_of(node, body)
        there = self._recording.objects()
        there.sort(key=lambda each: each[0].kind not in LATE)
        for resource, obj in there:
            yield {"delete": {**_target(resource, obj), "wait": False, "missingOk": True}}
        pods = [pod for pod in (await self._cluster.kube.list(PODS)).items if _is_made_by_controller(pod)]
        pods = [pod for pod in pods if namespace_of(pod) not in self._recording.ignored]
        gone = [*_gone(there), *_gone([(PODS, pod) for pod in pods if there])]
        if gone:
            yield {"wait": gone, "timeout": _PATIENCE_S}
        if any(
            one["set"] for devices in (await self._cluster.hardware.telemetry()).values() for one in devices.values()
        ):
            yield {"telemetry": {"set": {"all": "none"}}}

    def _down(self) -> list[str]:
        """Return those that are down; what was not killed is not harmed by a start."""
        return [name for name in self._cluster.components() if name in self._standing.down]

    async def _restore_hardware(self) -> Any:
        table = await self._cluster.hardware.table()
        moved = [
            (chassis, device, port)
            for chassis, rows in self._snapshot.table.items()
            for device, port in rows.items()
            if table[chassis][device]["port"] != port
        ]
        for chassis, device, _ in moved:
            if table[chassis][device]["port"] is not None:
                yield {"chassis": {"edit": {"chassis": chassis, "device": device, "port": None}}}
        for chassis, device, port in moved:
            if port is not None:
                yield {"chassis": {"edit": {"chassis": chassis, "device": device, "port": port}}}
        for step in self._settings():
            yield step
        if self._scenario.stack.pooled is not None and moved:
            yield {"wait": {"settled": {}}, "timeout": _HOSTS_S}
        if any(self._snapshot.hosts.values()):
            for step in await self._host_steps():
                yield step

    def _settings(self) -> list[StepFields]:
        return [{"telemetry": {"device": gpuid, "set": values}} for gpuid, values in self._snapshot.telemetry.items()]

    def _faults(self) -> list[StepFields]:
        return [{"fault": fault} for fault in self._snapshot.faults]

    async def _host_steps(self) -> list[StepFields]:
        """Return what an operator does to get each device from how it is to how it was."""
        with suppress(CapabilityError):
            views = await self._cluster.hardware.hosts()
            return [
                {"host": {"host": host, "device": gpuid, **action}}
                for host, devices in self._snapshot.hosts.items()
                for gpuid, was in devices.items()
                if gpuid in views.get(host, {}).get("devices", {})
                for action in _operations(views[host]["devices"][gpuid], was)
            ]
        return []

    # Complex: steps in their order, left out where nothing is to be done.
    async def _restore_objects(self) -> Any:  # noqa: C901
        snapshot = self._snapshot
        if snapshot.early:
            yield {"apply": list(snapshot.early)}
        if waits := list(await self._early_waits()):
            yield {"wait": waits, "timeout": _PATIENCE_S}
        bound = [pod for pod in snapshot.pods if pod.node]
        if bound:
            yield {"apply": [pinned(pod.object, pod.node) for pod in bound]}
        if waits := list(_pod_waits(bound)):
            yield {"wait": waits, "timeout": _PATIENCE_S}
        if snapshot.others:
            yield {"apply": list(snapshot.others)}
        if snapshot.ready:
            yield {"wait": list(snapshot.ready), "timeout": _PATIENCE_S}
        for node in self._recording.nodes():
            if name_of(node) in snapshot.nodes:
                yield _patch_of(node, _changed(node, snapshot.nodes[name_of(node)]))
        for step in (*self._faults(), *({"kill": name} for name in snapshot.down)):
            yield step
        if waiting := [pod.object for pod in snapshot.pods if not pod.node]:
            yield {"apply": waiting}
        if snapshot.late:
            yield {"apply": list(snapshot.late)}

    async def _early_waits(self) -> Iterator[dict[str, Any]]:
        accounts = False
        with suppress(NotFoundError):
            accounts = bool(await self._cluster.kube.get(SERVICE_ACCOUNTS, "default", namespace="default"))
        return iter(_early_waits(self._snapshot.early, accounts))


def _check_known(place: str, names: Any, known: Any) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{place} {name!r}: {must_be(name, sorted(known))}")


def _sizes(hardware: Any) -> str:
    devices = sum(len(spec.devices) for spec in hardware.chassis)
    counts = f"{len(hardware.hosts)} hosts, {len(hardware.chassis)} chassis, {devices} devices"
    return f"{hardware.name or 'unnamed'} ({counts})"


def _target(resource: Resource, obj: Object) -> dict[str, Any]:
    namespace = namespace_of(obj) if resource.namespaced else None
    return {"kind": resource.kind, "apiVersion": resource.api_version, "name": name_of(obj), "namespace": namespace}


def _gone(objects: Sequence[tuple[Resource, Object]]) -> Iterator[dict[str, Any]]:
    names: dict[Resource, list[str]] = {}
    for resource, obj in objects:
        names.setdefault(resource, []).append(name_of(obj))
    for resource, found in names.items():
        kind = {"kind": resource.kind, "apiVersion": resource.api_version, "namespace": None}
        yield {"count": {**kind, "is": 0, "matching": {"metadata": {"name": {"$in": sorted(found)}}}}}


def _is_made_by_controller(obj: Object) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("kind") != "Node" for owner in owners)


def _early_waits(objects: Sequence[Object], accounts: bool) -> Iterator[dict[str, Any]]:
    """Until kinds are served, and pods may be made in namespaces."""
    for obj in objects:
        if obj["kind"] == "CustomResourceDefinition":
            conditions = {"$contains": [{"type": "Established", "status": "True"}]}
            named = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": name_of(obj)}}
            yield {"object": {**named, "status": {"conditions": conditions}}}
        elif obj["kind"] == "Namespace" and accounts:
            named = {"name": "default", "namespace": name_of(obj)}
            yield {"object": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named}}


def _pod_waits(pods: Sequence[PlacedPod]) -> Iterator[dict[str, Any]]:
    for pod in pods:
        named = {"name": name_of(pod.object), "namespace": namespace_of(pod.object), "node": pod.node}
        yield {"pod": {**named, **({"phase": "Running", "ready": pod.ready} if pod.running else {"scheduled": True})}}


def _untouched(node: Object) -> dict[str, Any]:
    """Return the patch that takes away what users made of the node; {} where that is nothing."""
    placed = placement_of(node)
    labels = dict.fromkeys(placed.get("labels", {}))
    spec: dict[str, Any] = {"unschedulable": None} if placed.get("unschedulable") else {}
    if "taints" in placed:
        spec["taints"] = _own_taints(node)
    return {**({"metadata": {"labels": labels}} if labels else {}), **({"spec": spec} if spec else {})}


def _changed(node: Object, placed: Mapping[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"unschedulable": True} if placed.get("unschedulable") else {}
    if "taints" in placed:
        spec["taints"] = [*_own_taints(node), *placed["taints"]]
    labels = {"metadata": {"labels": placed["labels"]}} if "labels" in placed else {}
    return {**labels, **({"spec": spec} if spec else {})}


def _own_taints(node: Object) -> list[Any]:
    return [taint for taint in (node.get("spec") or {}).get("taints") or () if taint["key"].startswith(_OURS)]


def _patch_of(node: Object, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"patch": {"kind": "Node", "name": name_of(node), "namespace": None, "body": dict(body)}}


def _operations(now: Mapping[str, Any], was: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for field, do in (("draining", "drain"), ("persistence", "persistence")):
        if now[field] != was[field]:
            yield {"do": do, "on": bool(was[field])}
    if now["power"] != was["power"]:
        yield {"do": "power", "on": bool(was["power"])}
    elif was["power"] and now["stage"] != was["stage"]:
        removed, is_removed = was["stage"] == "link", now["stage"] == "link"
        if removed is not is_removed:
            yield {"do": "remove"} if removed else {"do": "rescan"}
        elif now["driver"] and not was["driver"]:
            yield {"do": "unbind"}
        elif was["driver"] and not now["driver"]:
            yield {"do": "bind"}
