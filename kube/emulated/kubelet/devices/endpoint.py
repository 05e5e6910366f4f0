"""A resource's plugin as the kubelet holds it (upstream endpoint.go): calls, and how long it has been gone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from mews.kube.deviceplugin.port import Allocation, DevicePlugin, PluginError, PluginOptions
from mews.kube.emulated.kubelet.devices.errors import DeviceAllocationError

GRACE_S = 300.0
"""How long a gone plugin's resource stays on the node (contract kubelet.md section 2), in emulated seconds."""

PRE_START_DEADLINE_S = 30.0


class ResourceEndpoint:
    """The newest registration of one resource, or what a checkpoint says was one: then ``plugin`` is None, and no
    optional call is made until the plugin is back."""

    def __init__(self, resource: str, plugin: DevicePlugin | None, options: PluginOptions) -> None:
        self.resource = resource
        self._plugin = plugin
        self._options = options
        self._stopped_at_s: float | None = None
        self._text = f"endpoint {resource} has been stopped"

    @property
    def wants_preference(self) -> bool:
        """Whether GetPreferredAllocation is to be called."""
        return self._options.preferred_allocation_available

    @property
    def wants_pre_start(self) -> bool:
        """Whether PreStartContainer is to be called."""
        return self._options.pre_start_required

    def stop(self, now_s: float, rng: random.Random) -> None:
        """The plugin is gone as of now. The text carries a Go struct's addresses, as upstream's does."""
        self._stopped_at_s = now_s
        api, wall, elapsed = rng.getrandbits(28) << 4, rng.getrandbits(63), rng.getrandbits(40)
        self._text = (
            f"endpoint &{{{{{{}} {{0 0}}}} {self.resource} 0xc0{api:08x} {{{wall} {elapsed} 0x542ac20}} <nil>}} "
            "has been stopped"
        )

    def expired(self, now_s: float) -> bool:
        """Return whether the plugin has been gone for longer than the grace period."""
        return self._stopped_at_s is not None and now_s - self._stopped_at_s > GRACE_S

    async def prefer(self, available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
        """GetPreferredAllocation. Raises DeviceAllocationError with the whole text."""
        try:
            return await self._live().preferred_allocation(available, must_include, size)
        except (PluginError, DeviceAllocationError) as error:
            raise DeviceAllocationError(f"device plugin GetPreferredAllocation rpc failed with err: {error}") from error

    async def allocate(self, ids: Sequence[str]) -> tuple[Allocation, ...]:
        """Allocate for one container. Raises PluginError, or DeviceAllocationError when stopped."""
        return await self._live().allocate([ids])

    async def pre_start(self, ids: Sequence[str]) -> None:
        """PreStartContainer with its deadline. Raises PluginError, or DeviceAllocationError when stopped."""
        try:
            async with asyncio.timeout(PRE_START_DEADLINE_S):
                await self._live().pre_start(ids)
        except TimeoutError as error:
            raise PluginError("DeadlineExceeded", "context deadline exceeded") from error

    def _live(self) -> DevicePlugin:
        if self._plugin is None or self._stopped_at_s is not None:
            raise DeviceAllocationError(self._text)
        return self._plugin
