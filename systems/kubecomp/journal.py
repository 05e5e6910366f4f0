"""Reconfig-Mgr's intents on the API: a move is written down before it begins and struck out once read back."""

from __future__ import annotations

from collections.abc import Sequence

from mews.systems.kubecomp.config_map_writer import ConfigMapWriter
from mews.systems.kubecomp.records import JOURNAL, Intent, intent_data, intents


class MoveJournal:
    """ConfigMap ``reconfig-journal``. Its methods raise ApiError and UnavailableError: then no move may begin."""

    def __init__(self, board: ConfigMapWriter, *, keeps: bool = True) -> None:
        """``keeps``: False for the published code, which writes nothing down."""
        self._board = board
        self._keeps = keeps

    async def open(self, pool: str) -> Sequence[Intent]:
        """Return the pool's intents that an earlier incarnation, or a failure, left open; in order of GPUID."""
        found = intents(await self._board.read(JOURNAL))
        return [intent for _, intent in sorted(found.items()) if intent.pool == pool]

    async def begin(self, intent: Intent) -> None:
        """Write down a move before its first change."""
        if self._keeps:
            await self._board.write(JOURNAL, {intent.gpuid: intent_data(intent)})

    async def end(self, intent: Intent) -> None:
        """Strike it out after its last change was read back."""
        if self._keeps:
            await self._board.write(JOURNAL, {intent.gpuid: None})
