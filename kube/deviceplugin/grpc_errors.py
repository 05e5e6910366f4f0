"""PluginError and gRPC's status, both ways. Codes are spelt as Go does, texts are those of grpc-go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc

from mews.kube.deviceplugin.port import PluginError

EOF = "error reading from server: EOF"

_BROKEN = (
    "Cancelling all calls",
    "Stream removed",
    "Socket closed",
    "Connection reset",
    "Broken pipe",
    "GOAWAY received",
    "recvmsg",
)
"""How gRPC's C core says that the other side is gone; nothing else tells such an error from a peer's own."""

T = TypeVar("T")


_GO_NAMES = {code: "".join(part.capitalize() for part in code.name.split("_")) for code in grpc.StatusCode}
_GO_NAMES |= {grpc.StatusCode.OK: "OK", grpc.StatusCode.CANCELLED: "Canceled"}
_BY_GO_NAME = {name: code for code, name in _GO_NAMES.items()}


def from_rpc(error: grpc.aio.AioRpcError) -> PluginError:
    """Return the error of a call that we made. A broken connection is told in grpc-go's words."""
    code, desc = error.code(), error.details() or ""
    if code is grpc.StatusCode.UNAVAILABLE and any(words in desc for words in _BROKEN):
        desc = EOF
    if code is grpc.StatusCode.DEADLINE_EXCEEDED and desc == "Deadline Exceeded":
        desc = "context deadline exceeded"
    return PluginError(_GO_NAMES[code], desc)


def started(method: Any, request: Any, timeout_s: float | None = None) -> Any:
    """Begin a call.

    Raises PluginError when its channel is closed already.
    """
    try:
        return method(request, timeout=timeout_s)
    except grpc.aio.UsageError as error:
        raise PluginError("Canceled", "grpc: the client connection is closing") from error


async def outcome(call: Awaitable[T]) -> T:
    """Return a call's answer. Its channel may be closed meanwhile, as the kubelet does when a plugin's stream has
    ended: that is the end of this call, not of the task that waits for it.

    Raises PluginError.
    """
    try:
        return await call
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise PluginError("Unavailable", EOF) from error
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error) from error


async def abort(context: Any, error: PluginError) -> None:
    """Answer a call with that error."""
    await context.abort(_BY_GO_NAME.get(error.code, grpc.StatusCode.UNKNOWN), error.desc)


def answering(method: Callable[[Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    """Return a gRPC handler of request -> response, whose PluginErrors become the call's status."""

    async def handler(request: Any, context: Any) -> Any:
        try:
            return await method(request)
        except PluginError as error:
            await abort(context, error)

    return handler
