"""The connections of a task to all servers of its job, and what it pulled from each of them last."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy

from mews.systems.kod2.trainer.names import resolve, split
from mews.systems.kod2.trainer.settings import slice_of
from mews.systems.kod2.trainer.wire import TrainerMessage, Vector, receive, send


class ServerLinks:
    """Connections to the servers at these addresses. All methods raise EOFError, OSError or ValueError where one is
    gone."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses
        self._open: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._pulled: list[TrainerMessage] = []

    async def connect(self, hello: dict[str, Any]) -> None:
        """Connect to all of them; a server that was started anew is given what was pulled from it last."""
        for index, address in enumerate(self._addresses):
            name, port = split(address)
            link = await asyncio.open_connection(await resolve(name), port)
            self._open.append(link)
            last = self._pulled[index] if self._pulled else None
            greeting = hello if last is None else {**hello, "step": last.fields["step"]}
            await send(link[1], greeting, None if last is None else last.vector)

    async def pull(self) -> TrainerMessage:
        """Return all parameters, with what the first server says of them."""
        answers = [await receive(reader) for reader, _ in self._open]
        self._pulled = answers
        return TrainerMessage(answers[0].fields, numpy.concatenate([answer.vector for answer in answers]))

    async def push(self, fields: dict[str, Any], vector: Vector | None = None) -> None:
        """Send each server its part of a gradient, or none to look again."""
        for index, (_, writer) in enumerate(self._open):
            await send(writer, fields, None if vector is None else vector[slice_of(index, len(self._open))])

    def hang_up(self) -> None:
        """Close all of them."""
        for _, writer in self._open:
            writer.close()
        self._open.clear()
