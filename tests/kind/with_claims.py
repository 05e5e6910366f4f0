"""Scenarios with claims on a kind cluster."""

import pytest

from mews.harness.engine import Engine
from mews.harness.errors import RequirementError
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario


def passes(path, shared, artefacts, *, speed=1.0):
    """The scenario passes on that cluster; skipped where its nodes lack the containerd that it needs."""
    try:
        run = Engine(RunOptions("kind", "wall", speed), artefacts=artefacts, session=shared).run(load_scenario(path))
    except RequirementError as error:
        if "needs containerd" in str(error):
            pytest.skip(str(error))
        raise
    assert run.result.verdict == "passed", f"{run.result.reason}\n{run.result.report}"
    assert run.result.violations == ()
