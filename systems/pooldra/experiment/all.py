"""All experiments on devices that are attached before a pod is bound."""

from __future__ import annotations

from mews.kube.system.experiment import Experiment
from mews.systems.pooldra.experiment.hand_over import ATTACH_BEFORE_BIND
from mews.systems.pooldra.experiment.schedulers import SCHEDULERS

EXPERIMENTS: tuple[Experiment, ...] = (ATTACH_BEFORE_BIND, SCHEDULERS)
"""What ``mews experiment --list`` shows of it."""
