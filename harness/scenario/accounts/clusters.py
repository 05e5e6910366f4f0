"""What each ``--cluster`` does with the keys of a scenario. The embedded cluster honours all of them: it is what the
others are held against.

What a cluster cannot do at all skips the scenario (``requirements.foreseen``); here stands what a run goes on without.
A key that no table has is named in every run on those clusters, until somebody declares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mews.harness.backends import DEFAULT_BACKEND
from mews.harness.scenario.accounts.account import HONOURED, KeyAccount, KeyRule, UnplayedKey, harmless, ignored
from mews.harness.scenario.accounts.steps import EVERY_STEP, OF_SCENARIOS
from mews.harness.scenario.model import Scenario
from mews.systems import registry

_READ = harmless("names and texts, put in place as the file is read")
_EVERYWHERE = (
    *("hardware", "seed", "timeout", "stepTimeout", "bounds", "objects", "images", "unknownImages", "requires.**"),
    *("workload.trace", "workload.select", "workload.jobs.**", "workload.types.**", "workload.duration"),
    *("workload.durationPerGpu", "workload.gate.pending", "workload.gate.every", "workload.pod.**"),
    *("tail", "quiet", "order", "judgedBy", "disruptions.*.at", "disruptions.*.since", "disruptions.*.line"),
    *("metrics.**", "invariants", "expects", "stack.dialect", "stack.replace.**", "stack.extenders.**"),
)
"""What the harness does itself, or foresees."""
_ON_STEPS = ("name", "timeout", "outputs.**", *EVERY_STEP, *OF_SCENARIOS)
_OWN_SCHEDULER = "the kube-scheduler of the cluster runs as it is"
_OWN_CONTROLLERS = "the cluster's kube-controller-manager runs all that it is configured to run"
_OWN_RELEASE = "the cluster's API server has the features and API versions that it was started with"
_OWN_CLASSES = ignored(
    "only embedded clusters make folders: claims go to the classes that the cluster has", but=("none",)
)
_REAL: Mapping[str, KeyRule] = {
    "stack.defaultScheduler": ignored(_OWN_SCHEDULER),
    "stack.defaultScheduler.**": ignored(_OWN_SCHEDULER),
    "stack.controllers.run": ignored(_OWN_CONTROLLERS),
    "stack.controllers.program": ignored(_OWN_CONTROLLERS, but=("kube-controller-manager",)),
    "stack.kubelet.**": ignored("real kubelets run as they are"),
    "stack.kubernetes": ignored("the cluster is of the release that it is", but=("1.34",)),
    "stack.featureGates.**": ignored(_OWN_RELEASE),
    "stack.runtimeConfig.**": ignored(_OWN_RELEASE),
    "stack.metrics": ignored("whether metrics-server runs is the cluster's own affair", but=("on",)),
    "stack.profile": ignored("pods cost on real nodes what they cost there", but=("instant",)),
}
_EMULATED: Mapping[str, KeyRule] = dict.fromkeys(
    (
        "stack.defaultScheduler.**",
        "stack.controllers.run",
        "stack.controllers.program",
        "stack.profile",
        "stack.metrics",
        "stack.kubelet.**",
        "stack.kubernetes",
        "stack.featureGates.**",
        "stack.runtimeConfig.**",
    ),
    HONOURED,
)


def cluster_account(cluster: str) -> KeyAccount:
    """Return the rules of ``--cluster``."""
    return KeyAccount(f"--cluster {cluster}", _rules(cluster))


@cache
def _rules(cluster: str) -> Mapping[str, KeyRule]:
    steps = (f"{part}.*.{key}" for part in ("steps", "disruptions", "catch", "finally") for key in _ON_STEPS)
    return {
        **dict.fromkeys(("apiVersion", "kind", "metadata.**", "bindings", "templates"), _READ),
        **dict.fromkeys((*_EVERYWHERE, *steps), HONOURED),
        **{f"stack.{name}.**": HONOURED for name in registry.names()},
        **(_EMULATED if cluster in ("embedded", "control-plane") else _REAL),
        "stack.storage": HONOURED if cluster == DEFAULT_BACKEND else _OWN_CLASSES,
    }


def left_out(scenario: Scenario, cluster: str) -> tuple[UnplayedKey, ...]:
    """Return what of the scenario a run on that cluster goes on without."""
    account = cluster_account(cluster)
    return (*account.ignored(scenario), *account.refused(scenario))
