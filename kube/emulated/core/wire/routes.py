"""From a URL path to what it addresses (k8s.io/apiserver/pkg/endpoints/request)."""

from __future__ import annotations

from msgspec import Struct

from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.kinds import Kind, Registry

_SPECIAL = ("watch", "proxy")
_OF_THE_NAMESPACE_ITSELF = ("status", "finalize")


class Route(Struct, frozen=True):
    """A resource, an object of it, or a subresource. ``namespace`` is None across namespaces and for cluster scope;
    ``watched`` is the old way to ask for a watch, by the path."""

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    rest: str = ""
    watched: bool = False

    def kind(self, kinds: Registry) -> Kind:
        """Return the kind addressed; 404 when there is none, or it has no such subresource."""
        kind = kinds.find(self.group, self.version, self.plural)
        if kind is None:
            raise refusals.unknown_resource()
        if self.subresource and kind.subresource(self.subresource) is None:
            raise refusals.missing(kind, self.name) if kind.custom else refusals.unknown_resource()
        if self.namespace is not None and not kind.resource.namespaced:
            raise refusals.unknown_resource()
        if self.name and self.namespace is None and kind.resource.namespaced:
            raise refusals.unknown_resource()
        return kind

    @property
    def label(self) -> str:
        """``pods`` or ``pods/status``."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural


class NoRouteError(Exception):
    """A path that begins a resource's and does not go on (request/requestinfo.go); upstream answers 500 in plain
    text."""


def split(path: str) -> list[str]:
    """Return the parts of a path. Without a name of the namespace the objects of all are meant."""
    return [part for part in path.replace("/namespaces//", "/").split("/") if part]


def parse(parts: list[str]) -> Route | None:
    """Return the route of a split path such as ``["api", "v1", "namespaces", "n", "pods"]``; None when it is no
    resource's.

    Raises NoRouteError.
    """
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] in _SPECIAL and len(rest) == 1:
        path = "/".join(("", *parts))
        raise NoRouteError(f"failed to create RequestInfo: unable to determine kind and namespace from url, {path}")
    watched = rest[0] == "watch"
    rest = rest[1:] if watched else rest
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _OF_THE_NAMESPACE_ITSELF:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", ""][:3]
    return Route(group, version, plural, namespace, name, subresource, "/".join(rest[3:]), watched)
