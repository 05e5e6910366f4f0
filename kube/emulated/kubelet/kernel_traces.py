"""What the kernel knows of a container that is a process, and what the container leaves when it ends."""

from __future__ import annotations

from pathlib import Path

from mews.kube.api.quantities import whole
from mews.kube.emulated.kubelet.cgroups import Cgroup, Resources
from mews.kube.emulated.kubelet.errors import StartError


class KernelTraces:
    """Of the container of that name: its control ``group``, where limits hold, and the file at its
    ``terminationMessagePath``, where it has one."""

    def __init__(self, name: str = "", group: Cgroup | None = None, message: Path | None = None) -> None:
        self._name = name
        self._group = group
        self._message = message
        self.killed_for_memory = False
        """Whether the kernel has killed one of its processes, since it needed more memory than it may have; known once
        it has ended."""

    def last_words(self) -> bytes:
        """Return what it has left in its file for them."""
        try:
            return b"" if self._message is None else self._message.read_bytes()
        except OSError:
            return b""

    def limit(self, resources: Resources) -> None:
        """Let other limits hold, where the kernel knows any.

        Raises StartError where they cannot.
        """
        if self._group is None:
            return
        try:
            self._check(self._group, resources)
            self._group.limit(resources)
        except OSError as error:
            raise StartError("RunContainerError", f"limits: {error.strerror}") from error

    def _check(self, group: Cgroup, resources: Resources) -> None:
        """As a kubelet does (validateMemoryResizeAction of pkg/kubelet/kuberuntime/kuberuntime_manager.go)."""
        wanted = (resources.get("limits") or {}).get("memory")
        used = 0 if wanted is None else group.memory()
        if wanted is not None and used >= whole(wanted):
            text = f'container "{self._name}" memory limit ({whole(wanted)}) below current usage ({used})'
            raise StartError("RunContainerError", f"cannot decrease memory limits: attempting to set {text}")

    def end(self) -> None:
        """Its processes have ended."""
        if self._group is not None:
            self.killed_for_memory = self._group.is_killed_for_memory()

    def remove(self) -> None:
        """It is gone."""
        if self._group is not None:
            self._group.remove()
