"""Probes by gRPC's health protocol, for containers that are real processes (upstream pkg/probe/grpc)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from mews.kube.emulated.kubelet.handlers import GrpcCheck, HandlerResult

_METHOD = "/grpc.health.v1.Health/Check"
_STATES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
_SERVING = 1
_UNARY_STATUS = b"\x08"
"""Tag of field 1, a varint: the only one of HealthCheckResponse."""


async def check(action: GrpcCheck, timeout_s: float, place: Callable[[str], str] = str) -> HandlerResult:
    """Connect and ask; SERVING is well. ``place`` says where on this machine an address is."""
    where = f"{action.host}:{action.port}"
    async with grpc.aio.insecure_channel(
        f"{place(action.host)}:{action.port}", [("grpc.default_authority", where)]
    ) as channel:
        try:
            async with asyncio.timeout(timeout_s):
                await channel.channel_ready()
        except TimeoutError:
            text = f'timeout: failed to connect service "{where}" within {timeout_s:g}s: context deadline exceeded'
            return HandlerResult(False, text)
        ask: Any = channel.unary_unary(_METHOD, request_serializer=_request, response_deserializer=_status)
        try:
            status = await ask(action.service, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            return HandlerResult(False, _complaint(error, timeout_s))
    if status == _SERVING:
        return HandlerResult(True, "service healthy")
    return HandlerResult(False, f'service unhealthy (responded with "{_STATES.get(status, status)}")')


def _request(service: str) -> bytes:
    """HealthCheckRequest {string service = 1}."""
    name = service.encode()
    return bytes((0x0A, len(name))) + name if name else b""


def _status(message: bytes) -> int:
    """HealthCheckResponse {ServingStatus status = 1}; absent: 0."""
    return message[1] if message[:1] == _UNARY_STATUS and len(message) > 1 else 0


def _complaint(error: grpc.aio.AioRpcError, timeout_s: float) -> str:
    match error.code():
        case grpc.StatusCode.UNIMPLEMENTED:
            what = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
            return f"{what}: {error.details()}"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"timeout: health rpc did not complete within {timeout_s:g}s"
        case _:
            return f"error: health rpc probe failed: {error.details()}"
