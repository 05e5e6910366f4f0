"""Probes and hooks of containers that really run: over the network, or by a command in the container."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from mews.kube.client.port import ExecResult
from mews.kube.emulated.kubelet.grpc_health import check
from mews.kube.emulated.kubelet.handlers import (
    Exec,
    GrpcCheck,
    HandlerResult,
    HttpGet,
    Question,
    TcpSocket,
    timed_out,
)
from mews.kube.emulated.kubelet.network import connect, get

_OUTPUT = 10 * 1024
"""So much of what a probe prints is kept."""


async def act(
    question: Question,
    run: Callable[[Sequence[str]], Awaitable[ExecResult]],
    place: Callable[[str], str] = str,
) -> HandlerResult:
    """Do the action; ``run`` runs a command in the container, and is cancelled where that takes too long. ``place``
    says where on this machine an address is."""
    match question.action:
        case HttpGet() as action:
            return await get(action, question.timeout_s, place)
        case TcpSocket() as action:
            return await connect(action, question.timeout_s, place)
        case GrpcCheck() as action:
            return await check(action, question.timeout_s, place)
        case Exec(command) as action:
            try:
                async with asyncio.timeout(question.timeout_s):
                    done = await run(command)
            except TimeoutError:
                return HandlerResult(False, timed_out(action))
            text = (done.stdout + done.stderr)[:_OUTPUT].decode("utf-8", "replace")
            return HandlerResult(done.exit_code == 0, text, done.exit_code)
        case _:
            return HandlerResult(True)
