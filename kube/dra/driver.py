"""A driver of fifteen lines: what it must do besides is done here.

::

    class Fans:
        name = "fan.example.com"

        async def devices(self):
            return [{"name": f"fan-{n}", "attributes": {"speed": {"int": 3000}}} for n in range(4)]

        async def prepare(self, claim, results):
            env = [f"FANS={','.join(result['device'] for result in results)}"]
            return {"containerEdits": {"env": env}}

        async def unprepare(self, claim):
            pass

``DriverComponent(context, Fans(), link=node.dra, node=node.name)`` serves it, publishes its devices as one slice of a
pool named after the node, writes the CDI file of each claim, and answers a claim that is prepared again as before.

A driver that knows how its devices are has one method more::

        async def health(self):
            return {"fan-0": unwell("it does not turn"), "fan-1": WELL}

It is asked after each look at the devices; the kubelet shows the answer in the status of the pods that use them.
Taints belong to ``devices``; a cluster that knows none drops them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, name_of, uid_of, version_of
from mews.kube.api.resource_claims import PREPARED, UNPREPARED, allocation_of, results_of
from mews.kube.api.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import PluginError
from mews.kube.dra.cdi import JOINED, device_id
from mews.kube.dra.port import (
    HEALTHY,
    UNHEALTHY,
    CdiSpec,
    ClaimReference,
    DeviceHealth,
    DraLink,
    PreparedClaim,
    PreparedDevice,
)
from mews.kube.pulse import Pulse

Result = Mapping[str, Any]
"""One device of an allocation, as the claim's status has it."""

_NOTED = ("request", "pool", "device", "shareID", "adminAccess")
_REPAIR_S = 3.7
"""Measured: a slice that somebody deleted is there again after so long."""
_RETRY_S = 1.0
_BELIEVED_S = 60.0
"""What was written counts so long before a watch has shown it (defaultMutationCacheTTL of
d/resourceslice/resourceslicecontroller.go): a watch that is late must not lead to a second slice."""
_REPORT_S = 10.0
"""Health that stays as it is is reported again so often: a kubelet believes a report for thirty seconds."""
_Devices = list[dict[str, Any]]


class DriverError(Exception):
    """A claim cannot be prepared or unprepared: the text is for whoever looks at its pod."""


class DraDriver(Protocol):
    """What differs between drivers."""

    @property
    def name(self) -> str:
        """A DNS subdomain, such as ``gpu.example.com``."""
        ...

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        """Return the devices of this node as a ResourceSlice has them: ``name``, ``attributes``, ``capacity``."""
        ...

    async def prepare(self, claim: Object, results: Sequence[Result]) -> Mapping[str, Any]:
        """Have the devices of a claim ready. The answer: ``containerEdits`` for each container that uses the claim, and
        ``devices``, name -> ``containerEdits`` of one device alone; either may be left out. ``joined`` names the
        variables whose values a container gets of all its devices, by commas.

        Raises DriverError.
        """
        ...

    async def unprepare(self, claim: ClaimReference) -> None:
        """Nobody uses the claim any more; it may be gone from the API.

        Raises DriverError.
        """
        ...


class Condition(Struct, frozen=True):
    """How one device is: healthy, broken or unknown, and why."""

    healthy: bool
    message: str = ""


WELL = Condition(healthy=True)


def unwell(message: str) -> Condition:
    """Return a device that is broken, and why."""
    return Condition(healthy=False, message=message)


@runtime_checkable
class HealthyDriver(Protocol):
    """A driver that knows how its devices are."""

    async def health(self) -> Mapping[str, Condition]:
        """Return the condition of devices, by name; that of the others is unknown."""
        ...


class DriverComponent:
    """Component: one incarnation of a driver on one node. What it prepared it knows by the CDI files."""

    def __init__(
        self, context: Context, driver: DraDriver, *, link: DraLink, node: str, poll_s: float | None = None
    ) -> None:
        self._context = context
        self._driver = driver
        self._link = link
        self._node = node
        self._poll_s = poll_s
        self._changed = Pulse()
        self._health: tuple[DeviceHealth, ...] = ()
        self._health_changed = Pulse()
        self._published: tuple[_Devices, _Devices] = ([], [])
        """What was written last, and what the API made of it: it drops fields, and sets the times of taints."""
        self._written: Object | None = None
        self._believed_until = 0.0
        self._prepared: dict[str, PreparedClaim] = {}
        self._admins: dict[str, None] = {}
        """Claims with administrators' access: they keep no device from others."""
        fields = f"spec.driver={driver.name},spec.nodeName={node}"
        self._slices = Informer(context.kube, RESOURCE_SLICES, field_selector=fields)

    async def run(self) -> None:
        """Serve and publish until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._slices.run())
            await self._slices.synced()
            self._recover()
            endpoint = await self._link.serve(self._driver.name, self)
            try:
                self._slices.on_change(self._slice_changed)
                # A pod whose claim cannot be prepared yet is tried again a minute later.
                await endpoint.registered()
                while True:
                    await self._publish()
                    await self._examine()
                    await self._changed.wait(self._poll_s)
            finally:
                await endpoint.close()

    def look_again(self) -> None:
        """The devices may be others now."""
        self._changed.beat()

    # -------------------------------------------------------------------------------------------------------- publish

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is None:
            if self._written is not None and uid_of(old) == uid_of(self._written):
                self._written = None
            self._later(_REPAIR_S)
        elif new is not None and len(self._own()) > 1:
            self._changed.beat()

    def _later(self, delay_s: float) -> None:
        asyncio.get_running_loop().call_later(delay_s, self._changed.beat)

    async def _publish(self) -> None:
        try:
            devices = [dict(each) for each in await self._driver.devices()]
            known = self._known_slice()
            await self._delete_others(known)
            if known is not None and devices_in(known) in (devices, *self._shown_of(devices)):
                return
            if known is not None:
                timed = _with_times(devices, devices_in(known))
                changed = {**known, "spec": {**known["spec"], "devices": timed}}
                answer = await self._context.kube.replace(RESOURCE_SLICES, changed)
            else:
                answer = await self._context.kube.create(RESOURCE_SLICES, await self._slice(devices))
            self._believe(answer)
            self._published = (devices, devices_in(answer))
            record(self._context.log, "slice-published", driver=self._driver.name, devices=len(devices))
        except (ApiError, UnavailableError, DriverError) as failed:
            if isinstance(failed, NotFoundError):
                self._written = None  # deleted before a watch showed it
            self._context.log.info("devices of %s not published: %s", self._driver.name, failed)
            self._later(_RETRY_S)

    def _believe(self, written: Object) -> None:
        self._written = written
        self._believed_until = asyncio.get_running_loop().time() + _BELIEVED_S
        self._later(_BELIEVED_S)

    def _own(self) -> list[Object]:
        """Return the slices of the node's own pool: another pool's may have a slice of this driver on the node."""
        return [each for each in self._slices.items() if each["spec"]["pool"]["name"] == self._node]

    def _known_slice(self) -> Object | None:
        """Return the slice of this node's pool: as it was written here, until a watch shows something newer."""
        shown = next(iter(self._own()), None)
        written = self._written
        if written is None or asyncio.get_running_loop().time() >= self._believed_until:
            return shown
        seen = self._slices.get(name_of(written))
        return written if seen is None or version_of(seen) < version_of(written) else seen

    async def _delete_others(self, kept: Object | None) -> None:
        """Two slices make the pool invalid: an earlier incarnation wrote it, and an old listing did not show it."""
        for other in [each for each in self._own() if kept is not None and uid_of(each) != uid_of(kept)]:
            with contextlib.suppress(NotFoundError):
                await self._context.kube.delete(RESOURCE_SLICES, name_of(other))

    async def _slice(self, devices: list[dict[str, Any]]) -> Object:
        node = await self._context.kube.get(NODES, self._node)
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": uid_of(node), "controller": True}
        metadata = {"generateName": f"{self._node}-{self._driver.name}-", "ownerReferences": [owner]}
        pool = {"name": self._node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": self._driver.name, "nodeName": self._node, "pool": pool, "devices": devices}
        return {"metadata": metadata, "spec": spec}

    def _shown_of(self, devices: _Devices) -> tuple[_Devices, ...]:
        written, shown = self._published
        return (shown,) if written == devices else ()

    # --------------------------------------------------------------------------------------------------------- health

    @property
    def reports_health(self) -> bool:
        """Whether the driver has a method for that."""
        return isinstance(self._driver, HealthyDriver)

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """NodeWatchResources: whenever a device's health changes, and from time to time."""
        while True:
            yield self._health
            await self._health_changed.wait(_REPORT_S)

    async def _examine(self) -> None:
        if not isinstance(self._driver, HealthyDriver):
            return
        try:
            conditions = await self._driver.health()
        except DriverError as failed:
            self._context.log.info("health of %s not known: %s", self._driver.name, failed)
            return
        health = tuple(
            DeviceHealth(self._node, name, HEALTHY if each.healthy else UNHEALTHY, each.message)
            for name, each in sorted(conditions.items())
        )
        if health != self._health:
            self._health = health
            broken = [each.device for each in health if each.health == UNHEALTHY]
            record(self._context.log, "health-changed", driver=self._driver.name, unhealthy=broken)
            self._health_changed.beat()

    # -------------------------------------------------------------------------------------------------------- the calls

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        """NodePrepareResources; a claim that the API does not have fails the whole call.

        Raises PluginError.
        """
        found = [(claim, await self._read(claim)) for claim in claims]
        return {claim.uid: self._noted(claim, await self._prepare_one(claim, body)) for claim, body in found}

    def _noted(self, claim: ClaimReference, answer: PreparedClaim) -> PreparedClaim:
        """Return the answer, after a record of it."""
        if not answer.error:
            devices = [f"{each.pool}/{each.device}" for each in answer.devices]
            own = () if claim.uid in self._admins else answer.devices
            alone = [f"{each.pool}/{each.device}" for each in own if not each.share]
            self._record(PREPARED, claim, devices=devices, alone=alone)
        return answer

    def _record(self, event: str, claim: ClaimReference, **fields: Any) -> None:
        where = f"{claim.namespace}/{claim.name}"
        record(self._context.log, event, claim=where, uid=claim.uid, driver=self._driver.name, **fields)

    async def _read(self, reference: ClaimReference) -> Object:
        where = f"{reference.namespace}/{reference.name}"
        try:
            claim = await self._context.kube.get(RESOURCE_CLAIMS, reference.name, namespace=reference.namespace)
        except (ApiError, UnavailableError) as failed:
            raise PluginError("Unknown", f"retrieve claim {where}: {failed}") from failed
        if uid_of(claim) != reference.uid:
            raise PluginError("Unknown", f"claim {where} got replaced")
        if allocation_of(claim) is None:
            raise PluginError("Unknown", f"claim {where} not allocated")
        return claim

    async def _prepare_one(self, reference: ClaimReference, claim: Object) -> PreparedClaim:
        known = self._prepared.get(reference.uid)
        if known is not None:
            return known
        results = [result for result in results_of(claim) if result["driver"] == self._driver.name]
        for result in results:
            other = self._holder(str(result["device"]))
            if other and not result.get("adminAccess"):
                text = f"requested device {result['device']} is already allocated to different claim {other}"
                return PreparedClaim(error=text)
        try:
            edits = await self._driver.prepare(claim, results)
        except DriverError as failed:
            return PreparedClaim(error=str(failed))
        spec = self._spec(reference.uid, results, edits)
        self._link.cdi.write(self._file(reference.uid), spec)
        return self._know(spec)

    def _holder(self, device: str) -> str:
        """Return the claim that has the device to itself, "" for none."""
        for uid, prepared in self._prepared.items():
            if any(each.device == device and not each.share for each in prepared.devices) and uid not in self._admins:
                return uid
        return ""

    def _spec(self, uid: str, results: Sequence[Result], edits: Mapping[str, Any]) -> CdiSpec:
        own: Mapping[str, Any] = edits.get("devices") or {}
        joined = frozenset(edits.get("joined") or ())
        devices = [
            {
                "name": f"{uid}-{result['device']}",
                "annotations": {name: str(result[name]) for name in _NOTED if name in result},
                "containerEdits": _with_others(result, results, own, joined),
            }
            for result in results
        ]
        common = edits.get("containerEdits") or {}
        noted = {"claim": uid, **({JOINED: ",".join(sorted(joined))} if joined else {})}
        return {
            "cdiVersion": "0.6.0",
            "kind": self._kind,
            "annotations": noted,
            "devices": devices,
            "containerEdits": common,
        }

    def _answer(self, spec: CdiSpec) -> PreparedClaim:
        """Return what was answered when the file was written."""
        return PreparedClaim(tuple(self._device(each["name"], each["annotations"]) for each in spec["devices"]))

    def _device(self, name: str, noted: Mapping[str, str]) -> PreparedDevice:
        request = noted["request"].partition("/")[0]
        ids = (device_id(self._kind, name),)
        return PreparedDevice(noted["pool"], noted["device"], (request,), ids, noted.get("shareID", ""))

    def _recover(self) -> None:
        """What an earlier incarnation prepared."""
        for spec in self._link.cdi.files().values():
            if spec.get("kind") == self._kind and "claim" in (spec.get("annotations") or {}):
                self._know(spec)

    def _know(self, spec: CdiSpec) -> PreparedClaim:
        uid = str(spec["annotations"]["claim"])
        self._prepared[uid] = self._answer(spec)
        if any("adminAccess" in each["annotations"] for each in spec["devices"]):
            self._admins[uid] = None
        return self._prepared[uid]

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """NodeUnprepareResources."""
        return {claim.uid: await self._unprepare_one(claim) for claim in claims}

    async def _unprepare_one(self, claim: ClaimReference) -> str:
        try:
            await self._driver.unprepare(claim)
        except DriverError as failed:
            return str(failed)
        self._prepared.pop(claim.uid, None)
        self._admins.pop(claim.uid, None)
        self._link.cdi.remove(self._file(claim.uid))
        self._record(UNPREPARED, claim)
        return ""

    @property
    def _kind(self) -> str:
        return f"k8s.{self._driver.name}/claim"

    def _file(self, uid: str) -> str:
        return f"k8s.{self._driver.name}-claim_{uid}.json"


def devices_in(slice_: Object) -> _Devices:
    """Return a slice's devices; a kube-apiserver has null where there are none."""
    return list(slice_["spec"].get("devices") or ())


def _with_times(devices: _Devices, before: _Devices) -> _Devices:
    """Taints that were there before keep the time at which they were added (copyTaintTimeAdded of
    d/resourceslice/resourceslicecontroller.go)."""
    times = {
        (device["name"], taint["key"], taint.get("value"), taint["effect"]): taint["timeAdded"]
        for device in before
        for taint in device.get("taints") or ()
        if taint.get("timeAdded")
    }
    return [_with_times_of_taints(device, times) for device in devices]


def _with_times_of_taints(device: dict[str, Any], times: Mapping[tuple[Any, ...], str]) -> dict[str, Any]:
    if not device.get("taints"):
        return device
    timed = []
    for taint in device["taints"]:
        added = times.get((device["name"], taint["key"], taint.get("value"), taint["effect"]))
        timed.append(taint if added is None else {"timeAdded": added, **taint})
    return {**device, "taints": timed}


def _with_others(
    result: Result, results: Sequence[Result], own: Mapping[str, Any], joined: frozenset[str]
) -> Mapping[str, Any]:
    """Return the edits of one device. A variable that is joined has the values of all devices of its request: a
    container runtime gives a container the last value that its devices have."""
    edits: Mapping[str, Any] = own.get(result["device"]) or {}
    if not joined or not edits.get("env"):
        return edits
    values: dict[str, dict[str, None]] = {}
    for each in results:
        if each["request"] == result["request"]:
            for name, value in _pairs(own.get(each["device"]) or {}):
                values.setdefault(name, {})[value] = None
    env = [f"{name}={','.join(values[name]) if name in joined else value}" for name, value in _pairs(edits)]
    return {**edits, "env": env}


def _pairs(edits: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (str(each).partition("=") for each in edits.get("env") or ())]
