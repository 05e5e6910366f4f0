"""What the pool driver knows, put together for each device of one chassis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from mews.kube.api.objects import Object, condition_of, uid_of
from mews.kube.client.informer import Informer
from mews.systems.pooldra.asks import StandingRequests
from mews.systems.pooldra.claims import Use, in_order, uses_of
from mews.systems.pooldra.config import PoolChassis, PoolDraConfig
from mews.systems.pooldra.names import ATTACHED, HandOver
from mews.systems.pooldra.policy import NodeView, Situation, Slot
from mews.systems.pooldra.records import PoolNodeReport, report_of
from mews.systems.pooldra.table import BelievedTable


class KnownUses:
    """The devices that claims have, of whatever pool or node: read once for all chassis, until a claim changes."""

    def __init__(self, claims: Informer) -> None:
        self._claims = claims
        self._read: list[Use] | None = None
        self._of_claims: dict[str, tuple[Object, list[Use]]] = {}
        claims.on_change(self._changed)

    def all(self) -> Sequence[Use]:
        """Return those of the earliest allocation first."""
        if self._read is None:
            before, self._of_claims = self._of_claims, {}
            for claim in self._claims.items():
                known = before.get(uid_of(claim))
                # A claim that has not changed is the object that it was.
                kept = known if known is not None and known[0] is claim else (claim, uses_of([claim]))
                self._of_claims[uid_of(claim)] = kept
            self._read = in_order(use for _, uses in self._of_claims.values() for use in uses)
        return self._read

    def _changed(self, old: Object | None, new: Object | None) -> None:
        self._read = None


class ChassisView:
    """What the pool driver knows of each device of one chassis. It remembers since when a node has not been ready."""

    def __init__(
        self,
        config: PoolDraConfig,
        chassis: PoolChassis,
        table: BelievedTable,
        *,
        nodes: Informer,
        slices: Informer,
        asks: StandingRequests,
    ) -> None:
        self._config = config
        self._chassis = chassis
        self._table = table
        self._nodes = nodes
        self._slices = slices
        self._asks = asks
        self._away_since_s: dict[str, float] = {}
        self._uuids: dict[str, str] = {}
        self._hosts = {port: node for node, port in chassis.ports.items()}
        self._ports = tuple(chassis.ports)
        self._pool = chassis.pool
        self._slots: tuple[int, list[Slot]] = (-1, [])
        """Those of the table's changes so far."""
        self._taken: tuple[Sequence[Use], Mapping[tuple[str, str], str], Mapping[str, Use]] = ((), {}, {})
        """Uses, the claims that have a device by its pool and name, and the first use of each device of this pool."""

    def dues(self, now_s: float) -> Iterator[float]:
        """Yield when nodes that are not ready will count as lost."""
        for since_s in self._away_since_s.values():
            if since_s + self._config.node_lost_s > now_s:
                yield since_s + self._config.node_lost_s

    def is_ours(self, use: Use) -> bool:
        """Return whether the device is of this chassis' pool."""
        return use.pool == self._pool

    def situations(self, uses: Sequence[Use], now_s: float) -> list[Situation]:
        """Return those of each device, in order of ID."""
        reports = {name: report_of(self._nodes.get(name)) or PoolNodeReport() for name in self._chassis.ports}
        nodes = {name: self._node(name, report, now_s) for name, report in reports.items()}
        if self._taken[0] is not uses:
            by_device = {(use.pool, use.device): use.claim for use in reversed(uses)}
            # A pod may be running with what its claim was told to have: no claim of the same second comes before it.
            ours = sorted(filter(self.is_ours, uses), key=lambda use: ATTACHED not in use.true)
            first = {use.device: use for use in reversed(ours) if not use.has_failed}
            self._taken = uses, by_device, first
        _, users, wanted = self._taken
        return [self._situation(slot, wanted, users, nodes, reports) for slot in self._known_slots()]

    def _situation(
        self,
        slot: Slot,
        wanted: Mapping[str, Use],
        users: Mapping[tuple[str, str], str],
        nodes: Mapping[str, NodeView],
        reports: Mapping[str, PoolNodeReport],
    ) -> Situation:
        shown = reports[slot.node].shown.get(slot.uuid, "") if slot.node else ""
        user = users.get((slot.node, shown), "") if shown else ""
        return Situation(slot, wanted.get(slot.name), user, nodes, self._ports, self._config.hand_over)

    def _known_slots(self) -> list[Slot]:
        """Return a device that has lost its UUID on the way is known by the one that it had."""
        if self._slots[0] != self._table.changes:
            self._slots = self._table.changes, self._made_slots()
        return self._slots[1]

    def _made_slots(self) -> list[Slot]:
        made = []
        for device, found in sorted(self._table.devices.items()):
            uuid = self._uuids.setdefault(device, found.uuid) if found.uuid else self._uuids.get(device, "")
            made.append(Slot(device, uuid, found.port, self._hosts.get(found.port or "", "")))
        return made

    def _node(self, name: str, report: PoolNodeReport, now_s: float) -> NodeView:
        found = self._nodes.get(name)
        ready = found is not None and is_ready(found)
        if ready:
            self._away_since_s.pop(name, None)
        else:
            self._away_since_s.setdefault(name, now_s)
        if self._config.hand_over is HandOver.REALLOCATE:
            # The claim is allocated anew from the node's slice: what is not in it has not arrived yet.
            offered = self._offered(name)
            report = replace(report, shown={uuid: own for uuid, own in report.shown.items() if uuid in offered})
        is_lost = now_s - self._away_since_s.get(name, now_s) >= self._config.node_lost_s
        return NodeView(ready, is_lost, report, self._asks.of(name))

    def _offered(self, node: str) -> set[str]:
        """Return the UUIDs of the devices in the slice of the node's driver."""
        own = [each for each in self._slices.items() if each["spec"]["pool"]["name"] == node]
        return {
            str(device["attributes"]["uuid"]["string"])
            for each in own
            for device in each["spec"].get("devices") or ()
            if "uuid" in (device.get("attributes") or {})
        }


def is_ready(node: Object) -> bool:
    """Return whether the node says of itself that it can run pods."""
    return (condition_of(node, "Ready") or {}).get("status") == "True"
