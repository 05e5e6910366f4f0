"""What a system says of a program that emulated nodes play instead of running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.clock import Pace


class PlayedProcess(Protocol):
    """The process that a played program stands for, as its container sees it."""

    def emit(self, text: str) -> None:
        """Write to its log."""
        ...

    def end(self, code: int) -> None:
        """End it."""
        ...

    def on_end(self, call: Callable[[], None]) -> None:
        """Call once it has ended, whatever ended it."""
        ...


class ProgramPlayer(Protocol):
    """Plays one program in all containers of one cluster: processes of it may have to do with one another."""

    def start(self, pod: Object, env: Mapping[str, str], process: PlayedProcess) -> None:
        """A container of it starts, with that environment.

        Raises ValueError, in one line, where it cannot.
        """
        ...


def _nothing(annotations: Mapping[str, str], speed: float) -> Mapping[str, str]:
    return {}


class PlayedProgram(Struct, frozen=True):
    """A program that images name by ``simulate.program: SYSTEM/NAME``. ``play`` makes its player for a cluster;
    ``environment(annotations, speed)`` is what the image's real process must be told to take as long as the pod's
    annotations say, where so many emulated seconds pass in each real one (raises ValueError, in one line)."""

    play: Callable[[Pace], ProgramPlayer]
    environment: Callable[[Mapping[str, str], float], Mapping[str, str]] = _nothing


FindProgram = Callable[[str], PlayedProgram]
"""The program of that name. Raises LookupError, in one line, where there is none."""


def no_program(name: str) -> PlayedProgram:
    """There is none."""
    raise LookupError(f"{name!r}: no system brings such a program")
