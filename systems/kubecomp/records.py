"""What KubeComp's components tell each other through the API, one writer each (contract kubecomp.md section 1).

ConfigMaps in the namespace ``kubecomp``; every value is JSON text:

- ``pool-<pool>`` (Reconfig-Mgr): ``devices`` (see ``PoolDevice``), ``free``, ``nodes`` [name].
- ``node-<node>`` (that node's DevMgr): ``report`` {announced, unhealthy, held, refused, and where there are any
  reasons, removing, lent, releasing, divided, strays}, ``consents``, ``heartbeat``.
- ``withdraw-<node>`` (Reconfig-Mgr): ``requests`` {GPUID: {request, until}}.
- ``reconfig-journal`` (Reconfig-Mgr): per GPUID the ``Intent`` that is under way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from mews.kube.api.objects import Object, name_of
from mews.systems.kubecomp.policy import Consent

JOURNAL = "reconfig-journal"
POOL_PREFIX = "pool-"
NODE_PREFIX = "node-"
WITHDRAW_PREFIX = "withdraw-"

USE_FALCON = "use_falcon"
DST_NODE = "dst_node"
GPU_DEMAND = "gpu_demand"
DEMAND = "demand"
ANNOTATIONS = (USE_FALCON, DST_NODE, GPU_DEMAND, DEMAND)
"""``gpu_demand`` is the public code's name, ``demand`` the paper's: both are written and read."""

EVENT_REASON = "Reconfig"


REFUSAL_REASON = "ReconfigRefused"
"""The reason of the event on a pod for which a host did not give up a device."""


def refusal_message(gpuid: str, node: str, reason: str) -> str:
    """Return that event's text."""
    return f"{gpuid} cannot be taken from {node}: {reason}"


def event_message(pod: str) -> str:
    """Return the Reconfig event's text."""
    return f"Pod {pod} needs reconfiguration"


class PoolDevice(Struct, frozen=True):
    """One device of a pool; ``node`` is "" and ``port`` None while it is unattached."""

    gpuid: str
    chassis: str
    device: str
    uuid: str
    port: str | None
    node: str


class PoolState(Struct, frozen=True):
    """A pool as Reconfig-Mgr last read it; ``free`` = all devices less all requests on the pool's nodes, which are
    ``nodes``: its devices can be moved to each of them."""

    devices: tuple[PoolDevice, ...] = ()
    free: int = 0
    nodes: tuple[str, ...] = ()


class RemovedDevice(Struct, frozen=True):
    """A device that its host is giving up, or has given up and may get back: what it needs to be found again and to be
    as it was. Written before the first step, gone once it is announced again or is another host's."""

    uuid: str
    bdf: str
    bridge: str = ""
    persistence: bool = False


class NodeReport(Struct, frozen=True):
    """What a node's DevMgr says: healthy GPUIDs it announces, unhealthy ones, holders (GPUID -> pod), consents
    (GPUID -> Consent), refusals (GPUID -> request) and the reasons of those that the host made, what the host is giving
    up, and when (unix s) it last said so. ``lent``: GPUID -> how many pods use parts of it, of those that any uses;
    ``releasing``: GPUID -> until when (unix s) these may take to go. ``divided``: of the unhealthy ones, those in MIG
    mode; they may be moved. ``strays``: what the host shows although the node's chassis put it elsewhere."""

    announced: tuple[str, ...] = ()
    unhealthy: tuple[str, ...] = ()
    held: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    consents: Mapping[str, Consent] = field(default_factory=dict)
    heartbeat_s: float = 0.0
    reasons: Mapping[str, str] = field(default_factory=dict)
    removing: Mapping[str, RemovedDevice] = field(default_factory=dict)
    lent: Mapping[str, int] = field(default_factory=dict)
    releasing: Mapping[str, float] = field(default_factory=dict)
    divided: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()

    def is_fresh(self, now_s: float, stale_s: float) -> bool:
        """Return whether the last heartbeat is recent enough to be believed."""
        return now_s - self.heartbeat_s <= stale_s

    def repeats(self, before: NodeReport) -> bool:
        """Return whether nothing but the heartbeat is new."""
        return replace(before, heartbeat_s=self.heartbeat_s) == self


class WithdrawRequest(Struct, frozen=True):
    """Reconfig-Mgr's wish that a device be withdrawn; it lapses at ``until_s`` (unix s) unless renewed."""

    request: str
    until_s: float


class Intent(Struct, frozen=True):
    """One move under way, written before its first change and removed after its last was read back.

    ``origin`` is the port it came from (None: it was unattached), ``target`` the port it goes to.
    """

    pool: str
    request: str
    gpuid: str
    chassis: str
    device: str
    origin: str | None
    origin_node: str
    target: str
    target_node: str
    pod: str
    uid: str


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _load(obj: Object | None, key: str) -> Any:
    return _read(((obj or {}).get("data") or {}).get(key))


def _read(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def pool_data(state: PoolState) -> dict[str, str]:
    """``data`` of ``pool-<pool>``."""
    devices = [
        {
            "gpuid": device.gpuid,
            "chassis": device.chassis,
            "device": device.device,
            "uuid": device.uuid,
            "port": device.port,
            "node": device.node,
        }
        for device in state.devices
    ]
    return {"devices": _dump(devices), "free": str(state.free), "nodes": _dump(state.nodes)}


def pool_state(obj: Object | None) -> PoolState | None:
    """Return the state in a ``pool-<pool>`` object, or None when it is absent or cannot be read."""
    devices = _load(obj, "devices")
    if not isinstance(devices, list):
        return None
    free = _load(obj, "free")
    nodes = tuple(_load(obj, "nodes") or ())
    return PoolState(tuple(PoolDevice(**entry) for entry in devices), free if isinstance(free, int) else 0, nodes)


def report_data(report: NodeReport) -> dict[str, str]:
    """``data`` of ``node-<node>``."""
    body: dict[str, Any] = {
        "announced": list(report.announced),
        "unhealthy": list(report.unhealthy),
        "held": dict(report.held),
        "refused": dict(report.refused),
    }
    if report.reasons:
        body["reasons"] = dict(report.reasons)
    if report.removing:
        body["removing"] = {gpuid: asdict(entry) for gpuid, entry in report.removing.items()}
    if report.lent:
        body["lent"] = dict(report.lent)
    if report.releasing:
        body["releasing"] = {gpuid: round(until_s, 3) for gpuid, until_s in report.releasing.items()}
    if report.divided:
        body["divided"] = list(report.divided)
    if report.strays:
        body["strays"] = list(report.strays)
    consents = {g: {"request": c.request, "time": round(c.time_s, 3)} for g, c in report.consents.items()}
    return {"report": _dump(body), "consents": _dump(consents), **heartbeat_data(report)}


def heartbeat_data(report: NodeReport) -> dict[str, str]:
    """Return what of ``data`` of ``node-<node>`` is new each time."""
    return {"heartbeat": _dump(round(report.heartbeat_s, 3))}


def node_report(obj: Object | None) -> NodeReport | None:
    """Return the report in a ``node-<node>`` object, or None when it is absent or cannot be read."""
    report = report_without_heartbeat(obj)
    return None if report is None else replace(report, heartbeat_s=float(_load(obj, "heartbeat") or 0.0))


def report_without_heartbeat(obj: Object | None) -> NodeReport | None:
    """Return the same for whoever does not mind how old it is: the very same report as long as nothing else is new."""
    data = (obj or {}).get("data") or {}
    return _report(data.get("report"), data.get("consents"))


@lru_cache(maxsize=4096)
def _report(text: str | None, consents_text: str | None) -> NodeReport | None:
    """Read once for all that hear of it, and not again with each heartbeat; nobody may change what is in it."""
    body = _read(text)
    if not isinstance(body, dict):
        return None
    consents = _read(consents_text) or {}
    return NodeReport(
        announced=tuple(body.get("announced", ())),
        unhealthy=tuple(body.get("unhealthy", ())),
        held=body.get("held", {}),
        refused=body.get("refused", {}),
        consents={gpuid: Consent(entry["request"], entry["time"]) for gpuid, entry in consents.items()},
        reasons=body.get("reasons", {}),
        removing={gpuid: RemovedDevice(**entry) for gpuid, entry in body.get("removing", {}).items()},
        lent=body.get("lent", {}),
        releasing=body.get("releasing", {}),
        divided=tuple(body.get("divided", ())),
        strays=tuple(body.get("strays", ())),
    )


def withdraw_data(requests: Mapping[str, WithdrawRequest]) -> dict[str, str]:
    """``data`` of ``withdraw-<node>``."""
    body = {gpuid: {"request": r.request, "until": round(r.until_s, 3)} for gpuid, r in requests.items()}
    return {"requests": _dump(body)}


def withdraw_requests(obj: Object | None) -> dict[str, WithdrawRequest]:
    """GPUID -> request in a ``withdraw-<node>`` object; none when it is absent."""
    body = _load(obj, "requests") or {}
    return {gpuid: WithdrawRequest(entry["request"], entry["until"]) for gpuid, entry in sorted(body.items())}


def intent_data(intent: Intent) -> str:
    """Return an intent as the journal's text."""
    return _dump(asdict(intent))


def intents(obj: Object | None) -> dict[str, Intent]:
    """GPUID -> intent in the journal object; none when it is absent."""
    found = {}
    for gpuid in sorted((obj or {}).get("data") or {}):
        entry = _load(obj, gpuid)
        if isinstance(entry, dict):
            found[gpuid] = Intent(**entry)
    return found


def node_of_report(obj: Object) -> str | None:
    """Return the node that a ``node-<node>`` object speaks for, None for other objects."""
    name = name_of(obj)
    return name.removeprefix(NODE_PREFIX) if name.startswith(NODE_PREFIX) else None


def node_of_requests(obj: Object) -> str | None:
    """Return the node that a ``withdraw-<node>`` object speaks to, None for other objects."""
    name = name_of(obj)
    return name.removeprefix(WITHDRAW_PREFIX) if name.startswith(WITHDRAW_PREFIX) else None
