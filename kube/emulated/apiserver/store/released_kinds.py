"""The built-in kinds of a release: the table of the first one, and what the release's discovery says (``kinds.json``).

A line there is the kind and its words: ``cluster``, ``shortNames=``, ``categories=``, ``verbs=``, ``gate=`` (without it
the kind is not served), ``stored=`` (the stored version, where it is another), ``sub=NAME:KIND:VERBS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from mews.kube.api.resources import Resource
from mews.kube.emulated.apiserver.store.builtin import BUILTIN
from mews.kube.emulated.apiserver.store.kinds import ALL_VERBS, Kind, Registry, Subresource, version_rank
from mews.kube.emulated.apiserver.store.views import VERSIONED
from mews.kube.releases.cluster_release import ClusterRelease
from mews.kube.releases.release_data import merged, read


def kinds_of(release: ClusterRelease) -> Registry:
    """Return all kinds that a cluster of that release serves."""
    if release.is_default:
        return Registry(BUILTIN)
    table = merged(release.name, "kinds.json")
    groups = {group: rank for rank, group in enumerate(read(release.name, "release.json")["groups"])}
    served = sorted(filter(release.serves, table), key=lambda each: _rank(each, groups))
    kinds = (kind for each in served for kind in _kinds(release, each, table[each]))
    return Registry(tuple(_as_views(kinds)), release.name)


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
    known = _first(group, version, plural) or _new(resource)
    return replace(
        known,
        stored_version=given.get("stored", ("",))[0],
        resource=resource,
        release=release.name,
        verbs=given.get("verbs", ALL_VERBS),
        short_names=given.get("shortNames", ()),
        categories=given.get("categories", ()),
        subresources=subresources,
        status=any(sub.name == "status" for sub in subresources),
    )


@cache
def _first(group: str, version: str, plural: str) -> Kind | None:
    """Return the kind of the first release's table, in that version or in the one that is stored."""
    found = [kind for kind in BUILTIN if (kind.resource.group, kind.plural) == (group, plural)]
    return next((kind for kind in found if kind.resource.version == version), found[0] if found else None)


def _new(resource: Resource) -> Kind:
    """Return a kind that the first release did not have, or not in a version that is served by default."""
    storage = (resource.group, resource.plural)
    return Kind(resource, resource.kind.lower(), storage=storage, generation=True)


def _subresource(text: str, resource: Resource) -> Subresource:
    name, kind, verbs = text.split(":")
    *owner, bare = kind.split("/")
    group, version = ("", resource.version) if resource.group == "" else (resource.group, resource.version)
    if owner:
        group, version = ("", owner[0]) if len(owner) == 1 else (owner[0], owner[1])
    return Subresource(name, tuple(verbs.split(",")), bare, group, version)
