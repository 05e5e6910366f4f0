"""Rules of kinds are named as texts and imported when they are asked for: one that is wrong must not wait for that."""

from mews.kube.clock import stream
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.released_kinds import kinds_of
from mews.kube.emulated.kinds.registry import RULES, rules_of
from mews.kube.releases.cluster_release import cluster_release, offered_versions
from mews.kube.releases.release_data import names


def test_every_kind_has_rules_and_no_rules_are_of_none():
    kinds = list(fresh_store(lambda: 0.0, stream(1, "store")).kinds)
    assert [kind.qualified for kind in kinds if not isinstance(rules_of(kind), Rules)] == []
    later = [
        kind
        for name in names()
        for kind in kinds_of(cluster_release(name, runtime=dict.fromkeys(offered_versions(name), True)))
    ]
    served = [*kinds, *later]
    assert set(RULES) <= {kind.qualified for kind in served}
