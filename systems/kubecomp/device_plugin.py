"""The device plugin that a kubelet sees: lists what the node announces, hands devices out by UUID."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from mews.kube.component import record
from mews.kube.deviceplugin.port import Allocation, PluginError, PluginOptions
from mews.kube.deviceplugin.registration import AnnouncedDevices, first_by_id
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.node_devices import NodeDevices

OPTIONS = PluginOptions(pre_start_required=True)


class PooledPlugin:
    """``DevicePlugin`` over a node's book. ``on_grant`` hears which GPUIDs Allocate handed out."""

    def __init__(
        self,
        config: KubeCompConfig,
        book: NodeDevices,
        on_grant: Callable[[Sequence[str]], None],
        log: logging.Logger,
    ) -> None:
        self._config = config
        self._book = book
        self._on_grant = on_grant
        self._log = log
        self._list = AnnouncedDevices()
        self.publish = self._list.publish
        self.list_and_watch = self._list.stream

    async def options(self) -> PluginOptions:
        """PreStartContainer is wanted, preferred allocation is not offered (contract kubecomp.md section 1)."""
        return OPTIONS

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """Not offered; the first by GPUID for a kubelet that asks all the same."""
        return first_by_id(available, must_include, size)

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """Per container the GPUIDs and the UUIDs, comma-joined in the order of the request.

        Raises PluginError for a device that is withdrawn, unknown or unhealthy: nothing is handed out then.
        """
        for gpuid in (gpuid for ids in requests for gpuid in ids):
            if not self._config.has(KubeCompFault.UNKNOWN_ID):
                self._check(gpuid)
        for ids in requests:
            record(self._log, "allocated", devices=list(ids))
            self._on_grant(ids)
        return tuple(self._allocation(ids) for ids in requests)

    def _allocation(self, ids: Sequence[str]) -> Allocation:
        extra = self._config.allocate
        own = {
            self._config.device_env: ",".join(ids),
            self._config.uuid_env: ",".join(self._book.uuid(gpuid) for gpuid in ids),
        }
        return Allocation(envs={**extra.envs, **own}, mounts=extra.mounts)

    async def pre_start(self, devices: Sequence[str]) -> None:
        """Nothing to prepare, but a container must not start on a device that is not here any more."""
        for gpuid in devices:
            if not self._config.has(KubeCompFault.UNKNOWN_ID):
                self._check(gpuid)

    def _check(self, gpuid: str) -> None:
        reason = self._book.why_not(gpuid)
        if reason is not None:
            record(self._log, "allocation-refused", device=gpuid, reason=reason)
            raise PluginError("FailedPrecondition", f"{self._config.resource} device {gpuid} {reason}")
