"""What servers and workers say to each other: a line of JSON, then so many bytes of float32."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy
from msgspec import Struct
from numpy.typing import NDArray

from mews.listening.reading import read_json

Vector = NDArray[numpy.float32]

_LINE_LIMIT = 4096
_VECTOR_LIMIT = 64 * 1024 * 1024
"""Bytes; the played network has less than one MiB of parameters."""


class TrainerMessage(Struct, frozen=True):
    """``fields`` and a vector, which may be empty."""

    fields: dict[str, Any]
    vector: Vector


async def send(writer: asyncio.StreamWriter, fields: dict[str, Any], vector: Vector | None = None) -> None:
    """Write one message. Raises OSError where the connection is gone."""
    data = b"" if vector is None else vector.astype(numpy.float32).tobytes()
    writer.write(json.dumps({**fields, "bytes": len(data)}).encode() + b"\n" + data)
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> TrainerMessage:
    """Read one message. Raises EOFError (IncompleteReadError) where the connection ends, ValueError for no message."""
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError(str(error)) from error
    if len(line) > _LINE_LIMIT:
        raise ValueError(f"a message's first line has {len(line)} bytes; at most {_LINE_LIMIT} are allowed")
    fields = read_json(line)
    size = fields.get("bytes") if isinstance(fields, dict) else None
    if not isinstance(size, int) or not 0 <= size <= _VECTOR_LIMIT or size % 4:
        raise ValueError(f"a message announces {size!r} bytes; must be a multiple of 4 up to {_VECTOR_LIMIT}")
    data = await reader.readexactly(size)
    return TrainerMessage(fields, numpy.frombuffer(data, dtype=numpy.float32))
