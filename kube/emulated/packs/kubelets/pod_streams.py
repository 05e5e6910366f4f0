"""A pod's streams: its logs, commands in its containers, its containers' own streams, its ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime

from aiohttp import web

from mews.kube.api.errors import BadRequestError, InvalidError
from mews.kube.api.objects import node_name_of, uid_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.wire import parameters
from mews.kube.emulated.core.wire.call import Call, headers
from mews.kube.emulated.packs.kubelets import containers
from mews.kube.emulated.packs.kubelets.upgrades import (
    ATTACHMENT,
    COMMAND,
    send_messages,
    serve_command,
    serve_ports,
    stream_options,
    wants_upgrade,
    wants_websocket,
)
from mews.kube.emulated.ports.kubelets import KubeletApi


async def log(call: Call) -> web.StreamResponse:
    """Return a container's log; 204 while its pod is unassigned."""
    world, query, route = call.world, call.query, call.route
    check_log_options(query, route.name)
    target = containers.find(world.store, world.kubelets, call.namespace, route.name, query.get("container"))
    if target.kubelet is None:
        return web.Response(status=204, headers=headers())
    stream = log_of(target.kubelet, query, (call.namespace, route.name, target.container), now=world.store.now())
    return await send_log(call.request, stream, headers())


def check_log_options(query: Mapping[str, str], pod: str) -> None:
    """Check the options of a log (core validation.go ValidatePodLogOptions).

    Raises BadRequestError for what cannot be read, InvalidError for what is out of bounds.
    """
    errors = []
    tail, limit = parameters.number(query, "tailLines"), parameters.number(query, "limitBytes")
    seconds, since = parameters.number(query, "sinceSeconds"), query.get("sinceTime")
    if tail is not None and tail < 0:
        errors.append(refusals.bad("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        errors.append(refusals.bad("limitBytes", limit, "must be greater than 0"))
    if since:
        _unix_time(since)
    if seconds is not None and since:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        errors.append(refusals.forbidden_field("", text))
    elif seconds is not None and seconds < 1:
        errors.append(refusals.bad("sinceSeconds", seconds, "must be greater than 0"))
    if "stream" in query:
        errors.append(refusals.forbidden_field("stream", "may not be specified"))
    if errors:
        causes = [{"reason": error.reason, "message": error.message(), "field": error.path} for error in errors]
        text = str(errors[0]) if len(errors) == 1 else f"[{', '.join(map(str, errors))}]"
        details = {"name": pod, "kind": "PodLogOptions", "causes": causes}
        raise InvalidError(f'PodLogOptions "{pod}" is invalid: {text}', details=details)


def log_of(
    kubelet: KubeletApi, query: Mapping[str, str], target: tuple[str, str, str], *, now: float
) -> AsyncIterator[bytes]:
    """Return the log of a container (namespace, pod, its name) as these options want it."""
    seconds, since = parameters.number(query, "sinceSeconds"), query.get("sinceTime")
    return kubelet.log(
        *target,
        follow=parameters.flag(query, "follow"),
        previous=parameters.flag(query, "previous"),
        tail_lines=parameters.number(query, "tailLines"),
        since=now - seconds if seconds is not None else _unix_time(since) if since else None,
        timestamps=parameters.flag(query, "timestamps"),
        limit_bytes=parameters.number(query, "limitBytes"),
    )


def _unix_time(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        layout = "2006-01-02T15:04:05Z07:00"
        raise BadRequestError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
    return found.timestamp()


async def send_log(
    request: web.BaseRequest, stream: AsyncIterator[bytes], given: Mapping[str, str]
) -> web.StreamResponse:
    """Chunks as they come, as the messages of a WebSocket where one is asked for; a refusal of the kubelet before the
    first is still an answer."""
    if wants_websocket(request):
        return await send_messages(request, stream)
    response = web.StreamResponse(headers={**given, "Content-Type": "text/plain"})
    prepared = False
    try:
        async for chunk in stream:
            if not prepared:
                await response.prepare(request)
                prepared = True
            await response.write(chunk)
        if not prepared:
            await response.prepare(request)
    except ConnectionError:
        pass  # the reader has gone away
    return response


async def exec_(call: Call) -> web.StreamResponse:
    """Return a command in a container, with the client's streams."""
    kubelet, container = _running(call)
    command = call.request.query.getall("command", [])
    if not command:
        raise BadRequestError("you must specify at least 1 command for the container")
    _check_upgrade(call)
    options = stream_options(call.query)
    session = kubelet.command(call.namespace, call.route.name, container, command)
    return await serve_command(call.request, session, options, COMMAND)


async def attach(call: Call) -> web.StreamResponse:
    """Return the streams of a running container."""
    kubelet, container = _running(call)
    _check_upgrade(call)
    options = stream_options(call.query)
    session = kubelet.attachment(call.namespace, call.route.name, container)
    return await serve_command(call.request, session, options, ATTACHMENT)


async def portforward(call: Call) -> web.StreamResponse:
    """Return the ports of a pod."""
    world, name = call.world, call.route.name
    pod = world.store.get(call.kind, call.namespace, name)
    if not node_name_of(pod):
        raise BadRequestError(f"pod {name} does not have a host assigned")
    kubelet = containers.kubelet_of_pod(world.store, world.kubelets, pod)
    _check_upgrade(call)
    return await serve_ports(call.request, kubelet.ports(call.namespace, name), f"{name}, uid {uid_of(pod)}")


def _running(call: Call) -> tuple[KubeletApi, str]:
    world, name = call.world, call.route.name
    target = containers.find(world.store, world.kubelets, call.namespace, name, call.query.get("container"))
    if target.kubelet is None:
        raise BadRequestError(f"pod {name} does not have a host assigned")
    return target.kubelet, target.container


def _check_upgrade(call: Call) -> None:
    if not wants_upgrade(call.request):
        raise BadRequestError("Upgrade request required")
