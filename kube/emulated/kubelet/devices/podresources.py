"""podresources v1 over the device manager (contract kubelet.md section 7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, Protocol

from msgspec.structs import replace

from mews.kube.api.objects import Object
from mews.kube.api.resource_claims import uses_claims
from mews.kube.deviceplugin.port import ContainerDevices, DynamicResource, PluginError, PodDevices
from mews.kube.emulated.kubelet.devices.manager import DeviceManager

Pod = Mapping[str, Any]


class ContainerClaims(Protocol):
    """What containers have by claims (``mews.kube.emulated.kubelet.dra.manager.DraManager``)."""

    def dynamic_resources(self, pod: Object, container: str) -> tuple[DynamicResource, ...]:
        """Return the claims of one container."""
        ...


class ManagerPodResources:
    """Implements PodResources. ``find_pod``: any pod that the kubelet knows, by namespace and name, else None;
    ``claims``: None where containers have none."""

    def __init__(
        self,
        manager: DeviceManager,
        *,
        find_pod: Callable[[str, str], Pod | None],
        claims: ContainerClaims | None = None,
    ) -> None:
        self._manager = manager
        self._find_pod = find_pod
        self._claims = claims
        self._shown: tuple[int, Sequence[Pod], tuple[PodDevices, ...]] = (-1, (), ())

    async def list(self) -> tuple[PodDevices, ...]:
        """List: active pods (none in the first second after a kubelet start), with or without devices; the same tuple
        as long as nothing changes. Frees those of ended pods."""
        pods = self._manager.collect()
        holdings, before, answer = self._shown
        if holdings != self._manager.holdings_version or len(pods) != len(before) or not all(map(is_, pods, before)):
            answer = tuple(self._manager.pod_devices(pod) for pod in pods)
            self._shown = (self._manager.holdings_version, pods, answer)
        if not any(uses_claims(dict(pod)) for pod in pods):
            return answer
        return tuple(map(self._with_claims, pods, answer))

    def _with_claims(self, pod: Pod, entry: PodDevices) -> PodDevices:
        if self._claims is None or not uses_claims(dict(pod)):
            return entry
        found = ((name, self._claims.dynamic_resources(dict(pod), name)) for name, _ in entry.containers)
        claims = tuple((name, each) for name, each in found if each)
        return replace(entry, claims=claims) if claims else entry

    async def get(self, name: str, namespace: str) -> PodDevices:
        """Get: rejected and ended pods too; frees nothing.

        Raises PluginError for a pod the kubelet does not know.
        """
        pod = self._find_pod(namespace, name)
        if pod is None:
            raise PluginError("Unknown", f"pod {name} in namespace {namespace} not found")
        return self._with_claims(pod, self._manager.pod_devices(pod))

    async def allocatable(self) -> tuple[ContainerDevices, ...]:
        """GetAllocatableResources: all healthy devices, one entry each."""
        return self._manager.allocatable_devices()
