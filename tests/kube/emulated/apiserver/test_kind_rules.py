"""Rules of kinds are named as texts and imported when they are asked for: one that is wrong must not wait for that."""

from mews.kube.clock import stream
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.parts import part
from mews.kube.emulated.kinds.registry import RULES, rules_of
from mews.kube.releases.release_data import merged, names


def test_every_kind_has_rules_and_no_rules_are_of_none():
    kinds = list(fresh_store(lambda: 0.0, stream(1, "store")).kinds)
    assert [kind.qualified for kind in kinds if not isinstance(rules_of(kind), Rules)] == []
    assert [name for name, reference in RULES.items() if not isinstance(part(reference), Rules)] == []
    known = {
        ".".join(filter(None, (plural, group.rpartition("/")[0])))
        for name in names()
        for group, plurals in merged(name, "kinds.json").items()
        for plural in plurals
    }
    assert set(RULES) <= known
