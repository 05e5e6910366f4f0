"""All experiments on sharing GPUs."""

from __future__ import annotations

from mews.kube.system.experiment import Experiment
from mews.systems.gpushare.experiment.binpack import BINPACK
from mews.systems.gpushare.experiment.sharing import SHARING

EXPERIMENTS: tuple[Experiment, ...] = (SHARING, BINPACK)
"""What ``mews experiment --list`` shows of it."""
