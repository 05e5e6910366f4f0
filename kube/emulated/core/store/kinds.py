"""What a kind of object is to the store and the server: data. Those of a release are in ``released_kinds.py``;
CustomResourceDefinitions add to the registry at run time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.emulated.core.store import refusals
from mews.kube.releases.release_data import DEFAULT

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""Verbs of an ordinary kind, as discovery shows them."""


class Subresource(Struct, frozen=True):
    """``pods/status`` and the like: its verbs and the kind that travels through it."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    group: str = ""
    version: str = "v1"


class Column(Struct, frozen=True):
    """A column that a CustomResourceDefinition adds to ``kubectl get``."""

    name: str
    type: str
    json_path: str
    priority: int = 0
    description: str = ""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version, as a release of Kubernetes has it.

    ``storage`` names the shelf: kinds that share it are views of the same objects (core and new events).
    ``stored_version`` is the version that upstream stores, where it is another: discovery tells it as a hash;
    ``kept_in`` is the version whose objects a ``versioned`` view shows; ``view`` is that or names the ``KindView``;
    ``shape`` names the module whose ``shown`` and ``stored`` turn objects of that version into this one and back.
    ``field_words``: how the field of a selector is refused (quoted, typed). ``scale_paths`` are where replicas,
    status.replicas and the selector of a Scale come from. Lifecycle flags are those of contract apiserver.md sections 3
    and 7.
    """

    resource: Resource
    singular: str
    release: str = DEFAULT
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    storage: tuple[str, str] = ("", "")
    stored_version: str = ""
    kept_in: str = ""
    view: str = ""
    shape: str = ""
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    field_words: str = ""
    generation: bool = False
    status: bool = False
    must_name_version: bool = False
    put_creates: bool = False
    delete_answers_object: bool = False
    orphans: bool = False
    warning: str = ""
    scale_paths: tuple[str, str, str] = ("spec.replicas", "status.replicas", "")
    custom: bool = False
    schema: Mapping[str, Any] | None = field(default=None, hash=False, compare=False)
    forms: tuple[Callable[[Object], Object], Callable[[Object], Object]] | None = field(
        default=None, hash=False, compare=False
    )
    """Of a custom kind with several versions: how this one shows a stored object, and how it is stored."""

    @property
    def plural(self) -> str:
        """``pods``."""
        return self.resource.plural

    @property
    def qualified(self) -> str:
        """``pods`` or ``deployments.apps``, as in messages about an object that is missing."""
        return f"{self.plural}.{self.resource.group}" if self.resource.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """``Pod`` or ``Deployment.apps``, as in messages about an object that is invalid."""
        return f"{self.resource.kind}.{self.resource.group}" if self.resource.group else self.resource.kind

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource of that name."""
        return next((sub for sub in self.subresources if sub.name == name), None)


GroupVersion = tuple[str, str]


VersionRank = tuple[int, int, int, str]
_UNRANKED: VersionRank = (0, 0, 0, "")
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


def version_rank(version: str) -> VersionRank:
    """Sorts versions as Kubernetes does: v2, v1, v2beta1, v1beta2, v1alpha1, then others by their letters
    (apimachinery pkg/version/helpers.go)."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0), "")


class Registry:
    """All kinds served now, by group, version and plural. The first version of a group to be added is preferred."""

    def __init__(self, kinds: tuple[Kind, ...] = (), release: str = DEFAULT) -> None:
        self.release = release
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self.generation = 0
        self._grouped: tuple[int, dict[GroupVersion, list[Kind]]] = (-1, {})
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind, or serve it anew."""
        resource = kind.resource
        self._kinds[resource.group, resource.version, resource.plural] = kind
        self.generation += 1

    def remove(self, resource: Resource) -> None:
        """Stop serving a kind, as when its definition is deleted."""
        if self._kinds.pop((resource.group, resource.version, resource.plural), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind that serves a resource, or None."""
        return self._kinds.get((group, version, plural))

    def of(self, resource: Resource) -> Kind:
        """Return the kind of a resource; 404 when it is not served."""
        kind = self._kinds.get((resource.group, resource.version, resource.plural))
        if kind is None:
            raise refusals.unknown_resource()
        return kind

    def group_versions(self) -> Mapping[GroupVersion, Sequence[Kind]]:
        """Kinds by (group, version), the core group first, in order of registration; versions of a custom group by
        Kubernetes' priority, the preferred one first."""
        if self._grouped[0] != self.generation:  # every request asks
            self._grouped = (self.generation, self._group())
        return self._grouped[1]

    def _group(self) -> dict[GroupVersion, list[Kind]]:
        found: dict[GroupVersion, list[Kind]] = {}
        groups: dict[str, int] = {"": 0}
        for kind in self:
            groups.setdefault(kind.resource.group, len(groups))
            found.setdefault((kind.resource.group, kind.resource.version), []).append(kind)

        def rank(item: tuple[GroupVersion, list[Kind]]) -> tuple[int, VersionRank]:
            (group, version), kinds = item
            return groups[group], version_rank(version) if kinds[0].custom else _UNRANKED

        return dict(sorted(found.items(), key=rank))

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))
