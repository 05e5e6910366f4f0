"""What the pool driver writes to the API: conditions of claims, and the slices of a pool."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError
from mews.kube.api.objects import Object, name_of, version_of
from mews.kube.api.resources import RESOURCE_CLAIMS, RESOURCE_SLICES
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.systems.pooldra import policy
from mews.systems.pooldra.claims import ClaimCondition, with_condition
from mews.systems.pooldra.config import PoolChassis, PoolDraConfig
from mews.systems.pooldra.errors import PoolDraError
from mews.systems.pooldra.offers import Device, OfferedSlice, device_of, lost_fields, own_slice_name, plan, slices_of
from mews.systems.pooldra.policy import Memory, Situation, Slot


class ConditionWriter:
    """Writes conditions into ``status.devices`` of claims."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def write(self, verdict: ClaimCondition) -> None:
        """Unless it is there already, or the claim has lost the device meanwhile.

        Raises ApiError, UnavailableError.
        """
        namespace, _, name = verdict.use.claim.partition("/")
        try:
            claim = await self._context.kube.get(RESOURCE_CLAIMS, name, namespace=namespace)
            stamp = self._context.clock.datetime().strftime("%Y-%m-%dT%H:%M:%SZ")
            devices = with_condition(claim, verdict, stamp)
            if devices is None:
                return
            changed = {**claim, "status": {**claim["status"], "devices": devices}}
            await self._context.kube.replace(RESOURCE_CLAIMS, changed, subresource="status")
        except (NotFoundError, ConflictError):
            return  # Its change comes round, and with it another look.
        record(
            self._context.log,
            "claim-told",
            claim=verdict.use.claim,
            device=verdict.use.device,
            condition=verdict.condition,
            reason=verdict.reason,
        )


class PoolSliceWriter:
    """Keeps the slices of one pool as they should be."""

    def __init__(self, context: Context, config: PoolDraConfig, chassis: PoolChassis, slices: Informer) -> None:
        self._context = context
        self._config = config
        self._chassis = chassis
        self._slices = slices
        self._written: dict[str, Object] = {}
        """Slices as they were answered, until the informer has them: a plan from what was before would undo itself."""
        self._deleted: set[str] = set()
        self._devices: dict[tuple[Slot, bool], Device] = {}
        slices.on_change(self._seen)

    def _seen(self, old: Object | None, new: Object | None) -> None:
        name = name_of(new or old or {})
        written = self._written.get(name)
        if new is None:
            self._deleted.discard(name)
        if written is not None and (new is None or version_of(new) >= version_of(written)):
            del self._written[name]

    def _there(self) -> dict[str, Object]:
        known = {name_of(each): each for each in self._slices.items()} | self._written
        ours = {name: each for name, each in known.items() if each["spec"]["pool"]["name"] == self._chassis.pool}
        return {name: each for name, each in ours.items() if name not in self._deleted}

    def offered(self) -> set[str] | None:
        """Return the devices of the pool's own slice by their names; None without one."""
        own = self._there().get(own_slice_name(self._chassis))
        return None if own is None else {str(each["name"]) for each in own["spec"].get("devices") or ()}

    async def write(self, situations: Sequence[Situation], memories: Mapping[str, Memory], now_s: float) -> None:
        """Offer what can be had.

        Raises ApiError, UnavailableError; PoolDraError where the API server knows no binding conditions.
        """
        wanted = self._wanted(situations, memories, now_s)
        there = self._there()
        state = plan(self._chassis, wanted, there)
        for body in state.written:
            await self._put(body, name_of(body) in there)
        for name in state.deleted:
            with contextlib.suppress(NotFoundError):
                await self._context.kube.delete(RESOURCE_SLICES, name)
            self._deleted.add(name)
            self._written.pop(name, None)

    def _wanted(
        self, situations: Sequence[Situation], memories: Mapping[str, Memory], now_s: float
    ) -> list[OfferedSlice]:
        pool: list[Slot] = []
        nodes: dict[str, list[Slot]] = {}
        for each in situations:
            memory = memories[each.slot.device]
            if policy.is_on_node(each, memory, now_s):
                nodes.setdefault(each.slot.node, []).append(each.slot)
            elif policy.is_offered(each, memory, now_s):
                pool.append(each.slot)
        return slices_of(self._chassis, pool, nodes, self._device_of)

    def _device_of(self, slot: Slot, on_node: bool) -> Device:
        """Made once: whether a slice is as it should be is asked more often than it changes."""
        key = Slot(slot.device, slot.uuid), on_node
        found = self._devices.get(key)
        if found is None:
            found = device_of(slot, self._chassis, self._config.attributes, on_node=on_node)
            self._devices[key] = found
        return found

    async def _put(self, body: Object, is_there: bool) -> None:
        kube = self._context.kube
        try:
            answer = await (kube.replace if is_there else kube.create)(RESOURCE_SLICES, body)
        except ApiError as error:
            # The informer is behind, or somebody else wrote: its change brings another look.
            record(self._context.log, "slice-unwritten", slice=name_of(body), error=str(error))
            raise
        self._written[name_of(answer)] = answer
        self._deleted.discard(name_of(answer))
        if lost := lost_fields(body, answer):
            raise PoolDraError(
                f"ResourceSlice {name_of(body)}: the API server dropped {', '.join(lost)}: it must be 1.36 or later, "
                "or have the feature gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus"
            )
        record(self._context.log, "slice-published", slice=name_of(body), devices=len(body["spec"]["devices"]))
