"""What one kubelet's parts share, and the ports that it is given."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.clock import Pace
from mews.kube.component import Context
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.kubelet.container_hooks import ContainerHooks
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.dra.port import Claims
from mews.kube.emulated.kubelet.images import ImageBook
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal
from mews.kube.emulated.kubelet.status import StatusManager
from mews.kube.emulated.kubelet.timings import Span, Timings
from mews.kube.events import EventRecorder
from mews.kube.system.profile import Delay


class Devices(Protocol):
    """The device manager of this kubelet (``mews.kube.emulated.kubelet.devices``)."""

    async def admit(self, pod: Object, *, running: Collection[str] = ()) -> None:
        """Allocate for all containers but those that were running when the kubelet started.

        Raises AdmissionRejectedError.
        """
        ...

    def container_allocation(self, pod_uid: str, container: str) -> Allocation:
        """Return what the plugins gave to a container, over all resources."""
        ...

    async def pre_start(self, pod_uid: str, container: str) -> None:
        """PreStartContainer of every plugin that wants it.

        Raises PreStartError.
        """
        ...

    def node_resources(self) -> Mapping[str, tuple[int, int]]:
        """Resource -> (capacity, allocatable), for every resource that the manager knows."""
        ...


class Tools(Struct, frozen=True):
    """What the pod workers of one kubelet work with."""

    context: Context
    node: str
    host_ip: str
    pace: Pace
    timings: Timings
    images: ImageBook
    devices: Devices
    dra: Claims
    containerd: Containerd
    status: StatusManager
    events: EventRecorder
    note: KubeletJournal
    overhead: Callable[[Object], Delay]
    allocatable: Callable[[], Mapping[str, Any]]
    relist_phase_s: float
    began: float
    """When this kubelet started, in unix seconds."""
    hooks: ContainerHooks | None = None
    """What stands between this kubelet and its container runtime; None: nothing."""

    @property
    def rng(self) -> random.Random:
        """The stream of chance of this kubelet."""
        return self.context.rng

    def up_s(self) -> float:
        """Loop seconds since this kubelet started."""
        return self.context.clock.now() - self.began

    def span_s(self, span: Span) -> float:
        """Return a measured span, drawn, in loop seconds."""
        return self.pace.loop_s(span.draw(self.context.rng))

    async def sleep(self, span: Span) -> None:
        """Let a measured span pass."""
        await asyncio.sleep(self.span_s(span))

    def emulated_now(self) -> float:
        """Emulated seconds; only differences mean something."""
        return self.context.clock.now() * self.pace.speed

    def next_relist(self) -> float:
        """Return the loop time at which the kubelet next looks at its containers."""
        now = asyncio.get_running_loop().time()
        period_s = self.pace.loop_s(self.timings.relist_s)
        phase_s = self.pace.loop_s(self.relist_phase_s)
        return phase_s + (int((now - phase_s) // period_s) + 1) * period_s
