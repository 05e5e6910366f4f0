"""How a kubelet's parts write into the journal."""

from __future__ import annotations

from typing import Protocol


class KubeletJournal(Protocol):
    """Writes a line of layer kubelet (``mews.harness.journal``)."""

    def __call__(self, event: str, /, **fields: object) -> object:
        """Write one line with these fields."""
        ...


def silent(event: str, /, **fields: object) -> None:
    """A journal that keeps nothing."""
