"""Kubernetes' own CEL as a program: expressions in, answers out (``main.go``)."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.upstream.building import KUBERNETES, cache_folder, run_go

_MODULE = """module judge
go 1.24.0
require k8s.io/apiserver {version}
require k8s.io/apimachinery {version}
"""


def judge() -> Path:
    """The program, built once for each of its sources.

    Raises NotBuiltError with the reason.
    """
    source = Path(__file__).with_name("main.go")
    out = cache_folder() / f"cel-{KUBERNETES}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not out.is_file():
        folder = out.with_suffix(".build")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copyfile(source, folder / "main.go")
        (folder / "go.mod").write_text(_MODULE.format(version=KUBERNETES.replace("v1.", "v0.")), encoding="utf-8")
        run_go("mod", "tidy", cwd=folder)
        run_go("build", "-o", str(out.with_suffix(".part")), ".", cwd=folder)
        out.with_suffix(".part").replace(out)
        shutil.rmtree(folder)
    return out


def answers_of(expressions: Sequence[str]) -> dict[str, Any]:
    """The answers, by expression. Go goes through maps in any order: what does not come twice alike is left out."""
    rounds = [_asked(expressions) for _ in range(3)]
    return {
        text: first
        for text, first, *others in zip(expressions, *rounds, strict=True)
        if first == others[0] == others[1]
    }


def _asked(expressions: Sequence[str]) -> list[Any]:
    given = "".join(json.dumps(text) + "\n" for text in expressions)
    done = subprocess.run([judge()], input=given, capture_output=True, text=True, timeout=600, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
