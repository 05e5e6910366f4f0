"""Prepares the claims of pods with the drivers of this node, and unprepares them (pkg/kubelet/cm/dra/manager.go)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, containers_of, init_containers_of, name_of, namespace_of, uid_of
from mews.kube.api.resource_claims import (
    ClaimNotMadeError,
    allocation_of,
    claim_entries,
    claim_name,
    extended_claim_name,
    extended_mappings,
    is_generated,
    is_reserved_for,
    not_made_for,
    results_of,
    uses_claims,
)
from mews.kube.api.resources import RESOURCE_CLAIMS
from mews.kube.clock import Pace, rest
from mews.kube.component import Context
from mews.kube.deviceplugin.port import Allocation, ClaimDevice, DynamicResource, PluginError
from mews.kube.dra.cdi import UnresolvableDevicesError, injected
from mews.kube.dra.port import ClaimReference, DeviceHealth, DraRegistry, DraSocket
from mews.kube.emulated.kubelet.dra.claim_cache import ClaimInfo, cache_from
from mews.kube.emulated.kubelet.dra.errors import DraError
from mews.kube.emulated.kubelet.dra.health_cache import HealthCache
from mews.kube.emulated.kubelet.dra.health_status import with_health
from mews.kube.emulated.kubelet.dra.health_streams import HealthStreams
from mews.kube.emulated.kubelet.dra.plugins import DraPlugins
from mews.kube.emulated.kubelet.dra.state_store import DraStateStore, MemoryDraState
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal
from mews.kube.releases.feature_gates import FeatureGates

CALL_S = 45.0
"""What a driver has for one call."""
RECONCILE_S = 60.0
"""Between two looks at claims whose pods are gone."""
NOTHING = Allocation()
NO_GATES = FeatureGates()
"""Those of the default release."""


class DraManager:
    """Component: the DRA part of one kubelet. ``active_pods``: those that may hold devices; ``health_store`` keeps what
    is known of devices' health; ``wake`` is called with the uids of pods whose devices' health is another now."""

    def __init__(
        self,
        context: Context,
        pace: Pace,
        registry: DraRegistry,
        store: DraStateStore,
        *,
        node: str,
        active_pods: Callable[[], Sequence[Object]],
        note: KubeletJournal,
        gates: FeatureGates = NO_GATES,
        health_store: DraStateStore | None = None,
        wake: Callable[[Collection[str]], None] = lambda uids: None,
    ) -> None:
        self._context = context
        self._pace = pace
        self._registry = registry
        self._store = store
        self._active_pods = active_pods
        self._note = note
        self._wake = wake
        self._shows_messages = gates.on("ResourceHealthStatusMessage")
        self._shows_claims = gates.on("KubeletPodResourcesDynamicResources")
        self._health: HealthCache | None = None
        streams = None
        if gates.on("ResourceHealthStatus"):
            self._health = HealthCache(context.clock.now, pace, health_store or MemoryDraState(), context.log)
            streams = HealthStreams(context, pace, self._health, self._health_changed)
        self._plugins = DraPlugins(context, pace, registry, node, streams)
        self._cache = cache_from(store.load())
        self._filled = asyncio.Event()

    async def run(self) -> None:
        """Register drivers, and look after claims whose pods are gone, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._plugins.run())
            if self._cache.claims:
                self._filled.set()
            while True:
                await self._filled.wait()
                await rest(self._pace.loop_s(RECONCILE_S))
                await self._reconcile()
                if not self._cache.claims:
                    self._filled.clear()

    async def _reconcile(self) -> None:
        active = {uid_of(pod) for pod in self._active_pods()}
        gone = dict.fromkeys(uid for info in self._cache.claims.values() for uid in info.pods if uid not in active)
        for uid in gone:
            try:
                await self._unprepare(uid, self._cache.of_pod(uid))
            except DraError as failed:
                self._context.log.info("claims of pod %s not unprepared: %s", uid, failed)

    # --------------------------------------------------------------------------------------------------------- prepare

    async def prepare(self, pod: Object) -> None:
        """Have all claims of a pod ready, whether containers use them or not; those that are stay untouched.

        Raises DraError; what is ready by then stays so.
        """
        claims = [claim async for claim in self._claims(pod)]
        if not claims:
            return
        batches: dict[str, list[ClaimInfo]] = {}
        infos = [self._joined(claim, pod) for claim in claims]
        self._save()
        for info in infos:
            for driver in info.drivers if not info.prepared else ():
                batches.setdefault(driver, []).append(info)
        for driver in sorted(batches):
            await self._prepare_by(driver, batches[driver])
        for info in infos:
            info.prepared = True
        self._save()

    async def _claims(self, pod: Object) -> Any:
        """Yield every claim of the pod from the API, judged; nothing is changed by that."""
        for entry in claim_entries(pod):
            try:
                name = claim_name(pod, entry)
            except ClaimNotMadeError as missing:
                raise DraError(str(missing)) from missing
            if name is None:
                continue
            try:
                claim = await self._context.kube.get(RESOURCE_CLAIMS, name, namespace=namespace_of(pod))
            except (ApiError, UnavailableError) as failed:
                raise DraError(f"fetch ResourceClaim {name}: {failed}") from failed
            self._judge(pod, entry, claim)
            yield claim

    def _judge(self, pod: Object, entry: Mapping[str, Any], claim: Object) -> None:
        name, uid = name_of(claim), uid_of(claim)
        if is_generated(entry) and (why := not_made_for(pod, claim)):
            raise DraError(why)
        if not is_reserved_for(claim, uid_of(pod)):
            raise DraError(f"pod {name_of(pod)} ({uid_of(pod)}) is not allowed to use ResourceClaim {name} ({uid})")
        if allocation_of(claim) is None:
            raise DraError(f"ResourceClaim {name}: not allocated")
        for result in results_of(claim):
            self._plugins.plugin(str(result["driver"]))
        known = self._cache.get(namespace_of(claim), name)
        if known is not None and known.uid != uid:
            raise DraError(
                f"old ResourceClaim with same name {name} and different UID {known.uid} still exists "
                "(previous pod force-deleted?!)"
            )
        if known is not None and known.going:
            raise DraError(f"ResourceClaim {name} is being unprepared")

    def _joined(self, claim: Object, pod: Object) -> ClaimInfo:
        info = self._cache.get(namespace_of(claim), name_of(claim))
        if info is None:
            info = ClaimInfo(uid_of(claim), name_of(claim), namespace_of(claim))
            info.drivers = dict.fromkeys(str(result["driver"]) for result in results_of(claim))
            self._cache.add(info)
            self._filled.set()
        info.pods[uid_of(pod)] = None
        info.shared = frozenset(
            f"{result['driver']}/{result['pool']}/{result['device']}"
            for result in results_of(claim)
            if result.get("adminAccess") or result.get("shareID")
        )
        return info

    async def _prepare_by(self, driver: str, infos: Sequence[ClaimInfo]) -> None:
        plugin = self._plugins.plugin(driver)
        answers = await self._called(
            "NodePrepareResources", plugin, lambda: plugin.prepare([_reference(info) for info in infos])
        )
        by_uid = {info.uid: info for info in infos}
        for uid, answer in answers.items():
            if uid not in by_uid:
                raise DraError(f"NodePrepareResources returned result for unknown claim UID {uid}")
            info = by_uid[uid]
            if answer.error:
                raise DraError(f"NodePrepareResources failed for ResourceClaim {info.name}: {answer.error}")
            info.drivers[driver] = answer.devices
            devices = [f"{device.pool}/{device.device}" for device in answer.devices]
            alone = [device for device in devices if f"{driver}/{device}" not in info.shared]
            fields = {"uid": uid, "driver": driver, "devices": devices, "alone": alone}
            self._note("claim-prepared", claim=f"{info.namespace}/{info.name}", **fields)
        if len(answers) < len(infos):
            raise DraError(f"NodePrepareResources skipped {len(infos) - len(answers)} ResourceClaims")

    async def _called(self, method: str, plugin: DraSocket, call: Callable[[], Any]) -> Any:
        try:
            async with asyncio.timeout(self._pace.loop_s(CALL_S)):
                return await call()
        except TimeoutError as late:
            text = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
            raise DraError(f"{method}: {text}") from late
        except PluginError as failed:
            raise DraError(f"{method}: {failed}") from failed

    # ------------------------------------------------------------------------------------------------------- unprepare

    async def unprepare(self, pod: Object) -> None:
        """Give up the pod's claims; those that no other pod uses are unprepared.

        Raises DraError.
        """
        await self._unprepare(uid_of(pod), self._cache.of_pod(uid_of(pod)))

    async def _unprepare(self, pod_uid: str, infos: Sequence[ClaimInfo]) -> None:
        last: list[ClaimInfo] = []
        for info in infos:
            if len(info.pods) > 1:
                del info.pods[pod_uid]
            else:
                info.going = True
                last.append(info)
        if not infos:
            return
        batches: dict[str, list[ClaimInfo]] = {}
        for info in last:
            for driver in info.drivers:
                batches.setdefault(driver, []).append(info)
        for driver in sorted(batches):
            await self._unprepare_by(driver, batches[driver])
        for info in last:
            self._cache.drop(info)
        self._save()

    async def _unprepare_by(self, driver: str, infos: Sequence[ClaimInfo]) -> None:
        plugin = self._plugins.plugin(driver)
        answers = await self._called(
            "NodeUnprepareResources", plugin, lambda: plugin.unprepare([_reference(info) for info in infos])
        )
        by_uid = {info.uid: info for info in infos}
        for uid, failed in answers.items():
            if uid not in by_uid:
                raise DraError(f"NodeUnprepareResources returned result for unknown claim UID {uid}")
            info = by_uid[uid]
            if failed:
                raise DraError(f"NodeUnprepareResources failed for ResourceClaim {info.name}: {failed}")
            self._note("claim-unprepared", claim=f"{info.namespace}/{info.name}", uid=uid, driver=driver)
        if len(answers) < len(infos):
            raise DraError(f"NodeUnprepareResources skipped {len(infos) - len(answers)} ResourceClaims")

    # ------------------------------------------------------------------------------------------------------ containers

    def allocation(self, pod: Object, container: str) -> Allocation:
        """Return what the claims of a container give it.

        Raises StartError.
        """
        ids = list(self._ids(pod, container))
        if not ids:
            return NOTHING
        try:
            return injected(ids, self._registry.specs())
        except UnresolvableDevicesError as failed:
            text = f"failed to generate spec: {failed}"
            raise StartError("CreateContainerError", text) from failed

    def _ids(self, pod: Object, container: str) -> Iterator[str]:
        for name, request in _wanted(pod, container):
            info = self._cache.get(namespace_of(pod), name)
            if info is None:
                text = f"internal error: unable to get claim info for ResourceClaim {name}"
                raise StartError("CreateContainerConfigError", text)
            for driver in sorted(info.drivers):
                for device in info.drivers[driver] or ():
                    if not request or not device.requests or request in device.requests:
                        yield from device.cdi_ids

    def _save(self) -> None:
        self._store.save(self._cache.text())

    # --------------------------------------------------------------------------------------------------------- looking

    def dynamic_resources(self, pod: Object, container: str) -> tuple[DynamicResource, ...]:
        """Return a container's claims as podresources shows them: none at all where one of them is not known.

        A device shows the CDI devices of those before it, too: so does GetDynamicResources of
        pkg/kubelet/cm/container_manager_linux.go.
        """
        if not self._shows_claims or not uses_claims(pod):
            return ()
        try:
            infos = [self._cache.get(namespace_of(pod), name) for name in _used(pod, container)]
        except ClaimNotMadeError:
            return ()
        known = [info for info in infos if info is not None]
        return tuple(map(_dynamic, known)) if len(known) == len(infos) else ()

    @property
    def shows_health(self) -> bool:
        """Whether pods show the health of their devices."""
        return self._health is not None

    def with_health(self, pod: Object, status: dict[str, Any]) -> dict[str, Any]:
        """Return a pod's status with the health of its devices."""
        if self._health is None:
            return status
        return with_health(pod, status, self._cache, self._health.of, messages=self._shows_messages)

    def _health_changed(self, driver: str, devices: Sequence[DeviceHealth]) -> None:
        changed = {(each.pool, each.device) for each in devices}
        for each in devices:
            self._note("device-health", driver=driver, device=f"{each.pool}/{each.device}", health=each.health)
        users = {
            uid: None
            for info in self._cache.claims.values()
            for device in info.drivers.get(driver) or ()
            if (device.pool, device.device) in changed
            for uid in info.pods
        }
        self._wake(tuple(users))


def _wanted(pod: Object, container: str) -> Iterator[tuple[str, str]]:
    """Yield the claims that a container names or has for its extended resources, each with its request; "" for all."""
    entries = {entry["name"]: entry for entry in pod["spec"].get("resourceClaims") or ()}
    for each in (*init_containers_of(pod), *containers_of(pod)):
        if each["name"] == container:
            for wanted in (each.get("resources") or {}).get("claims") or ():
                name = claim_name(pod, entries[wanted["name"]])
                if name is not None:
                    yield name, str(wanted.get("request") or "")
    for mapping in extended_mappings(pod):
        if mapping["containerName"] == container:
            yield extended_claim_name(pod), str(mapping["requestName"])


def _reference(info: ClaimInfo) -> ClaimReference:
    return ClaimReference(info.namespace, info.uid, info.name)


def _used(pod: Object, container: str) -> Iterator[str]:
    """Yield the claims that a container uses, in the order of the pod's.

    Raises ClaimNotMadeError.
    """
    both = (*init_containers_of(pod), *containers_of(pod))
    resources = next((each.get("resources") or {} for each in both if each["name"] == container), {})
    wanted = {each["name"] for each in resources.get("claims") or ()}
    for entry in pod["spec"].get("resourceClaims") or ():
        name = claim_name(pod, entry) if entry["name"] in wanted else None
        if name is not None:
            yield name
    if any(mapping["containerName"] == container for mapping in extended_mappings(pod)):
        yield extended_claim_name(pod)


def _dynamic(info: ClaimInfo) -> DynamicResource:
    shown: list[ClaimDevice] = []
    for driver in sorted(info.drivers):
        ids: tuple[str, ...] = ()
        for device in info.drivers[driver] or ():
            ids += device.cdi_ids
            shown.append(ClaimDevice(driver, device.pool, device.device, ids, device.share))
    return DynamicResource(info.name, info.namespace, tuple(shown))
