"""Koordinator's own scheduler plugin as an oracle: built with our Go file in its package, asked case by case."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.upstream.building import ModuleTests, NotBuilt, cache_folder, run_go

VERSION = "v1.6.0"
_MODULE = ModuleTests("github.com/koordinator-sh/koordinator", VERSION, "")
_SOURCE = Path(__file__).with_name("deviceshare_answers_test.go")
_ANSWER_S = 300


def built() -> Path:
    """The program, built where it is not there yet.

    Raises NotBuilt with the reason.
    """
    out = cache_folder() / f"deviceshare-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]}-{VERSION}.test"
    if out.is_file():
        return out
    with TemporaryDirectory(prefix="mews-koordinator-") as made:  # Go replaces no file of its module cache
        module = Path(shutil.copytree(_MODULE.folder(), Path(made) / "module", copy_function=shutil.copyfile))
        for each in (module, *module.rglob("*")):
            if each.is_dir():
                each.chmod(0o755)  # as that cache is, it could not be taken away
        folder = module / "pkg" / "scheduler" / "plugins" / "deviceshare"
        shutil.copyfile(_SOURCE, folder / _SOURCE.name)
        part = Path(made) / "program"
        run_go("test", "-c", "-vet=off", "-o", str(part), ".", cwd=folder, flags="")
        shutil.copyfile(part, out.with_suffix(".part"))
    out.with_suffix(".part").chmod(0o755)
    out.with_suffix(".part").replace(out)
    return out


def answers(program: Path, cases: Iterable[Any]) -> Sequence[Any]:
    """What upstream answers to each.

    Raises NotBuilt where the program fails.
    """
    with TemporaryDirectory(prefix="mews-koordinator-") as folder:
        asked, answered = Path(folder) / "cases", Path(folder) / "answers"
        asked.write_text("".join(json.dumps(each) + "\n" for each in cases), encoding="utf-8")
        env = {**os.environ, "MEWS_CASES": str(asked), "MEWS_ANSWERS": str(answered)}
        command = [str(program), "-test.run", "^TestMewsAnswers$"]
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=_ANSWER_S)
        if done.returncode != 0:
            raise NotBuilt(f"{program.name}: {(done.stdout + done.stderr).strip()[-500:]}")
        return [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
