"""Runs as the pages get them: of a scenario that was really run, and made by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from mews.harness.catalogue.files import file_of
from mews.harness.engine import Engine
from mews.harness.journal import Journal
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import load_scenario
from mews.harness.scenario.result import Result

EVIL = '</script><img src=x onerror="window.hacked=1"><b>&amp;\u2028'
"""What must stay text wherever it comes from."""


@cache
def run_of(name: str, seed: int = 1, **overrides: str) -> Run:
    """A shipped scenario in virtual time."""
    scenario = load_scenario(file_of("scenario", Path(name)), overrides)
    return Engine(RunOptions("embedded", "virtual", 1.0)).run(scenario, seed)


def lines_of(run: Run) -> list[dict[str, Any]]:
    """Its journal as a session's server sends it."""
    return [{"number": line.number, **line.as_dict()} for line in run.lines]


def hand_made() -> Run:
    """A run that failed and broke an invariant, all its names hostile."""
    now = [0.0]
    journal = Journal(lambda: now[0])

    def write(t: float, *words: str, **fields: Any) -> int:
        now[0] = t
        return journal.write(*words, **fields).number

    gpu = {"device": "d1", "uuid": "GPU-1", "gpuid": "0-d1"}
    name = EVIL.replace("/", "")
    pod = f"pod/default/{name}"
    write(0, "chassis", "chassis/A", "table", pool="p", ports={"1": "h1", "2": "h2"},
          devices={"d1": {"uuid": "GPU-1", "gpuid": "0-d1", "port": "1", "host": "h1"}})  # fmt: skip
    write(
        0, "host", "host/h1", "table", devices={"0-d1": {**gpu, "kind": "GPU", "bdf": "b", "minor": 0, "healthy": True}}
    )
    write(1, "step", EVIL, "begun", step=1, do="wait", name=EVIL)
    write(2, "api", pod, "created", uid="u1", scheduler="s", node="", phase="Pending", requests={"x/gpu": 1})
    write(3, "api", pod, "bound", uid="u1", node="h1")
    write(3, "kubelet", "kubelet/h1", "allocated", pod=f"default/{name}", uid="u1", resource="x/gpu", devices=["0-d1"])
    write(4, "api", pod, "phase", uid="u1", phase="Running", reason="")
    write(5, "fault", "chassis/A", "added", fault="f1", kind=EVIL)
    broke = write(6, "chassis", "chassis/A", "detached", **gpu, port=None, host=None, old_port="1", old_host="h1")
    write(7, "invariant", "2", "violated", what=EVIL, first=broke)
    write(8, "step", EVIL, "failed", step=1, do="wait", reason=EVIL)
    failure = {"step": 1, "steps": 3, "do": "wait", "name": EVIL, "awaited": f"A {EVIL}", "seen": f"B {EVIL}",
               "waited_s": 7.0, "deadlock": False, "hint": ""}  # fmt: skip
    violation = {"invariant": 2, "name": "in use", "what": EVIL, "first": broke}
    result = Result(EVIL, EVIL, "embedded", "virtual", 1, "failed", EVIL, 8.0, 0.1, {EVIL: 1.5, "mean_wait_s": 2.0},
                    {"mean_wait_s": 1.0}, (violation,), failure=failure)  # fmt: skip
    return Run(result, journal.lines())
