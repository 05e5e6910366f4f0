"""All experiments of KubeComp, in the order of the paper."""

from __future__ import annotations

from mews.kube.system.experiment import Experiment
from mews.systems.kubecomp.experiment.complexity import COMPLEXITY
from mews.systems.kubecomp.experiment.fig8 import FIG8
from mews.systems.kubecomp.experiment.fig9 import FIG9
from mews.systems.kubecomp.experiment.fig10 import FIG10
from mews.systems.kubecomp.experiment.fig11 import FIG11
from mews.systems.kubecomp.experiment.fig12 import FIG12
from mews.systems.kubecomp.experiment.fig13 import FIG13
from mews.systems.kubecomp.experiment.overhead import OVERHEAD
from mews.systems.kubecomp.experiment.table3 import TABLE3

EXPERIMENTS: tuple[Experiment, ...] = (FIG8, FIG9, FIG10, FIG11, FIG12, FIG13, TABLE3, OVERHEAD, COMPLEXITY)
"""What ``mews experiment --list`` shows of it."""
