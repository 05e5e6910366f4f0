"""The kubelet's own API, as the API server uses it: logs and commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from mews.kube.api.errors import BadRequest, ServerError
from mews.kube.api.objects import name_of, namespace_of, uid_of
from mews.kube.client.port import ExecResult
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.errors import ExecRefused, NoSuchContainer


class EmulatedKubeletApi:
    """Logs and commands of the pods of one node; works as long as its container daemon does."""

    def __init__(self, containerd: Containerd) -> None:
        self._containerd = containerd

    async def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
    ) -> AsyncIterator[bytes]:
        """The container's log in chunks; with ``follow`` until the container ends.

        Raises BadRequest where there is none.
        """
        try:
            uid = self._uid(namespace, pod, container)
            chunks = self._containerd.log(uid, container, follows=follow, previous=previous, tail_lines=tail_lines)
        except NoSuchContainer as error:
            raise BadRequest(str(error)) from error
        async for chunk in chunks:
            yield chunk

    async def exec(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> ExecResult:
        """Run a command in a running container.

        Raises BadRequest (no such container), ServerError (a simulated one cannot play it).
        """
        try:
            return await self._containerd.exec(self._uid(namespace, pod, container), container, command)
        except NoSuchContainer as error:
            raise BadRequest(str(error)) from error
        except ExecRefused as error:
            raise ServerError(str(error)) from error

    def _uid(self, namespace: str, pod: str, container: str) -> str:
        for sandbox in reversed(self._containerd.sandboxes()):
            if (namespace_of(sandbox.pod), name_of(sandbox.pod)) == (namespace, pod):
                return uid_of(sandbox.pod)
        raise NoSuchContainer(f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating')
