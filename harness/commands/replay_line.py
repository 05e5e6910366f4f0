"""The command that plays a failed run again, and where its report is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mews.harness.backends import DEFAULT_BACKEND
from mews.harness.options import RunOptions
from mews.harness.report.run import Run


def replay_line(run: Run, options: RunOptions, overrides: Sequence[str]) -> str:
    """Return one line: the seed, the command, and the report where the run left one. ``overrides`` are those of
    ``--set``."""
    seed = run.result.seed
    words = ["mews", "run", run.result.path, "--seed", str(seed)]
    if options.cluster != DEFAULT_BACKEND:
        words += ["--cluster", options.cluster]
    elif options.time != "virtual":
        words += ["--time", options.time]
    if options.time != "virtual":
        words += ["--speed", f"{options.speed:g}"]
    for option, given in (("--dialect", options.dialect), ("--timeout", options.timeout_s)):
        words += [option, str(given)] if given is not None else []
    for override in overrides:
        words += ["--set", override]
    report = f"; report: {run.report}" if run.report is not None else ""
    return f"seed {seed} of {run.result.scenario} failed; replay: {shlex.join(words)}{report}"
