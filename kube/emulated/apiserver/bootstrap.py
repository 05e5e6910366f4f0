"""What a fresh cluster holds (contract apiserver.md section 3)."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from functools import partial

from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES, PRIORITY_CLASSES
from mews.kube.emulated.apiserver.plugins import GUARDS, PLUGINS
from mews.kube.emulated.core.admission.chain import AdmissionChain
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.released_kinds import kinds_of
from mews.kube.emulated.core.store.shelf import HISTORY
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds import namespaces
from mews.kube.emulated.kinds.registry import rules_of
from mews.kube.emulated.packs.policies.policy_admission import POLICIES
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease
from mews.kube.releases.feature_gates import FeatureGates

_NEED_CONTROLLERS = ("ServiceAccount",)
"""Admission plugins that look for what controllers make; envtest switches the same ones off."""

_NAMESPACES = ("kube-system", "kube-public", "default", "kube-node-lease")

_TOKEN_TRACKING = "kube-apiserver-legacy-service-account-token-tracking"

_CLASSES = (
    ("system-node-critical", 2_000_001_000, "that must not be moved from their current node."),
    (
        "system-cluster-critical",
        2_000_000_000,
        "that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def fresh_store(
    now: Callable[[], float],
    rng: random.Random,
    *,
    history: int = HISTORY,
    attended: bool = False,
    disabled_admission_plugins: Collection[str] = (),
    release: ClusterRelease = STANDARD,
) -> Store:
    """Return a store with the rules of all kinds, which holds what a fresh cluster holds: the four namespaces and the
    two system priority classes. ``now`` gives unix seconds, ``rng`` uids and generated names; ``release`` says which
    Kubernetes the cluster is. ``attended`` when controllers run beside it: then pods need service accounts, and
    policies get their status."""
    store = Store(now, rng, rules=partial(_rules_of, release.gates), kinds=kinds_of(release), history=history)
    disabled = {*disabled_admission_plugins, *(() if attended else _NEED_CONTROLLERS)}
    store.admission = AdmissionChain(PLUGINS, guards=GUARDS, disabled=disabled)
    store.listen(partial(namespaces.attend, store))
    if attended:
        store.listen(partial(_attend_policies, store))
    _furnish(store)
    return store


def _attend_policies(store: Store, kind: Kind, _old: Object | None, new: Object | None) -> None:
    if kind.resource != POLICIES:
        return
    from mews.kube.emulated.packs.policies import type_checking  # and with it CEL, which few worlds need

    type_checking.attend(store, kind, new)


def _rules_of(gates: FeatureGates, kind: Kind) -> Rules:
    if not kind.custom:
        return rules_of(kind, gates)
    from mews.kube.emulated.packs.definitions.custom_rules import custom_rules  # and with it schemas and their CEL

    return custom_rules(kind)


def _furnish(store: Store) -> None:
    namespaces, classes = store.kinds.of(NAMESPACES), store.kinds.of(PRIORITY_CLASSES)
    for name in _NAMESPACES:
        create(store, namespaces, "", {"metadata": {"name": name}})
    for name, value, text in _CLASSES:
        body: Object = {"metadata": {"name": name}, "value": value}
        create(store, classes, "", {**body, "description": f"Used for system critical pods {text}"})


def note_legacy_tokens(store: Store) -> None:
    """Note since when tokens of old are tracked, as kube-apiserver does when it starts to serve."""
    kind = store.kinds.of(CONFIGMAPS)
    if store.find(kind, "kube-system", _TOKEN_TRACKING) is None:
        body: Object = {"metadata": {"name": _TOKEN_TRACKING}, "data": {"since": store.timestamp()[:10]}}
        create(store, kind, "kube-system", body)
