"""All experiments on fine-grained devices."""

from __future__ import annotations

from mews.kube.system.experiment import Experiment
from mews.systems.koordinator.experiment.fraction import FRACTION
from mews.systems.koordinator.experiment.links import LINKS

EXPERIMENTS: tuple[Experiment, ...] = (LINKS, FRACTION)
"""What ``mews experiment --list`` shows of it."""
