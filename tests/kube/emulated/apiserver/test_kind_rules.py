"""Rules of kinds are named as texts and imported when they are asked for: one that is wrong must not wait for that."""

from mews.kube.clock import stream
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store.parts import part
from mews.kube.emulated.kinds.disabled_features import GATED_HOOKS
from mews.kube.emulated.kinds.later_rules import STAMPS
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


def test_all_that_gates_releases_and_posts_name_is_there():
    gated = [reference for _, hooks in GATED_HOOKS.values() for reference in hooks.values() if reference is not None]
    posted = [reference for rules in map(part, RULES.values()) for reference in rules.posts.values()]
    named = [*gated, *posted, *(reference for _, reference in STAMPS.values())]
    assert [reference for reference in named if not callable(part(reference))] == []
    table = merged(names()[-1], "strategies.json")
    words = [word for lines in table.values() for line in lines.values() for word in line.split()]
    views = [word.removeprefix("view=") for word in words if word.startswith("view=")]
    shapes = [word.removeprefix("shape=") for word in words if word.startswith("shape=")]
    assert len(views) > 1
    assert len(shapes) > 1
    for reference in (*views, *(f"{each}:{name}" for each in shapes for name in ("shown", "stored"))):
        part(reference)
