"""Watches pods and the nodes' agents, and writes what the kubelets do into the journal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import aiohttp

from mews.harness.clusters.real.access import AgentClient, Gate
from mews.harness.clusters.real.kubelet_lines import CLAIM_EVENTS, KubeletLines, words_of
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.ports.cluster import DEVICE_ENV
from mews.harness.watch_feed import Feed, WatchRecord
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import (
    Object,
    containers_of,
    init_containers_of,
    name_of,
    namespace_of,
    node_name_of,
    requests_of,
    uid_of,
)
from mews.kube.api.resources import PODS
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.deviceplugin.port import PluginError, PodDevices
from mews.kube.emulated.kubelet.users import DeviceUsers
from mews.kube.runtimehook.places import PROXY

log = logging.getLogger(__name__)

Visible = Callable[[str, Sequence[str]], Awaitable[Sequence[str]]]
"""Of a host, by the words of a container's environment: the UUIDs of the GPUs that it sees."""

_AGAIN_S = 0.2
_ALLOCATION_S = 5.0
_KNOWS_S = 20.0
_TRIES = 25


class Nodes:
    """All hosts' kubelets. ``hosts`` maps hosts to nodes; ``records`` takes what the ``component`` logs beside which
    their agents are; pods of the namespaces ``ignored`` are no news. ``users``: whom a host is told by who uses its
    devices. On the hosts ``hooked`` containers have devices by what an agent of the node put into their environment,
    and everywhere those of resource claims by what the claims' drivers did; ``visible`` finds the GPUs of that, by
    host."""

    def __init__(
        self,
        gate: Gate,
        kube: KubeApi,
        journal: Journal,
        *,
        hosts: Mapping[str, str],
        records: Journal,
        component: str = "",
        ignored: Collection[str] = (),
        users: Callable[[str], DeviceUsers | None] = lambda host: None,
        hooked: Collection[str] = (),
        visible: Visible | None = None,
    ) -> None:
        self._hooked = frozenset(hooked)
        self._visible = visible
        self._gate = gate
        self._kube = kube
        self._records = records
        self._component = component
        self._ignored = frozenset(ignored)
        self._hosts = {node: host for host, node in hosts.items()}
        self._lines = {host: KubeletLines(journal, host, users(host)) for host in hosts}
        self._agents: dict[str, AgentClient] = {}
        self._feed = Feed(kube, PODS, self._see)
        self._tasks: list[asyncio.Task[None]] = []
        self._asking: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Watch the pods."""
        self._tasks.append(asyncio.create_task(self._feed.run(), name="kubelet-pods"))
        await self._feed.synced()

    async def follow(self, host: str, namespace: str, pod: str, token: str) -> None:
        """Listen to that host's agent, in that pod, from now on: what an earlier scenario did is no news.

        Raises RequirementError where it does not answer.
        """
        agent = self._agents[host] = AgentClient(self._gate, namespace, pod, token)
        last = await self._seq(agent)
        self._tasks.append(asyncio.create_task(self._listen(host, agent, last), name=f"agent/{host}"))

    async def _seq(self, agent: AgentClient) -> int:
        for _ in range(_TRIES):
            try:
                return await agent.seq()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                answer = f"{type(error).__name__}: {error}"
            await rest(_AGAIN_S)
        raise RequirementError(f"agent {agent.pod} does not answer: {answer}")

    async def pod_resources(self, host: str) -> tuple[PodDevices, ...]:
        """podresources List of that host's kubelet, told after all that is known to have started there.

        Raises PluginError.
        """
        if self._asking:
            await asyncio.wait(self._asking, timeout=_ALLOCATION_S)
        agent = self._agents.get(host)
        if agent is None:
            raise PluginError("Unavailable", f"no agent runs on {host}")
        return await agent.pod_resources()

    async def users_known(self) -> None:
        """Return once it is known what all containers with devices see that run by now, or after a while: looking into
        them takes a moment."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _ALLOCATION_S
        while loop.time() < deadline_s:
            pods = (await self._kube.list(PODS)).items
            waiting = any(
                node_name_of(pod) in self._hosts
                and namespace_of(pod) not in self._ignored
                and not self._lines[self._hosts[node_name_of(pod)]].knows(pod)
                for pod in pods
            )
            if not waiting and not self._asking:
                return
            await rest(_AGAIN_S)

    async def knows_pods(self, host: str) -> None:
        """Return once a kubelet that was started tells of all pods there that hold devices, or after a while: it reads
        its file at once, and hears of its pods a moment later."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _KNOWS_S
        while host in self._agents and loop.time() < deadline_s:
            with contextlib.suppress(PluginError):
                reported = {
                    f"{pod.namespace}/{pod.name}" for pod in await self.pod_resources(host) if _has_devices(pod)
                }
                if self._lines[host].holders() <= reported:
                    return
            await rest(_AGAIN_S)

    async def close(self) -> None:
        """Stop it all."""
        tasks = [*self._tasks, *self._asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(agent.close() for agent in self._agents.values()))

    async def _listen(self, host: str, agent: AgentClient, last: int) -> None:
        lines = self._lines[host]
        while True:
            try:
                if await agent.seq() < last:
                    last = 0  # it was started anew
                async for event in agent.events(last):
                    last = int(event["seq"])
                    self._on_agent_event(host, lines, event)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                log.info("agent of %s: %s", host, error)
            await rest(_AGAIN_S)

    def _on_agent_event(self, host: str, lines: KubeletLines, event: Mapping[str, Any]) -> None:
        if event["event"] == "checkpoint":
            lines.checkpoint(event["entries"], event["registered"])
            return
        record = event["record"]
        lines.record(record)
        if record.get("actor") == PROXY:
            return
        note(self._records, f"{self._component}/{host}", record)

    def on_record(self, component: str, record: Mapping[str, Any]) -> None:
        """A component with no agent beside it has logged that in its pod; ``component`` ends with its host, if it has
        one."""
        lines = self._lines.get(component.partition("/")[2])
        if lines is not None and record.get("event") in CLAIM_EVENTS:
            lines.record(record)

    def _see(self, sight: WatchRecord) -> None:
        pod = sight.new if sight.new is not None else sight.old
        lines = self._lines.get(self._hosts.get(node_name_of(pod or {}), ""))
        if pod is None or lines is None or namespace_of(pod) in self._ignored:
            return
        if sight.new is None:
            lines.gone(pod)
            return
        lines.pod(pod)
        status = pod.get("status") or {}
        for each in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
            begun = str(each.get("containerID") or "")
            state = each.get("state") or {}
            if begun and "waiting" not in state and lines.started(pod, each["name"], begun):
                asking = asyncio.create_task(self._started(lines, pod, each["name"]))
                self._asking.add(asking)
                asking.add_done_callback(self._asking.discard)

    async def _started(self, lines: KubeletLines, pod: Object, container: str) -> None:
        """Write that a container started, with what its process sees; by then its allocation must have been told."""
        asks, claims = _asks_devices(pod, container), _has_claims(pod, container)
        if not asks and not claims:
            lines.running(pod, container, {})
            return
        host = self._hosts[node_name_of(pod)]
        if host in self._hooked or not asks:
            env = await self._environment(lines, pod, container)
            gpus = [] if self._visible is None else await self._visible(host, words_of(env))
            lines.running(pod, container, env, hooked=(DEVICE_ENV,), gpus=gpus)
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ALLOCATION_S
        while not lines.given(uid_of(pod), container) and loop.time() < deadline:
            await rest(0.05)
        lines.running(pod, container, await self._environment(lines, pod, container))

    async def _environment(self, lines: KubeletLines, pod: Object, container: str) -> Mapping[str, str]:
        """Return those of the container's first process; what the kubelet was told to give it, where nothing can be run
        in it."""
        given = lines.given(uid_of(pod), container)
        try:
            command = ["cat", "/proc/1/environ"]
            done = await self._kube.exec(namespace_of(pod), name_of(pod), command, container=container)
        except (ApiError, UnavailableError):
            return given
        if done.exit_code != 0:
            return given
        pairs = (entry.partition("=") for entry in done.stdout.decode("utf-8", "replace").split("\0") if entry)
        return {name: value for name, _, value in pairs}


def note(records: Journal, actor: str, record: Mapping[str, Any]) -> None:
    """Book a component's log record as ``mews.harness.recorder.Records`` does."""
    layer = "scheduler" if actor.endswith("scheduler") else "component"
    if "event" in record:
        records.write(layer, actor, str(record["event"]), **(record.get("fields") or {}))
    elif "message" in record:
        records.write(layer, actor, "log", level=record.get("level", ""), message=record["message"])


def _has_devices(pod: PodDevices) -> bool:
    return any(devices for _, devices in pod.containers)


def _has_claims(pod: Object, container: str) -> bool:
    return any(
        (each.get("resources") or {}).get("claims")
        for each in (*containers_of(pod), *init_containers_of(pod))
        if each.get("name") == container
    )


def _asks_devices(pod: Object, container: str) -> bool:
    return any(
        "/" in name
        for each in (*containers_of(pod), *init_containers_of(pod))
        if each.get("name") == container
        for name in requests_of(each)
    )
