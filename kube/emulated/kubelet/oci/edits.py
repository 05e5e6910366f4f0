"""What is done to a container before it starts, in the words of the Container Device Interface (CDI 0.8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from mews.kube.deviceplugin.port import ContainerHook, DeviceNode, Mount


class ContainerEdits(Struct, frozen=True):
    """Variables, mounts, device nodes and hooks that are added to a container; of equal places the last counts."""

    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    hooks: tuple[ContainerHook, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is changed."""
        return not (self.env or self.mounts or self.devices or self.hooks)


def combined(edits: Iterable[ContainerEdits]) -> ContainerEdits:
    """Return all of them, one after the other."""
    env: dict[str, str] = {}
    mounts: dict[str, Mount] = {}
    devices: dict[str, DeviceNode] = {}
    hooks: list[ContainerHook] = []
    for each in edits:
        env |= each.env
        mounts |= {mount.container_path: mount for mount in each.mounts}
        devices |= {device.container_path: device for device in each.devices}
        hooks += each.hooks
    return ContainerEdits(env, tuple(mounts.values()), tuple(devices.values()), tuple(hooks))
