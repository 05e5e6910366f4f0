"""Keeps the node's object and lease: registration, the tick, the heartbeat (contract kubelet.md sections 2 and 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import AlreadyExistsError, ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, condition_of, labels_of, micro_timestamp, uid_of, version_of
from mews.kube.api.resources import LEASES, NODES
from mews.kube.client.port import Patch
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.node import NodeSpec, differs, new_node, status_of
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import node_reference

LEASE_NAMESPACE = "kube-node-lease"
LEASE_S = 40
_FAST_RETRY_S = 0.5
_TRIES = 5
"""So often a status or a lease is written at one tick (pkg/kubelet/kubelet.go ``nodeStatusUpdateRetry``,
k8s.io/component-helpers/apimachinery/lease ``maxUpdateRetries``)."""


class NodeAgent:
    """One kubelet's care of its Node and Lease."""

    def __init__(self, tools: Tools, spec: NodeSpec) -> None:
        self._tools = tools
        self._spec = spec
        self._kube = tools.context.kube
        self._node: Object = {}
        self._report_at = 0.0
        self._seen: tuple[int, Mapping[str, tuple[int, int]]] = (0, {})
        self._leased = False

    def allocatable(self) -> Mapping[str, Any]:
        """``status.allocatable`` of the Node as last seen."""
        return (self._node.get("status") or {}).get("allocatable") or {}

    def node(self) -> Object:
        """Return the Node as last seen; empty before the first look."""
        return self._node

    async def look_again(self) -> None:
        """Read the Node anew; as it was seen last where nobody answers."""
        try:
            self._node = await self._kube.get(NODES, self._spec.name)
        except (UnavailableError, ApiError) as error:
            self._tools.context.log.info("node %s cannot be read: %s", self._spec.name, error)

    async def register(self) -> None:
        """Make or adopt the Node; returns once the API took it and the first status is written."""
        tools = self._tools
        self._event("Starting", "Starting kubelet.")
        while True:
            try:
                fresh = await self._adopt()
                break
            except (UnavailableError, ApiError) as error:
                tools.context.log.info("node %s is not registered yet: %s", self._spec.name, error)
                await rest(_FAST_RETRY_S)
        for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"):
            self._event(reason, f"Node {self._spec.name} status is now: {reason}")
        self._event("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
        await tools.sleep(tools.timings.become_ready if fresh else tools.timings.first_status)
        await self._beat()

    async def _adopt(self) -> bool:
        """Return whether the Node is new."""
        wanted = new_node(self._spec, now=self._tools.context.clock.now())
        try:
            self._node = await self._kube.create(NODES, wanted, field_manager="kubelet")
            return True
        except AlreadyExistsError:
            self._node = await self._kube.get(NODES, self._spec.name)
        missing = {k: v for k, v in wanted["metadata"]["labels"].items() if labels_of(self._node).get(k) != v}
        if missing:
            change = {"metadata": {"labels": missing}}
            self._node = await self._kube.patch(NODES, self._spec.name, change, kind=Patch.MERGE)
        return False

    async def run(self) -> None:
        """Tick and renew, until cancelled."""
        while True:
            await rest(self._tools.span_s(self._tools.timings.tick))
            await self._beat()

    async def _beat(self) -> None:
        for part in (self.tick, self._renew):
            for _ in range(_TRIES):
                try:
                    await part()
                except NotFoundError:
                    await self._again()
                except (UnavailableError, ApiError) as error:
                    self._tools.context.log.info("heartbeat of node %s failed: %s", self._spec.name, error)
                    continue
                break

    async def _again(self) -> None:
        """The Node or the Lease was deleted under the kubelet: register anew."""
        self._leased = False
        try:
            await self._adopt()
        except (UnavailableError, ApiError) as error:
            self._tools.context.log.info("node %s cannot be registered again: %s", self._spec.name, error)

    async def tick(self) -> None:
        """Look at everything; write the status if something changed or the report is due."""
        tools, now = self._tools, self._tools.context.clock.now()
        self._node, devices = await self._kube.get(NODES, self._spec.name), tools.devices.node_resources()
        seen = (version_of(self._node), devices)
        if seen == self._seen and now < self._report_at:
            return
        before = self._node.get("status") or {}
        was_ready = (condition_of(self._node, "Ready") or {}).get("status") == "True"
        status = status_of(self._spec, devices, now=now, ready=True, before=before)
        changed = differs(status, before)
        if not changed and now < self._report_at:
            self._seen = seen
            return
        known, boot_id = (each.get("nodeInfo", {}).get("bootID", "") for each in (before, status))
        if known not in ("", boot_id):
            text = f"Node {self._spec.name} has been rebooted, boot id: {boot_id}"
            self._event("Rebooted", text, kind="Warning")
        if not was_ready:
            self._event("NodeReady", f"Node {self._spec.name} status is now: NodeReady")
        self._node = await self._kube.patch(
            NODES, self._spec.name, {"status": status}, kind=Patch.MERGE, subresource="status", field_manager="kubelet"
        )
        report_s = tools.timings.report_s * (tools.rng.uniform(0.5, 1.5) if changed else 1.0)
        self._report_at = now + tools.pace.loop_s(report_s)

    async def _renew(self) -> None:
        renewed = {"spec": {"renewTime": micro_timestamp(self._tools.context.clock.now())}}
        if self._leased:
            await self._kube.patch(LEASES, self._spec.name, renewed, kind=Patch.MERGE, namespace=LEASE_NAMESPACE)
            return
        name = self._spec.name
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(self._node)}
        metadata = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        lease = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata}
        lease["spec"] = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, **renewed["spec"]}
        try:
            await self._kube.create(LEASES, lease, namespace=LEASE_NAMESPACE)
        except AlreadyExistsError:
            change = {"metadata": {"ownerReferences": [owner]}, "spec": lease["spec"]}
            await self._kube.patch(LEASES, name, change, kind=Patch.MERGE, namespace=LEASE_NAMESPACE)
        self._leased = True

    def _event(self, reason: str, message: str, *, kind: str = "Normal") -> None:
        self._tools.events.event(node_reference(self._spec.name), kind, reason, message)
