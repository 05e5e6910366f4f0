"""gRPC servers. Imports grpc: wall clock only.

They listen on unix sockets alone, whose folders nobody else may enter: who connects is the user, so that no token is
asked for. What they bound is how much one call brings, and how many calls run; a request that is no message of its kind
is refused as grpc-go refuses it, where grpc would log a traceback and answer UNKNOWN.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from mews.listening.limits import HEAD_S

log = logging.getLogger("grpc._cython.cygrpc")
log.addFilter(lambda record: not record.getMessage().startswith(("Invalid encoding on", "'utf-8' codec can't decode")))
"""Metadata or a path that are no text are the client's fault, and nothing to log a traceback for."""

MESSAGE_BYTES = 4 * 1024 * 1024
"""Bytes of a message that a server receives; grpc-go's default."""
MOST_CALLS = 1000
"""Calls that run at once; further ones are answered RESOURCE_EXHAUSTED."""
MOST_STREAMS = 250
"""Calls at once of one connection, so that one client cannot take all; its further ones wait."""


def rpc_server(
    address: str, handlers: Sequence[grpc.GenericRpcHandler], options: Sequence[tuple[str, int]] = ()
) -> Any:
    """Return a server bound to that address (``unix:/…``), not yet started. ``options`` replace ours of the same name.

    Raises OSError where it cannot be bound.
    """
    ours = {
        "grpc.so_reuseport": 0,
        "grpc.max_receive_message_length": MESSAGE_BYTES,
        "grpc.max_concurrent_streams": MOST_STREAMS,
        "grpc.server_handshake_timeout_ms": int(HEAD_S * 1000),
        **dict(options),
    }
    server = grpc.aio.server(options=tuple(ours.items()), maximum_concurrent_rpcs=MOST_CALLS)
    server.add_generic_rpc_handlers(tuple(_Strict(handler) for handler in handlers))
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"{address}: cannot be served: {error}") from error
    return server


class _Strict(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Another handler, whose requests are read here."""

    def __init__(self, inner: grpc.GenericRpcHandler) -> None:
        self._inner = inner

    def service(self, details: Any) -> Any:
        """Return the method's handler, None for a method of others."""
        method = self._inner.service(details)
        if method is None or method.request_streaming or method.request_deserializer is None:
            return method
        read = method.request_deserializer
        if method.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                _streaming(read, method.unary_stream), None, method.response_serializer
            )
        return grpc.unary_unary_rpc_method_handler(
            _answering(read, method.unary_unary), None, method.response_serializer
        )


def _answering(
    read: Callable[[bytes], Any], answer: Callable[[Any, Any], Awaitable[Any]]
) -> Callable[[bytes, Any], Awaitable[Any]]:
    async def handler(raw: bytes, context: Any) -> Any:
        return await answer(await _read(read, raw, context), context)

    return handler


def _streaming(
    read: Callable[[bytes], Any], answer: Callable[[Any, Any], Any]
) -> Callable[[bytes, Any], AsyncIterator[Any]]:
    async def handler(raw: bytes, context: Any) -> AsyncIterator[Any]:
        request = await _read(read, raw, context)
        async with aclosing(answer(request, context)) as messages:
            async for message in messages:
                yield message

    return handler


async def _read(read: Callable[[bytes], Any], raw: bytes, context: Any) -> Any:
    """Return the message. Ends the call where it is none."""
    try:
        return read(raw)
    except DecodeError as error:
        return await context.abort(grpc.StatusCode.INTERNAL, unreadable(error))


def unreadable(error: DecodeError) -> str:
    """Return what grpc-go says of a request that is no message of its kind."""
    return f"grpc: error unmarshalling request: {error}"


async def serving(server: Any, on_end: Callable[[], None]) -> None:
    """Start the server. ``on_end`` is called if it ends by itself: grpcio's (1.85) does so where the path of a call is
    no UTF-8, and answers nobody any more.
    """
    tasks: list[asyncio.Task[Any]] = []
    await _started(server, tasks)
    for task in tasks:
        task.add_done_callback(lambda ended: _note_end(ended, on_end))


@types.coroutine
def _started(server: Any, tasks: list[asyncio.Task[Any]]) -> Generator[Any, None, None]:
    """Start it, and add the tasks that it makes for itself: all those that are new after its first step."""
    before, steps = asyncio.all_tasks(), server.start().__await__()
    waiting = next(steps)
    tasks += asyncio.all_tasks() - before
    yield waiting
    yield from steps


def _note_end(task: asyncio.Task[Any], on_end: Callable[[], None]) -> None:
    if task.cancelled() or task.exception() is None:
        return
    for other in asyncio.all_tasks():  # grpc's own, which meets the same error once more
        if getattr(other.get_coro(), "__qualname__", "") == "AioServer.shutdown":
            other.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    on_end()
