"""``mews run --break-at``: stop there, show the run to other programs, and go on when told to.

The run itself waits. A copy of it, a forked process, serves what there is to see and then ends: nobody who looks can
change what comes next, so that the journal is the same byte for byte as without a stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from mews.harness import terminal
from mews.harness.clock import LaterLoop
from mews.harness.commands.claims import claim, clean_up
from mews.harness.commands.continuing import STOPPED
from mews.harness.commands.instances import UpInstance, alive, recorded
from mews.harness.commands.up import chassis_lines, shell_lines
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.halts import ALLOWED, BreakPlace, Halt, break_place
from mews.harness.journal import Line
from mews.harness.leftovers import RuntimeFolder, make_runtime_folder
from mews.harness.options import RunOptions
from mews.harness.scenario.runner import all_steps
from mews.names import must_be

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.cluster import EmbeddedCluster
    from mews.harness.scenario.model import Scenario


_LOOK_S = 0.5
_PATIENCE_S = 10.0
_MOST_CHASSIS = 2


class BreakPoint:
    """One place of one run. ``options`` are the run's with the stop in them; ``missed()`` says afterwards what is to be
    told where the run never came there."""

    def __init__(self, place: BreakPlace, scenario: Scenario, options: RunOptions) -> None:
        self._place = place
        self._scenario = scenario
        self._is_reached = False
        self.options = replace(options, halt=Halt(place, self._stand))

    def missed(self) -> str:
        """Return one line, "" where it was reached."""
        return "" if self._is_reached else f"--break-at {self._place.text}: the run ended before it came there"

    def _stand(self, line: Line, cluster: EmbeddedCluster) -> None:
        """Show the world until somebody lets it go on.

        Raises KeyboardInterrupt on Ctrl-C, RequirementError, BadInputError where it cannot be shown.
        """
        self._is_reached = True
        instance = claim(_free_name(), None)
        copy = _Copy(instance)
        try:
            now_s = asyncio.get_running_loop().time()
            # From before the announcement: who reads it may press Ctrl-C before this process has come one line further.
            with _interruptible():
                copy.fork(lambda copy: _serve(copy, self._scenario, cluster, line, now_s))
                ready = copy.ready()
                terminal.err(_announcement(ready, instance.name, line))
                message = copy.wait()
            terminal.err("goes on\n" if message else "its servers have ended; the run goes on\n")
        finally:
            copy.end()
            clean_up(instance)


def break_point(text: str, plan: Sequence[tuple[Scenario, int]], options: RunOptions, jobs: int) -> BreakPoint:
    """Return that of ``--break-at`` for these runs.

    Raises BadInputError for what is no place of the one scenario, and for more than one run; RequirementError where a
    process cannot be copied.
    """
    if options.time != "virtual":
        raise BadInputError(f"--break-at {text}: in virtual time only; in wall-clock time, use mews up")
    if jobs > 1:
        raise BadInputError(f"--break-at {text} --jobs {jobs}: only one of the two; a run that stops is alone")
    if len(plan) != 1:
        raise BadInputError(f"--break-at {text}: must be one run, not {len(plan)}; name one scenario and one seed")
    place, scenario = break_place(text), plan[0][0]
    steps = all_steps(scenario)
    names = list(dict.fromkeys(step.name for step in steps if step.name))
    if place.step is not None and place.step > len(steps):
        raise BadInputError(f"--break-at {text}: {scenario.name} has {len(steps)} step{'s' * (len(steps) != 1)}")
    if place.name and place.name not in names:
        known = f"of {scenario.name}, {must_be(place.name, names)}" if names else f"{scenario.name} names no step"
        raise BadInputError(f"--break-at {text}: must be {ALLOWED}; {known}")
    if not hasattr(os, "fork"):
        raise RequirementError("--break-at: this system cannot copy a process; it takes Linux or macOS")
    return BreakPoint(place, scenario, options)


def _free_name() -> str:
    taken = {instance.name for instance in recorded() if alive(instance)}
    return next(name for number in range(1, len(taken) + 2) if (name := _numbered(number)) not in taken)


def _numbered(number: int) -> str:
    return STOPPED if number == 1 else f"{STOPPED}-{number}"


def _announcement(ready: dict[str, Any], name: str, line: Line) -> str:
    host = next(iter(ready["nodes"]))
    named = "" if name == STOPPED else f" --name {name}"
    parts = [
        f"stopped at line {line.number}, {line.t:.3f} s: {_in_words(line)}",
        f"  kubectl --kubeconfig {ready['kubeconfig']} get pods -A",
        *chassis_lines(ready["chassis"], _MOST_CHASSIS),
        *shell_lines(ready["nodes"], f" --name {name}"),
        f"  mews nvidia-smi --name {name} --host {host}; mews events --name {name}; mews status --name {name}",
        f"  the run is process {ready['pid']}; it can only be read until it goes on",
        f"  goes on with: mews continue{named}; ends with Ctrl-C or: mews down --name {name}",
    ]
    return "\n".join(parts) + "\n"


def _in_words(line: Line) -> str:
    fields = line.fields
    if line.layer == "step":
        return f"step {fields['step']} ({fields.get('name') or fields['do']}) begins"
    if line.layer == "invariant":
        return f"invariant {line.actor} is violated: {fields['what']}"
    return f"{line.layer} {line.actor} {line.event}"


@contextlib.contextmanager
def _interruptible() -> Any:
    """Within, Ctrl-C raises at once; a loop would only take note of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Copy:
    """A forked process that serves until it is told to go on, or until this one ends in whatever way: it reads the end
    of ``lifeline``, of which only this one has the other end."""

    def __init__(self, instance: UpInstance) -> None:
        self.instance = instance
        self.run_pid = os.getpid()
        self._pid = 0
        self._reading, self._writing = os.pipe()
        self.lifeline, self._holding = os.pipe()
        self._received = b""

    def fork(self, serve: Callable[[_Copy], None]) -> None:
        """Have the copy call ``serve``, and end."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # A signal that comes between fork and the copy's first line must not find this process' handlers in it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        try:
            self._pid = os.fork()
            if self._pid == 0:
                self._become_copy(serve, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(self._writing)
        os.close(self.lifeline)

    def _become_copy(self, serve: Callable[[_Copy], None], mask: Any) -> NoReturn:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the run ends its copy
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(self._reading)
            os.close(self._holding)
            serve(self)
            code = 0
        except (RequirementError, OSError, ModuleNotFoundError) as error:
            self.send({"lacks": " ".join(str(error).split())})
        finally:
            os._exit(code)

    def send(self, content: dict[str, Any]) -> None:
        """From the copy to the run: one line."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._writing, (json.dumps(content) + "\n").encode())

    def ready(self) -> dict[str, Any]:
        """Return what the copy's ready.json says.

        Raises RequirementError where it came to nothing.
        """
        message = self._line()
        if message is None or "lacks" in message:
            raise RequirementError(
                f"--break-at: the run cannot be shown: {(message or {}).get('lacks', 'its servers ended')}"
            )
        file = Path(message["ready"])
        ready: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return ready

    def wait(self) -> bool:
        """Until it has ended; whether it was told to go on."""
        return self._line() is not None

    def _line(self) -> dict[str, Any] | None:
        while b"\n" not in self._received:
            # Now and then, so that a debugger that attaches finds the interpreter at work.
            if not select.select([self._reading], [], [], _LOOK_S)[0]:
                continue
            message = os.read(self._reading, 1 << 16)
            if not message:
                return None
            self._received += message
        line, _, self._received = self._received.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """End the copy, and wait for it; kill it if it takes long."""
        os.close(self._holding)
        if self._pid:
            ended, _, _ = select.select([self._reading], [], [], _PATIENCE_S)
            while ended and os.read(self._reading, 1 << 16):
                ended, _, _ = select.select([self._reading], [], [], _PATIENCE_S)
            if not ended:
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._reading)


def _serve(copy: _Copy, scenario: Scenario, cluster: EmbeddedCluster, line: Line, now_s: float) -> None:
    """In the copy: serve, remove what was made, end."""
    scratch = make_runtime_folder("mews-")
    owned = RuntimeFolder(scratch)
    try:
        with asyncio.Runner(loop_factory=lambda: LaterLoop(now_s)) as runner:
            message = runner.run(_served(copy, scenario, cluster, line, scratch, now_s))
    finally:
        owned.release()
        clean_up(copy.instance)
    if message:
        copy.send({"goes": "on"})


async def _served(
    copy: _Copy, scenario: Scenario, cluster: EmbeddedCluster, line: Line, scratch: Path, now_s: float
) -> bool:
    """Return whether somebody let it go on; not, where the run has ended."""
    from mews.harness.clusters.embedded.halted_world import HaltedWorld
    from mews.harness.live.halted_session import HaltedSession
    from mews.harness.live.server import SessionServer
    from mews.harness.up import write_whole

    folder = Path(copy.instance.folder)
    why = f"the run is stopped at line {line.number} and can only be read; mews continue lets it go on"
    ended, goes_on = asyncio.Event(), asyncio.Event()
    assert cluster.ports.world is not None, "only a cluster in one process is stopped"
    world = HaltedWorld(cluster.ports.world, scratch=scratch, folder=folder, now_s=now_s, why=why)
    session = HaltedSession(copy.instance.name, scenario, cluster, at=line, why=why, go_on=goes_on.set)
    server = SessionServer(session)
    loop = asyncio.get_running_loop()
    loop.add_reader(copy.lifeline, ended.set)
    try:
        await world.start()
        await server.start()
        stopped = {"line": line.number, **line.as_dict()}
        ready = {**world.ready(), "session": server.ready(), "pid": copy.run_pid, "stopped": stopped}
        write_whole(folder / "ready.json", json.dumps(ready, indent=2) + "\n")
        copy.send({"ready": str(folder / "ready.json")})
        waiting = [asyncio.ensure_future(each.wait()) for each in (ended, goes_on)]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        await asyncio.sleep(0.1 if goes_on.is_set() else 0)  # who asked for it gets the answer
    finally:
        loop.remove_reader(copy.lifeline)
        await server.close()
        await world.stop()
    return goes_on.is_set()
