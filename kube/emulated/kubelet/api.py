"""The kubelet's own API, as the API server uses it: logs, commands, attachments, ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import BadRequestError, ServerError
from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.client.port import ExecResult
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.errors import ExecRefusedError, NoSuchContainerError
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.probe import LIVENESS, READINESS, STARTUP
from mews.kube.emulated.kubelet.runtime import Process
from mews.kube.emulated.streaming.standard_streams import StreamSession

if TYPE_CHECKING:
    from mews.kube.emulated.streaming.port_forward import Dial
    from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage


_PROBES = (LIVENESS, READINESS, STARTUP)
_RESULTS = {True: "successful", False: "failed"}


class EmulatedKubeletApi:
    """Logs and commands of the pods of the node of that ``spec``; works as long as its container daemon does."""

    def __init__(self, containerd: Containerd, spec: NodeSpec) -> None:
        self._containerd = containerd
        self._spec = spec

    async def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the container's log in chunks; with ``follow`` until the container ends; ``since`` in unix seconds.

        Raises BadRequestError where there is none.
        """
        try:
            chunks = self._containerd.log(
                self._uid(namespace, pod, container),
                container,
                follows=follow,
                previous=previous,
                tail_lines=tail_lines,
                since=since,
                timestamps=timestamps,
                limit_bytes=limit_bytes,
            )
        except NoSuchContainerError as error:
            raise BadRequestError(str(error)) from error
        async for chunk in chunks:
            yield chunk

    async def exec(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> ExecResult:
        """Run a command in a running container.

        Raises BadRequestError (no such container), ServerError (a simulated one cannot play it).
        """
        try:
            return await self._containerd.exec(self._uid(namespace, pod, container), container, command)
        except NoSuchContainerError as error:
            raise BadRequestError(str(error)) from error
        except ExecRefusedError as error:
            raise ServerError(str(error)) from error

    def command(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> StreamSession:
        """Return a command in a running container, to be run with a client's streams.

        Raises ServerError where the container does not run.
        """
        process = self._running(namespace, pod, container)
        return lambda streams: process.run(command, streams)

    def attachment(self, namespace: str, pod: str, container: str) -> StreamSession:
        """Return a client's connection to the streams of a running container.

        Raises ServerError where the container does not run.
        """
        return self._running(namespace, pod, container).attach

    def ports(self, namespace: str, pod: str) -> Dial:
        """Return what connects to the ports of a pod.

        Raises ServerError where it is not there.
        """
        try:
            uid = self._uid(namespace, pod, "")
        except NoSuchContainerError as error:
            raise ServerError(f'pod not found ("{pod}_{namespace}")', reason="") from error
        return lambda port: self._containerd.dial(uid, port)

    def pods(self) -> Sequence[Object]:
        """Return the pods of this node, oldest first, as their sandboxes were made."""
        return [sandbox.pod for sandbox in self._containerd.sandboxes()]

    def addresses(self) -> Collection[str]:
        """Return the addresses of the pods of this node."""
        return {sandbox.ip for sandbox in self._containerd.sandboxes()}

    def usage(self) -> Sequence[PodUsage]:
        """Return what the pods of this node use."""
        return self._containerd.usage()

    def node_usage(self) -> ContainerUsage:
        """Return what the node uses as a whole."""
        return self._containerd.node_usage()

    async def summary(self, *, now: float, files: bool) -> Mapping[str, Any]:
        """Return node and pods as ``/stats/summary`` shows them, with ``files`` or CPU and memory alone."""
        from mews.kube.emulated.kubelet.summary import only_cpu_and_memory, summary

        node, usages, volumes = self._containerd.node_usage(), self._containerd.usage(), self._containerd.volumes
        if not files:
            return only_cpu_and_memory(summary(self._spec, node, usages, {}, now=now))
        held = {} if volumes is None else {uid_of(each.pod): await volumes.usage(each.pod) for each in usages}
        return summary(self._spec, node, usages, held, now=now)

    def probe_counts(self) -> Mapping[tuple[str, str, str, str, str, str], int]:
        """(namespace, pod, container, uid, type, result) of probes -> how often (pkg/kubelet/prober)."""
        return {
            (namespace_of(pod), name_of(pod), name, uid_of(pod), kind.capitalize(), _RESULTS[well]): count
            for pod, answers in self._containerd.answers()
            for (name, kind, well), count in answers.items()
            if kind in _PROBES
        }

    def _running(self, namespace: str, pod: str, container: str) -> Process:
        try:
            return self._containerd.running(self._uid(namespace, pod, container), container)
        except NoSuchContainerError as error:
            raise ServerError(f'container not found ("{container}")', reason="") from error

    def _uid(self, namespace: str, pod: str, container: str) -> str:
        for sandbox in reversed(self._containerd.sandboxes()):
            if (namespace_of(sandbox.pod), name_of(sandbox.pod)) == (namespace, pod):
                return uid_of(sandbox.pod)
        raise NoSuchContainerError(f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating')
