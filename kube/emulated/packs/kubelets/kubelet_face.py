"""A kubelet's own HTTP API (upstream pkg/kubelet/server): what ``nodes/proxy`` and the real API server ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import web

from mews.kube.api.errors import BadRequestError
from mews.kube.emulated.packs.kubelets.kubelet_metrics import METRICS, TEXT
from mews.kube.emulated.packs.kubelets.pod_streams import log_of, send_log
from mews.kube.emulated.packs.kubelets.upgrades import (
    ATTACHMENT,
    COMMAND,
    OF_THE_KUBELET,
    serve_command,
    serve_ports,
    stream_options,
)
from mews.kube.emulated.ports.kubelets import KubeletApi

_Target = Sequence[str]
_Answer = Callable[[KubeletApi, web.BaseRequest, _Target, float], Awaitable[web.StreamResponse]]


async def answer_as_kubelet(
    kubelet: KubeletApi, request: web.BaseRequest, path: str, *, now: float
) -> web.StreamResponse:
    """``/containerLogs``, ``/exec``, ``/attach`` (namespace, pod, perhaps its uid, container), ``/portForward``
    (namespace, pod), ``/healthz``, ``/pods``, ``/stats/summary``, ``/metrics`` and below it.

    Raises ApiError for what must be refused.
    """
    parts = [part for part in path.split("/") if part]
    if parts in (["healthz"], ["healthz", "ping"]):
        return web.Response(text="ok")
    if parts in (["pods"], ["runningpods"]):
        items = [{**pod, "kind": "Pod", "apiVersion": "v1"} for pod in kubelet.pods()]
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
    measured = METRICS.get("/".join(parts)) if request.method == "GET" else None
    if measured is not None:
        return web.Response(body=measured(kubelet, now).encode(), headers={"Content-Type": TEXT})
    answer, methods, lengths = _ANSWERS.get(parts[0] if parts else "", (None, (), ()))
    if answer is None or len(parts) - 1 not in lengths:
        return web.Response(status=404, text="404 page not found\n")
    if request.method not in methods:  # as go-restful answers, of which the kubelet's server is made
        return web.Response(status=405, text="405: Method Not Allowed", headers={"Allow": ", ".join(methods)})
    return await answer(kubelet, request, parts[1:], now)


async def _log(kubelet: KubeletApi, request: web.BaseRequest, target: _Target, now: float) -> web.StreamResponse:
    namespace, pod, container = target
    return await send_log(request, log_of(kubelet, request.query, (namespace, pod, container), now=now), {})


async def _exec(kubelet: KubeletApi, request: web.BaseRequest, target: _Target, now: float) -> web.StreamResponse:
    options = stream_options(request.query, OF_THE_KUBELET)
    command = request.query.getall("command", [])
    if not command:
        raise BadRequestError("you must specify at least 1 command for the container")
    session = kubelet.command(target[0], target[1], target[-1], command)
    return await serve_command(request, session, options, COMMAND)


async def _attach(kubelet: KubeletApi, request: web.BaseRequest, target: _Target, now: float) -> web.StreamResponse:
    options = stream_options(request.query, OF_THE_KUBELET)
    session = kubelet.attachment(target[0], target[1], target[-1])
    return await serve_command(request, session, options, ATTACHMENT)


async def _ports(kubelet: KubeletApi, request: web.BaseRequest, target: _Target, now: float) -> web.StreamResponse:
    return await serve_ports(request, kubelet.ports(target[0], target[1]), target[1])


async def _stats(kubelet: KubeletApi, request: web.BaseRequest, target: _Target, now: float) -> web.StreamResponse:
    if target[0] != "summary":
        return web.Response(status=404, text="404 page not found\n")
    files = request.query.getall("only_cpu_and_memory", []) != ["true"]
    return web.json_response(await kubelet.summary(now=now, files=files))


_STREAMS = ("GET", "POST")
_ANSWERS: Mapping[str, tuple[_Answer, tuple[str, ...], tuple[int, ...]]] = {
    "containerLogs": (_log, ("GET",), (3,)),
    "exec": (_exec, _STREAMS, (3, 4)),
    "attach": (_attach, _STREAMS, (3, 4)),
    "portForward": (_ports, _STREAMS, (2, 3)),
    "stats": (_stats, ("GET", "POST"), (1,)),
}
