"""The scheduler extender: filter, bind, inspect, version, /metrics (contract gpushare.md section 2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, key_of, node_name_of, uid_of, version_of
from mews.kube.api.quantities import whole
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.kube.system.services import ServicePort, ServiceReply
from mews.systems.gpushare import wire
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers, SharedNode, stands, uses_of
from mews.systems.gpushare.metrics import ExtenderMetrics
from mews.systems.gpushare.names import LEDGER_PREFIX, UNHEALTHY_PREFIX
from mews.systems.gpushare.policy import TOO_FULL, GpuUse, SharedGpu, gpu_of, largest_free, refusal, without
from mews.systems.gpushare.records import LedgerEntry, decided, node_gpus, requested, unhealthy_indices
from mews.systems.gpushare.refusals import RefusedPods

PREFIX = "/gpushare-scheduler"
VERSION = "0.1.0"
_LOOKED_AT, _LATE_S = 4, 1.0
SERVED_PODS = "status.phase!=Succeeded,status.phase!=Failed"


class GpuShareExtender:
    """One replica. All it knows it has from the API, so that it may be killed at any point; what it decides goes
    through the ledger, so that there may be several of it."""

    def __init__(self, context: Context, config: GpuShareConfig, service: ServicePort) -> None:
        self._context = context
        self._config = config
        self._service = service
        self._pods = Informer(context.kube, PODS, field_selector=SERVED_PODS)
        self._nodes = Informer(context.kube, NODES)
        self._config_maps = Informer(context.kube, CONFIGMAPS, namespace=config.namespace)
        self._ledgers = NodeLedgers(
            context.kube, config.namespace, lambda node: self._config_map(f"{LEDGER_PREFIX}{node}")
        )
        self._on_node: dict[str, dict[str, Object]] = {}
        self._remembered: dict[str, int | None] = {}
        self._promised: dict[str, set[str]] = {}
        self._news = asyncio.Event()
        self._refused = RefusedPods(context, lambda node: self._largest(node, None) or 0, self._pods.get)
        self._pods.on_change(self._pod_changed)
        self._nodes.on_change(lambda old, new: self._forget(str((new or old or {})["metadata"]["name"])))
        self._config_maps.on_change(self._config_map_changed)
        self.metrics = ExtenderMetrics()

    async def run(self) -> None:
        """Serve once the state is rebuilt, until cancelled."""
        async with asyncio.TaskGroup() as group:
            informers = (self._pods, self._nodes, self._config_maps)
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            for node in self._nodes.items():
                self._largest(str(node["metadata"]["name"]), None)  # else the first filter call pays for all of them
            record(self._context.log, "extender-ready", pods=len(self._pods), nodes=len(self._nodes))
            known = [node["metadata"]["name"] for node in self._nodes.items()]
            self._refused.begin(self._pods.items(), known, self._config.memory_resource)
            group.create_task(self._refused.run())
            group.create_task(self._service.serve(self.handle))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        self._news.set()
        for pod in (old, new):
            if pod is not None:
                self._forget(node_name_of(pod))
                for node in self._promised.pop(uid_of(pod), ()):
                    self._forget(node)
        if old is not None and node_name_of(old):
            self._on_node.get(node_name_of(old), {}).pop(uid_of(old), None)
        if new is not None and node_name_of(new):
            self._on_node.setdefault(node_name_of(new), {})[uid_of(new)] = new

    # HTTP

    async def handle(self, method: str, path: str, body: bytes) -> ServiceReply:
        """Answer one request."""
        path = path.partition("?")[0].rstrip("/")
        if path == f"{PREFIX}/filter":
            return await self._filter(body) if method == "POST" else _not_allowed(method, path, "POST")
        if path == f"{PREFIX}/bind":
            return await self._bind(body) if method == "POST" else _not_allowed(method, path, "POST")
        answer = self._answer_to(path)
        if answer is not None and method != "GET":
            return _not_allowed(method, path, "GET")
        return answer or _json(404, {"Error": f"{method} {path}: no such thing"})

    def _answer_to(self, path: str) -> ServiceReply | None:
        if path in ("/version", f"{PREFIX}/version"):
            return _json(200, VERSION)
        if path == "/metrics":
            return ServiceReply(200, self.metrics.text().encode(), "text/plain; version=0.0.4")
        head, found, node = path.partition(f"{PREFIX}/inspect")
        return self._inspect(node[1:]) if found and not head and node[:1] in ("", "/") else None

    # Filter

    async def _filter(self, body: bytes) -> ServiceReply:
        begun = asyncio.get_running_loop().time()
        try:
            call = wire.read_filter(body)
        except wire.BadCallError as wrong:
            return _json(200, wire.filter_error(str(wrong)))
        try:
            refusals = await self._decided(call)
        except wire.UNREADABLE as wrong:
            return _json(200, wire.filter_error(f"Pod, Nodes: cannot be read: {type(wrong).__name__}: {wrong}"))
        self.metrics.filtered(len(call.names), len(refusals), asyncio.get_running_loop().time() - begun)
        return _json(200, wire.filter_result(call, refusals))

    async def _decided(self, call: wire.FilterCall) -> dict[str, str]:
        """Node -> text, of the nodes that the pod does not fit."""
        request = requested(call.pod, self._config.memory_resource)
        if not request:
            return {}
        given = {} if call.nodes is None else dict(zip(call.names, call.nodes, strict=True))
        refusals = self._refusals(call.names, request, given)
        full = [name for name, text in refusals.items() if text == TOO_FULL]
        if full and len(refusals) == len(call.names) and await self._caught_up(full):
            again = self._refusals(full, request, given)
            refusals = {name: text for name, text in refusals.items() if name not in full} | again
        if full and len(refusals) == len(call.names):
            self._refused.refused(call.pod, request, full)
        else:
            self._refused.passed(call.pod)
        return refusals

    def _refusals(self, nodes: Iterable[str], request: int, given: Mapping[str, Object]) -> dict[str, str]:
        largest = ((node, self._largest(node, given.get(node))) for node in nodes)
        return {node: text for node, most in largest if (text := refusal(node, request, most))}

    async def _caught_up(self, nodes: Sequence[str]) -> bool:
        """Return whether pods have ended there of whose end our watch was late; a scheduler asks as soon as its own
        shows one. It is waited for. Of many nodes the first are looked at: for the others there is ``RefusedPods``."""
        late = False
        for node in nodes[:_LOOKED_AT]:
            try:
                listed = await self._context.kube.list(PODS, field_selector=f"spec.nodeName={node},{SERVED_PODS}")
            except (ApiError, UnavailableError):
                return late
            live, known = {uid_of(pod) for pod in listed.items}, self._on_node.get(node, {})
            ended = {
                uid for uid, pod in known.items() if uid not in live and version_of(pod) <= int(listed.resource_version)
            }
            late = late or bool(ended)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LATE_S):
                    while ended & self._on_node.get(node, {}).keys():
                        self._news.clear()
                        await self._news.wait()
        return late

    def _largest(self, name: str, given: Object | None) -> int | None:
        """Remembered until something of the node changes: a filter call asks for thousands of nodes."""
        if name in self._remembered:
            return self._remembered[name]
        found = largest_free(self._gpus(name, given), self._uses(name))
        if found is None and self._has_memory(name, given):
            found = 0  # it shares GPUs, of which nobody says how many
        entries = self._ledgers.entries(name).values()
        # A promise to a pod that our watch has not shown yet is judged anew each time: nothing would tell of its end.
        if self._nodes.get(name) is not None and all(self._is_seen(entry) for entry in entries):
            self._remembered[name] = found
            for entry in entries:
                self._promised.setdefault(entry.uid, set()).add(name)
        return found

    def _is_seen(self, entry: LedgerEntry) -> bool:
        pod = self._pods.get(entry.name, entry.namespace)
        return pod is not None and uid_of(pod) == entry.uid

    def _forget(self, node: str) -> None:
        self._remembered.pop(node, None)
        self._refused.node_changed(node)

    def _config_map_changed(self, old: Object | None, new: Object | None) -> None:
        name = str((new or old or {})["metadata"]["name"])
        for prefix in (LEDGER_PREFIX, UNHEALTHY_PREFIX):
            self._forget(name.removeprefix(prefix))

    def _gpus(self, name: str, given: Object | None = None) -> tuple[SharedGpu, ...]:
        """Return what is known of a node's GPUs; a client without our cache sends the node itself."""
        node = self._nodes.get(name) or given
        if node is None:
            return ()
        listed = node_gpus(node, self._config.memory_resource, self._config.count_resource)
        gpus = tuple(without(listed, self._ledgers.withheld(name)))
        broken = unhealthy_indices(self._config_map(f"{UNHEALTHY_PREFIX}{name}"))
        if not broken:
            return gpus
        return tuple(SharedGpu(g.index, g.uuid, g.memory, g.usable and g.index not in broken) for g in gpus)

    def _has_memory(self, name: str, given: Object | None) -> bool:
        node = self._nodes.get(name) or given or {}
        return bool(whole(((node.get("status") or {}).get("capacity") or {}).get(self._config.memory_resource, 0)))

    def _config_map(self, name: str) -> Object | None:
        return self._config_maps.get(name, self._config.namespace)

    def _uses(self, node: str) -> Sequence[GpuUse]:
        entries = {uid: entry for uid, entry in self._ledgers.entries(node).items() if self._entry_stands(entry, node)}
        return uses_of(self._on_node.get(node, {}).values(), entries)

    def _entry_stands(self, entry: LedgerEntry, node: str) -> bool:
        return stands(entry, self._pods.get(entry.name, entry.namespace), node, self._pods.version)

    # Bind

    async def _bind(self, body: bytes) -> ServiceReply:
        try:
            call = wire.read_bind(body)
        except wire.BadCallError as wrong:
            return _json(500, wire.bind_result(str(wrong)))
        async with self._ledgers.lock(call.node):
            try:
                text = await self._bound(call)
            except (ApiError, UnavailableError) as failed:
                text = f"bind of {call.namespace}/{call.name} to {call.node}: {failed}"
            finally:
                self._forget(call.node)
        self.metrics.bound(not text)
        record(self._context.log, "bind", pod=f"{call.namespace}/{call.name}", node=call.node, error=text)
        return _json(500 if text else 200, wire.bind_result(text, capital=call.capital))

    async def _bound(self, call: wire.BindCall) -> str:
        """Bind the pod with the decision in its annotations, both in one write: "" or why not."""
        text = ""
        for _ in range(ATTEMPTS):
            try:
                pod = await self._context.kube.get(PODS, call.name, namespace=call.namespace)
            except NotFoundError:
                return f'pods "{call.name}" not found'
            if call.uid and uid_of(pod) != call.uid:
                return f"pod {key_of(pod)} is another one than {call.uid}"
            if node_name_of(pod):
                return "" if node_name_of(pod) == call.node else f"pod {key_of(pod)} is on {node_name_of(pod)} already"
            try:
                return await self._promise_and_bind(pod, call)
            except ConflictError as conflict:
                # Another replica wrote the ledger, or somebody the pod: look again at both.
                text = str(conflict)
                await self._ledgers.read(call.node)
        return text

    async def _promise_and_bind(self, pod: Object, call: wire.BindCall) -> str:
        memory = requested(pod, self._config.memory_resource)
        stand = self._still_stands(call.node)
        gpu = await self._ledgers.promise(pod, memory, self._sharing(call.node), stand)
        if gpu is None and await self._caught_up([call.node]):
            gpu = await self._ledgers.promise(pod, memory, self._sharing(call.node), stand)
        if gpu is None:
            return TOO_FULL
        annotations = decided(gpu, memory, int(self._context.clock.now() * 1e9))
        try:
            await self._context.kube.bind(
                call.namespace,
                call.name,
                call.node,
                uid=uid_of(pod),
                annotations=annotations,
                resource_version=str(pod["metadata"]["resourceVersion"]),
            )
        except ConflictError:
            raise
        except ApiError:
            await self._ledgers.withdraw(uid_of(pod), call.node)
            raise
        return ""

    def _sharing(self, node: str) -> SharedNode:
        return SharedNode(node, self._gpus(node), list(self._on_node.get(node, {}).values()))

    def _still_stands(self, node: str) -> Any:
        async def stand(entry: LedgerEntry) -> bool:
            return self._entry_stands(entry, node)

        return stand

    # Inspect

    def _inspect(self, name: str) -> ServiceReply:
        if name and self._nodes.get(name) is None:
            return _json(404, {"Error": f'nodes "{name}" not found'})
        wanted = [name] if name else [node["metadata"]["name"] for node in self._nodes.items()]
        found = ((node, self._gpus(node)) for node in wanted)
        return _json(200, {"nodes": [self._inspected(node, gpus) for node, gpus in found if gpus]})

    def _inspected(self, node: str, gpus: Sequence[SharedGpu]) -> dict[str, Any]:
        uses = self._uses(node)
        rows = []
        for gpu in gpus:
            mine = [use for use in uses if gpu_of(use, gpus) is gpu]
            listed = []
            for use in mine:
                namespace, _, pod = use.pod.partition("/")
                listed.append({"name": pod, "namespace": namespace, "usedGPU": use.memory})
            used = sum(use.memory for use in mine)
            rows.append({"id": gpu.index, "totalGPU": gpu.memory, "usedGPU": used, "pods": listed})
        return wire.inspected(node, rows)


def _not_allowed(method: str, path: str, wanted: str) -> ServiceReply:
    return _json(405, {"Error": f"{method} {path}: must be {wanted}"})


def _json(status: int, content: Any) -> ServiceReply:
    return ServiceReply(status, json.dumps(content, separators=(",", ":")).encode())
