"""CoHDI's own programs through the life cycle of a claim, with faults of the fabric manager drawn by a seed."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario
from mews.systems.cohdi.config import PROGRAMS
from tests.programs import foreign_program

FOLDER = Path(mews.scenarios.__file__).parent / "cohdi"
SCENARIO = FOLDER / "01-attach-and-give-back.yaml"
FAULTS: Mapping[str, Mapping[str, Any]] = {
    "refused": {"kind": "half-applied-attach", "says": False},
    "refused though done": {"kind": "lying-result", "says": False},
    "not applied": {"kind": "http-error", "status": 503, "when": "before"},
    "dropped before": {"kind": "dropped-connection", "when": "before"},
    "dropped after": {"kind": "dropped-connection", "when": "after"},
    "token ends before": {"kind": "token-ends", "when": "before"},
    "token ends after": {"kind": "token-ends", "when": "after"},
    "listed twice": {"kind": "listed-twice"},
}
"""What may happen to one request, by a name of ours; the first two are answered 409."""
ONLY: Mapping[str, str] = {"listed twice": "read", "refused": "attach"}
"""Those that strike one kind of operation."""


def programs(folder: Path) -> Path:
    """The folder with all three; the test is skipped without them."""
    for name in PROGRAMS:
        link = folder / name
        if not link.exists():
            os.symlink(foreign_program(f"cohdi/{name}"), link)
    return folder


def drawn(seed: int) -> Sequence[tuple[str, str]]:
    """Up to two faults, each the name of one and the operation that it strikes: the first goes through all of them seed
    by seed, with none among them; the second is drawn."""
    single = [(name, on) for name in FAULTS for on in _struck(name)]
    first = seed % (len(single) + 1)
    rng = random.Random(f"cohdi/{seed}")
    found = single[first : first + 1]
    return [*found, rng.choice(single)] if found and rng.random() < 0.3 else found


def _struck(name: str) -> Sequence[str]:
    return (ONLY[name],) if name in ONLY else ("attach", "detach")


def play(
    folder: Path,
    faults: Sequence[tuple[str, str]],
    *,
    cluster: str = "embedded",
    keep: Path | None = None,
    patience: str | None = None,
) -> Run:
    """The scenario with these faults added before its pod; ``keep`` takes the file that replays it, ``patience`` is the
    most that a step is waited for."""
    document = _document(SCENARIO, folder)
    for step in document["steps"] if patience else ():
        if "timeout" in step:
            step["timeout"] = patience
    steps = [{"fault": {"chassis": "A", "add": {**FAULTS[name], "operation": on, "count": 1}}} for name, on in faults]
    document["steps"][1:1] = steps
    text = yaml.safe_dump(document, sort_keys=False, width=120)
    if keep is not None:
        keep.write_text(text, encoding="utf-8")
    return Engine(RunOptions(cluster=cluster, time="wall")).run(parse_scenario(text, SCENARIO))


def play_file(path: Path, folder: Path) -> Run:
    """A scenario as it stands, with the programs of that folder."""
    return Engine(RunOptions(time="wall")).run(parse_scenario(yaml.safe_dump(_document(path, folder)), path))


def _document(path: Path, folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["stack"]["cohdi"]["programs"] = str(folder)
    return document
