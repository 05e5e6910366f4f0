"""The columns and cells of built-in kinds, release by release."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.api.resources import CRDS, Resource
from mews.kube.emulated.core.store.released_kinds import kinds_of
from mews.kube.emulated.core.wire.tables import table
from mews.kube.emulated.kinds.registry import rules_of
from mews.kube.releases.cluster_release import cluster_release, offered_versions
from mews.kube.releases.release_data import names

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
ALL_KINDS = [
    pytest.param(kind, id=f"{release} {kind.resource.api_version} {kind.plural}")
    for release in names()
    for kind in kinds_of(cluster_release(release, runtime=dict.fromkeys(offered_versions(release), True)))
    if "list" in kind.verbs
]
BORN = "2026-01-01T00:00:00Z"


def shown(kind: Any, **parts: Any) -> tuple[list[str], list[Any]]:
    """The columns of a kind, and the cells of an object with these parts."""
    obj = {"metadata": {"name": "x", "creationTimestamp": BORN}, **parts}
    made = table(kind, [obj], rules_of(kind).printer, now_s=1_767_225_720.0, metadata={})
    return [column["name"] for column in made["columnDefinitions"]], made["rows"][0]["cells"]


def of(release: str, resource: Resource) -> Any:
    return kinds_of(cluster_release(release)).of(resource)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_row_has_as_many_cells_as_there_are_columns(kind: Any) -> None:
    columns, cells = shown(kind, spec={}, status={}, involvedObject={}, regarding={}, value=1, provisioner="p")
    has_more = kind.plural == "ipaddresses"  # upstream gives them an age and no column for it
    assert len(cells) == len(columns) + has_more
    if "Name" in columns:
        assert cells[columns.index("Name")] == "x"


def test_accounts_show_their_secrets_in_the_first_release_alone() -> None:
    assert shown(of("1.34", ACCOUNTS)) == (["Name", "Secrets", "Age"], ["x", 0, "2m"])
    assert shown(of("1.35", ACCOUNTS)) == (["Name", "Age"], ["x", "2m"])


def test_definitions_show_more_since_1_37() -> None:
    names_ = {"kind": "Job", "shortNames": ["j", "js"]}
    versions = [{"name": "v2", "served": True}, {"name": "v1", "served": True, "storage": True}, {"name": "v0"}]
    spec = {"scope": "Cluster", "group": "x.test", "names": names_, "versions": versions}
    status = {"conditions": [{"type": "Established", "status": "True"}]}
    assert shown(of("1.36", CRDS), spec=spec, status=status) == (["Name", "Created At"], ["x", BORN])
    columns, cells = shown(of("1.37", CRDS), spec=spec, status=status)
    assert columns[1:3] == ["Scope", "Versions"]
    assert cells == ["x", "Cluster", "v1(storage),v2", BORN, "x.test", "Job", "j,js", True]


def test_events_of_both_groups_have_the_same_columns() -> None:
    core = Resource("", "v1", "events", "Event")
    found = [shown(of("1.34", kind), involvedObject={}, regarding={})[0] for kind in (core, EVENTS)]
    assert found[0] == found[1]
    assert found[0][0] == "Last Seen"
