"""A copy of the checkout in which one file may be wrong, and pytest in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tests.mutate.faults import Mutant
from tests.planted.rooms import ROOT

_OURS = ("MEWS_", "KUBE", "PYTEST_", "MUTATE_")
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Reached(Struct, frozen=True):
    """A test, how long it took, and what it ran: file and first line of functions."""

    test: str
    took_s: float
    functions: frozenset[tuple[str, int]]


class Outcome(Struct, frozen=True):
    """What became of a mutant: by which test it was killed, "" where it lives."""

    mutant: Mutant
    killer: str
    tests: int


class Checkout:
    """Files of the repository in a temporary folder, without any program that others built on the path."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mews-mutate-"))
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            source, target = ROOT / name, self.folder / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def reach(self, room: str) -> list[Reached]:
        """What each test of the room's folder runs, of those that pass here."""
        noted = self.folder / "reach.jsonl"
        self._pytest(room, {"MUTATE_REACH": str(noted), "MUTATE_ROOM": f"{self.folder / room}/"}, limit_s=3600.0)
        cut = len(f"{self.folder}/")
        found = []
        for line in noted.read_text(encoding="utf-8").splitlines():
            test, took_s, functions = json.loads(line)
            found.append(Reached(test, took_s, frozenset((file[cut:], first) for file, first in functions)))
        return found

    def judge(
        self, room: str, mutant: Mutant, first: Sequence[Reached], others: Sequence[Reached], *, limit_s: float
    ) -> Outcome:
        """Run these tests with the fault until one fails: ``first`` those that run its function."""
        target = self.folder / mutant.file
        kept = target.read_bytes()
        only, done = self.folder / "only.txt", self.folder / "done.txt"
        tests = list(dict.fromkeys(each.test for each in (*first, *others)))
        only.write_text("\0".join(tests), encoding="utf-8")
        done.unlink(missing_ok=True)
        target.write_text(mutant.text(), encoding="utf-8")
        try:
            ended = self._pytest(room, {"MUTATE_ONLY": str(only), "MUTATE_DONE": str(done)}, limit_s=limit_s)
        finally:
            target.write_bytes(kept)
        ran = done.read_text(encoding="utf-8").splitlines() if done.is_file() else []
        if ended == 0:
            return Outcome(mutant, "", len(ran))
        if ended is None:  # One hangs if those that run the function took far less without the fault.
            hangs = len(ran) < len(first) and sum(each.took_s for each in first) < limit_s / 3
            return Outcome(mutant, f"{tests[len(ran)]} (hangs)" if hangs else "", len(ran))
        return Outcome(mutant, ran[-1] if ran else "collection", len(ran))

    def _pytest(self, room: str, variables: Mapping[str, str], *, limit_s: float) -> int | None:
        """Its exit status; None where it was ended."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith(_OURS)}
        path = f"{Path(sys.executable).parent}:{_SYSTEM}"
        environment = {
            **kept,
            **variables,
            "PATH": path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": f"{self.folder / 'src'}:{self.folder}",
        }
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "tests.mutate.reach"]
        for unneeded in ("faker", "rerunfailures", "schemathesis"):
            options += ["-p", f"no:{unneeded}"]
        if "MUTATE_REACH" in variables:
            options.remove("-x")
        command = [sys.executable, "-m", "pytest", *options, f"tests/{room}"]
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
