"""podresources v1 over the device manager (contract kubelet.md section 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mews.kube.api.objects import is_terminal
from mews.kube.deviceplugin.port import ContainerDevices, PluginError, PodDevices
from mews.kube.emulated.kubelet.devices.manager import DeviceManager

Pod = Mapping[str, Any]


class ManagerPodResources:
    """Implements PodResources.

    ``active_pods``: Pending and Running pods (empty in the first second after a kubelet start); ``find_pod``: any pod
    that the kubelet knows, by namespace and name, else None.
    """

    def __init__(
        self,
        manager: DeviceManager,
        *,
        active_pods: Callable[[], Iterable[Pod]],
        find_pod: Callable[[str, str], Pod | None],
    ) -> None:
        self._manager = manager
        self._active_pods = active_pods
        self._find_pod = find_pod

    async def list(self) -> tuple[PodDevices, ...]:
        """List: active pods, with or without devices. Frees those of ended pods."""
        self._manager.collect()
        return tuple(self._manager.pod_devices(pod) for pod in self._active_pods() if not is_terminal(pod))

    async def get(self, name: str, namespace: str) -> PodDevices:
        """Get: rejected and ended pods too; frees nothing.

        Raises PluginError for a pod the kubelet does not know.
        """
        pod = self._find_pod(namespace, name)
        if pod is None:
            raise PluginError("Unknown", f"pod {name} in namespace {namespace} not found")
        return self._manager.pod_devices(pod)

    async def allocatable(self) -> tuple[ContainerDevices, ...]:
        """GetAllocatableResources: all healthy devices, one entry each."""
        return self._manager.allocatable_devices()
