"""Somebody's own decisions as an oracle: a Go file of ours is built into a package of their module and asked case by
case.

The file has one test, ``TestMewsAnswers``, that reads a JSON document a line from ``$MEWS_CASES`` and writes one a line
to ``$MEWS_ANSWERS``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.upstream.building import ModuleTests, NotBuiltError, cache_folder, run_go

_ANSWER_S = 300


@dataclass(frozen=True, slots=True)
class UpstreamAnswers:
    """``source``: our Go file; ``package``: the folder of the package that it is built into."""

    module: str
    version: str
    package: str
    source: Path

    def built(self) -> Path:
        """The program, built where it is not there yet.

        Raises NotBuiltError with the reason.
        """
        key = hashlib.sha256(self.source.read_bytes() + self.package.encode()).hexdigest()[:12]
        out = cache_folder() / f"{self.package.rpartition('/')[2]}-{key}-{self.version}.test"
        if out.is_file():
            return out
        with TemporaryDirectory(prefix="mews-answers-") as made:  # Go replaces no file of its module cache
            found = ModuleTests(self.module, self.version, "").folder()
            module = Path(shutil.copytree(found, Path(made) / "module", copy_function=shutil.copyfile))
            for each in (module, *module.rglob("*")):
                if each.is_dir():
                    each.chmod(0o755)  # as that cache is, it could not be taken away
            folder = module / self.package
            shutil.copyfile(self.source, folder / self.source.name)
            part = Path(made) / "program"
            run_go("test", "-c", "-vet=off", "-o", str(part), ".", cwd=folder, flags="")
            shutil.copyfile(part, out.with_suffix(".part"))
        out.with_suffix(".part").chmod(0o755)
        out.with_suffix(".part").replace(out)
        return out

    def to(self, cases: Iterable[Any]) -> Sequence[Any]:
        """What upstream answers to each.

        Raises NotBuiltError where the program cannot be built or fails.
        """
        program = self.built()
        with TemporaryDirectory(prefix="mews-answers-") as folder:
            asked, answered = Path(folder) / "cases", Path(folder) / "answers"
            asked.write_text("".join(json.dumps(each) + "\n" for each in cases), encoding="utf-8")
            env = {**os.environ, "MEWS_CASES": str(asked), "MEWS_ANSWERS": str(answered)}
            command = [str(program), "-test.run", "^TestMewsAnswers$"]
            done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=_ANSWER_S)
            if done.returncode != 0:
                raise NotBuiltError(f"{program.name}: {(done.stdout + done.stderr).strip()[-500:]}")
            return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
