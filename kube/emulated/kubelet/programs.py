"""Programs that systems bring to be played: what an image's ``simulate.program`` names."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.api.objects import annotations_of
from mews.kube.clock import Pace
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.system.program import FindProgram, PlayedProcess, PlayedProgram, ProgramPlayer, no_program


class PlayedPrograms:
    """The played programs of one cluster; each gets its player when a container of it first starts."""

    def __init__(self, pace: Pace, find: FindProgram = no_program) -> None:
        self._pace = pace
        self._find = find
        self._players: dict[str, ProgramPlayer] = {}

    def start(self, launch: Launch, process: PlayedProcess) -> None:
        """Let the image's program play that process; nothing where the image has none or the container its own command.

        Raises StartError.
        """
        name = _program_of(launch)
        if not name or launch.command:
            return
        if name not in self._players:
            self._players[name] = _found(launch, name, self._find).play(self._pace)
        try:
            self._players[name].start(launch.pod, launch.env, process)
        except ValueError as error:
            raise StartError("RunContainerError", str(error)) from error


def environment_of(launch: Launch, find: FindProgram, speed: float) -> Mapping[str, str]:
    """Return what a real process must be told to be as quick as its image's played program.

    Raises StartError.
    """
    name = _program_of(launch)
    if not name:
        return {}
    try:
        return _found(launch, name, find).environment(annotations_of(launch.pod), speed)
    except ValueError as error:
        raise StartError("RunContainerError", str(error)) from error


def _program_of(launch: Launch) -> str:
    return "" if launch.image.simulate is None else launch.image.simulate.program


def _found(launch: Launch, name: str, find: FindProgram) -> PlayedProgram:
    try:
        return find(name)
    except LookupError as error:
        raise StartError("RunContainerError", f"image {launch.image.name}: program {error.args[0]}") from error
