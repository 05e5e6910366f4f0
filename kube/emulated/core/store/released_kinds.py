"""The built-in kinds of a release, from two tables of its data.

``kinds.json`` has what its discovery says. A line is the kind and its words: ``cluster``, ``shortNames=``,
``categories=``, ``verbs=``, ``gate=`` (without it the kind is not served), ``stored=`` (the stored version, where it is
another), ``sub=NAME:KIND:VERBS``.

``strategies.json`` has what discovery does not say (pkg/registry/*/strategy.go, contract apiserver.md sections 3 and
7): ``generation`` (a change of the spec makes a new one), ``putCreates`` (``AllowCreateOnUpdate``), ``mustNameVersion``
(no ``AllowUnconditionalUpdate``), ``answersDeleted`` (a deletion answers with the object), ``orphans`` (of its
dependents), ``selectable=`` (fields of field selectors) and ``fieldWords=`` (how others are refused), ``view=`` and
``storage=`` (of a kind that shows the objects of another), ``shape=`` (of a version with other fields),
``deprecated=SINCE,INSTEAD``. What the first version of a group says holds for the others, too. A kind of no line there
makes a new generation, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from mews.kube.api.resources import Resource
from mews.kube.emulated.core.store.kinds import ALL_VERBS, Kind, Registry, Subresource, version_rank
from mews.kube.emulated.core.store.views import VERSIONED
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease
from mews.kube.releases.release_data import merged, read


def kinds_of(release: ClusterRelease) -> Registry:
    """Return all kinds that a cluster of that release serves."""
    return Registry(standard_kinds() if release.is_default else _served_by(release), release.name)


@cache
def standard_kinds() -> tuple[Kind, ...]:
    """Return what a cluster of the first release serves where nothing is switched on or off."""
    return _served_by(STANDARD)


def _served_by(release: ClusterRelease) -> tuple[Kind, ...]:
    table = merged(release.name, "kinds.json")
    groups = {group: rank for rank, group in enumerate(read(release.name, "release.json")["groups"])}
    served = sorted(filter(release.serves, table), key=lambda each: _rank(each, groups))
    kinds = (kind for each in served for kind in _kinds(release, each, table[each]))
    return tuple(_as_views(kinds))


def _as_views(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """The first version of a kind keeps the objects; others with no view of their own show them under their version."""
    kept: dict[tuple[str, str], str] = {}
    for kind in kinds:
        first = kept.setdefault(kind.storage, kind.resource.version)
        is_first = kind.view or kind.storage != (kind.resource.group, kind.plural) or first == kind.resource.version
        yield kind if is_first else replace(kind, view=VERSIONED, kept_in=first)


def _rank(api_version: str, groups: Mapping[str, int]) -> tuple[int, tuple[int, int, int, str]]:
    group, _, version = api_version.rpartition("/")
    return groups[group], version_rank(version)


def _kinds(release: ClusterRelease, api_version: str, lines: Mapping[str, str]) -> Iterator[Kind]:
    for plural, line in lines.items():
        words = line.split()
        gate = next((word[5:] for word in words if word.startswith("gate=")), "")
        if not gate or release.gates.on(gate):
            yield _kind(release, api_version, plural, words)


def _kind(release: ClusterRelease, api_version: str, plural: str, words: list[str]) -> Kind:
    group, _, version = api_version.rpartition("/")
    resource = Resource(group, version, plural, words[0], "cluster" not in words)
    pairs = [word.partition("=") for word in words]
    given = {key: tuple(value.split(",")) for key, equals, value in pairs if equals and key != "sub"}
    subresources = tuple(_subresource(value, resource) for key, _, value in pairs if key == "sub")
    return Kind(
        resource,
        resource.kind.lower(),
        release=release.name,
        stored_version=given.get("stored", ("",))[0],
        verbs=given.get("verbs", ALL_VERBS),
        short_names=given.get("shortNames", ()),
        categories=given.get("categories", ()),
        subresources=subresources,
        status=any(sub.name == "status" for sub in subresources),
        **_strategy(release, resource),
    )


_FLAGS = {
    "generation": "generation",
    "putCreates": "put_creates",
    "mustNameVersion": "must_name_version",
    "answersDeleted": "delete_answers_object",
    "orphans": "orphans",
}
"""A word of ``strategies.json``, and what of a ``Kind`` it sets."""


def _strategy(release: ClusterRelease, resource: Resource) -> dict[str, Any]:
    """Return what the release's strategies say of a kind, in that version and in the first one that they name."""
    table = merged(release.name, "strategies.json")
    storage = (resource.group, resource.plural)
    own = table.get(resource.api_version, {}).get(resource.plural)
    of_group = (lines for version, lines in table.items() if version.rpartition("/")[0] == resource.group)
    first = next((lines[resource.plural] for lines in of_group if resource.plural in lines), None)
    if first is None:
        return {"storage": storage, "generation": True}
    line = first if own in (None, first) else f"{first} {own}"
    words = {key: value for key, _, value in (word.partition("=") for word in line.split())}
    found: dict[str, Any] = {field: True for word, field in _FLAGS.items() if word in words}
    if "selectable" in words:
        found["selectable"] = tuple(words["selectable"].split(","))
    found["field_words"] = words.get("fieldWords", "")
    if "deprecated" in words:
        found["warning"] = _deprecation(resource, *words["deprecated"].split(","))
    group, slash, plural = words.get("storage", "").rpartition("/")
    found |= {name: words.get(name, "") for name in ("view", "shape")}
    return {**found, "storage": (group, plural) if slash else storage}


def _deprecation(resource: Resource, since: str, instead: str = "") -> str:
    """Return upstream's warning of a kind that goes (apiserver pkg/endpoints/deprecation)."""
    text = f"{resource.api_version} {resource.kind} is deprecated in {since}"
    version, _, kind = instead.rpartition("/")
    return f"{text}; use {version} {kind}" if instead else text


def _subresource(text: str, resource: Resource) -> Subresource:
    name, kind, verbs = text.split(":")
    *owner, bare = kind.split("/")
    group, version = ("", resource.version) if resource.group == "" else (resource.group, resource.version)
    if owner:
        group, version = ("", owner[0]) if len(owner) == 1 else (owner[0], owner[1])
    return Subresource(name, tuple(verbs.split(",")), bare, group, version)


_IN_EVERY_VERSION = frozenset(
    (
        *(f"{name}Options" for name in ("Create", "Delete", "Get", "List", "Patch", "Update")),
        *("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status", "WatchEvent"),
    )
)
_BESIDE: Mapping[str, tuple[str, ...]] = {
    "v1": ("List", "PodStatusResult", "RangeAllocation", "SerializedReference"),
}
"""Types of a version that no kind leads to (k8s.io/api/core/v1/register.go)."""


def is_registered(release: str, api_version: str, name: str) -> bool:
    """Return whether a group's version has a type of that name: a kind, a list of them, what goes through a subresource
    of one, or what every version has (apimachinery pkg/apis/meta/v1/register.go)."""
    return name in _registered(release, api_version)


@cache
def _registered(release: str, api_version: str) -> frozenset[str]:
    found = {*_IN_EVERY_VERSION, *_BESIDE.get(api_version, ())}
    for version, lines in merged(release, "kinds.json").items():
        for line in lines.values():
            kind, *words = line.split()
            if version == api_version:
                found |= {kind} if "verbs=create" in words else {kind, f"{kind}List"}
            through = [word.split(":")[1].rpartition("/") for word in words if word.startswith("sub=")]
            found |= {name for owner, _, name in through if (owner or version) == api_version}
    return frozenset(found)
