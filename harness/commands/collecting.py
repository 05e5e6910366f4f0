"""When Python's collector looks for cycles in a process that is one command of ours, and in no other: who calls a
command from a process of their own keeps their own settings."""

from __future__ import annotations

import gc

_begun = False


def begin() -> None:
    """What imports make is kept: looking through it so often is a twelfth of a start."""
    global _begun
    _begun = True
    gc.set_threshold(100_000)


def imported() -> None:
    """Nor is it looked through once more as the first world begins to collect: a tenth of a start."""
    if _begun:
        gc.freeze()


def end() -> None:
    """Nor three times more as the interpreter ends: a sixth of a short run."""
    gc.freeze()
