"""Sends calls of chance to a gRPC server on a unix socket, and bytes of chance to whatever listens on one."""

from __future__ import annotations

import random
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from tests.fuzz.calls import Call, bytes_on_the_wire, drawn, garbled
from tests.fuzz.judge import MOST_MIB, Account, memory_mib, tracebacks

IN_FLIGHT = 32
PATIENCE_S = 8.0
SLOW_S = 0.5
"""For calls that may rightly take longer: a kubelet waits ten seconds for the socket of a plugin."""
RAW_SHARE = 0.05
"""Of the calls, those that are sent as bytes whose framing chance has touched."""
HEARD_S = 0.02
"""Real seconds for an answer to bytes that may lack their end."""
CHECK_EVERY = 200
"""Requests after which a sound one must be answered."""


_OWN = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
)
"""Each channel has a connection of its own, made anew soon where it breaks."""


@dataclass(frozen=True, slots=True)
class RpcFace:
    """A gRPC server's socket and calls that it answers. The first of them is the sound one; ``slow`` and ``streams``
    are methods."""

    name: str
    path: Path
    calls: list[Call]
    slow: frozenset[str] = frozenset()
    streams: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ByteFace:
    """Where bytes are listened to, by path or address; ``seeds`` are answered by something that ``sound`` begins."""

    name: str
    where: Path | tuple[str, int]
    seeds: list[bytes]
    sound: bytes


SocketFace = RpcFace | ByteFace


def connected(where: Path | tuple[str, int]) -> socket.socket:
    """A connection to it. A device plugin whose kubelet has begun anew makes its socket again: it has some seconds."""
    if not isinstance(where, Path):
        return socket.create_connection(where, timeout=PATIENCE_S)
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        wire = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        wire.settimeout(PATIENCE_S)
        try:
            wire.connect(str(where))
            return wire
        except FileNotFoundError:
            wire.close()
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
        except OSError:
            wire.close()
            raise


def channel_to(face: RpcFace) -> Any:
    """A client's channel; it bounds nothing itself."""
    unbound = (("grpc.max_send_message_length", -1), ("grpc.max_metadata_size", 1 << 20), *_OWN)
    return grpc.insecure_channel(f"unix:{face.path}", options=unbound)


def begun(channel: Any, face: RpcFace, call: Call, timeout_s: float | None = None) -> Any:
    """The call on its way: a future."""
    options: dict[str, Any] = {"timeout": timeout_s or (PATIENCE_S if is_patient(face, call) else SLOW_S)}
    options["metadata"] = call.metadata or None
    options["compression"] = grpc.Compression.Gzip if call.packed else None
    if call.method in face.streams:
        found = channel.unary_stream(call.method)(call.message, **options)
    elif call.messages != 1:
        found = channel.stream_unary(call.method).future(iter([call.message] * call.messages), **options)
    else:
        found = channel.unary_unary(call.method).future(call.message, **options)
    if call.cancelled:
        found.cancel()
    return found


def status_of(face: RpcFace, call: Call, begun: Any) -> str:
    """The name of the call's status; what crashed is told from an error that the service names so."""
    if call.method in face.streams:
        with suppress(grpc.RpcError):
            next(begun, None)
        begun.cancel()
    code, details = begun.code(), begun.details() or ""
    return "crash" if details.startswith("Unexpected <class") else str(code.name)


def is_bad(face: RpcFace, call: Call, status: str) -> bool:
    """Whether no server may answer so."""
    return status in ("crash", "DATA_LOSS") or (status == "DEADLINE_EXCEEDED" and is_patient(face, call))


def is_patient(face: RpcFace, call: Call) -> bool:
    """Whether the call is answered soon. grpcio answers none that ends without a message, and its clients wait for the
    end of an answer that has several where they expect one."""
    return call.method not in face.slow | face.streams and call.messages == 1


def fuzz_calls(face: RpcFace, count: int, seed: int) -> Account:
    """So many calls, the same ones for the same seed."""
    rng, account, began_s = random.Random(f"{seed}/{face.name}"), Account(face.name), time.monotonic()
    flying: deque[tuple[int, Call, str, Any]] = deque()
    with tracebacks() as logged, channel_to(face) as channel:
        for number in range(count):
            call, how = drawn(face.calls, rng)
            if rng.random() < RAW_SHARE:
                account.statuses[heard(face.path, garbled(bytes_on_the_wire(call), rng))] += 1
                continue
            if len(flying) == IN_FLIGHT:
                _land(face, account, *flying.popleft())
            flying.append((number, call, how, begun(channel, face, call)))
            if number % CHECK_EVERY == 0:
                flying.append((number, face.calls[0], "sound", begun(channel, face, face.calls[0])))
            _note(account, flying, logged)
        while flying:
            _land(face, account, *flying.popleft())
        _note(account, flying, logged)
    return _closed(account, began_s)


def _land(face: RpcFace, account: Account, number: int, call: Call, how: str, answer: Any) -> None:
    status = status_of(face, call, answer)
    account.statuses[status] += 1
    if how == "sound" and status != "OK":  # a server that has just been replaced drops what it was asked
        status = answered_soon(face, call)
    if is_bad(face, call, status) or (how == "sound" and status != "OK"):
        account.findings.append(
            f"{face.name} #{number} {how} {call.method}: {status} {answer.details()}\n{call.message[:300]!r}"
        )


def answered_soon(face: RpcFace, call: Call) -> str:
    """The status of the call, tried anew for a while until it is answered."""
    ends_s, status = time.monotonic() + PATIENCE_S, ""
    while status != "OK" and time.monotonic() < ends_s:
        with channel_to(face) as channel:
            status = status_of(face, call, begun(channel, face, call, PATIENCE_S / 2))
    return status


def _note(account: Account, flying: deque[tuple[int, Call, str, Any]], logged: list[str]) -> None:
    if logged:
        last = [f"#{number} {how} {call.method} {call.message[:100]!r}" for number, call, how, _ in flying]
        account.findings.append(f"{account.face}: {logged[-1][-1500:]}\non their way: {'; '.join(last)}")
        logged.clear()


def heard(where: Path | tuple[str, int], sent: bytes) -> str:
    """What becomes of bytes: they are answered, wait for more, or end the connection."""
    try:
        with connected(where) as wire:
            wire.sendall(sent)
            wire.settimeout(HEARD_S)
            return "bytes answered" if wire.recv(4096) else "bytes refused"
    except TimeoutError:
        return "bytes waiting"
    except OSError:
        return "bytes refused"


def fuzz_bytes(face: ByteFace, count: int, seed: int) -> Account:
    """So many streams of bytes, the same ones for the same seed."""
    rng, account, began_s = random.Random(f"{seed}/{face.name}"), Account(face.name), time.monotonic()
    with tracebacks() as logged:
        for number in range(count):
            sent = rng.choice(face.seeds)
            sent = rng.choice((garbled(sent * rng.randint(1, 3), rng), garbled(sent, rng), sent, rng.randbytes(50)))
            account.statuses[heard(face.where, sent)] += 1
            if number % CHECK_EVERY == 0 and not sound(face):
                account.findings.append(f"{face.name} #{number}: a sound request is not answered any more")
            if logged:
                account.findings.append(f"{face.name} #{number} {sent[:300]!r}\n{logged[-1][-1500:]}")
                logged.clear()
    return _closed(account, began_s)


def sound(face: ByteFace) -> bool:
    """Whether a valid request gets its answer."""
    with connected(face.where) as wire:
        wire.sendall(face.seeds[0])
        return wire.recv(4096).startswith(face.sound)


def _closed(account: Account, began_s: float) -> Account:
    account.seconds, account.memory_mib = time.monotonic() - began_s, memory_mib() - account.began_mib
    if account.memory_mib > MOST_MIB:
        account.findings.append(f"{account.face}: grew by {account.memory_mib:.0f} MiB, {MOST_MIB} are allowed")
    return account


def fuzz_socket(face: SocketFace, count: int, seed: int) -> Account:
    """So many calls, or streams of bytes."""
    return fuzz_calls(face, count, seed) if isinstance(face, RpcFace) else fuzz_bytes(face, count, seed)


def slow_clients(where: Path | tuple[str, int], wire: bytes, count: int) -> Iterator[socket.socket]:
    """Connections that have begun to say something and do not go on."""
    for number in range(count):
        connection = connected(where)
        connection.sendall(wire[: number % len(wire)])
        yield connection
