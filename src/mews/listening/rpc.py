"""gRPC servers. Imports grpc: wall clock only.

They listen on unix sockets alone, whose folders nobody else may enter: who connects is the user, so that no token is
asked for. What they bound is how much one call brings, and how many calls run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

MESSAGE_BYTES = 4 * 1024 * 1024
"""Bytes of a message that a server receives; grpc-go's default."""
MOST_CALLS = 1000
"""Calls that run at once; further ones are answered RESOURCE_EXHAUSTED."""


def rpc_server(
    address: str, handlers: Sequence[grpc.GenericRpcHandler], options: Sequence[tuple[str, int]] = ()
) -> Any:
    """A server bound to that address (``unix:/…``), not yet started. ``options`` replace ours of the same name.

    Raises OSError where it cannot be bound.
    """
    ours = {"grpc.so_reuseport": 0, "grpc.max_receive_message_length": MESSAGE_BYTES, **dict(options)}
    server = grpc.aio.server(options=tuple(ours.items()), maximum_concurrent_rpcs=MOST_CALLS)
    server.add_generic_rpc_handlers(tuple(handlers))
    try:
        server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"{address}: cannot be served: {error}") from error
    return server
