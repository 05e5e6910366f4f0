"""APIServices of other servers: which groups they have, and where those servers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import SERVICES, Resource
from mews.kube.emulated.core.store.kinds import GroupVersion, version_rank
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.networking.service_places import places_of

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
_PORT = 443
_OF_DEFINITIONS = (1000, 100)
"""Priorities of the group and the version of custom kinds (kube-aggregator controllers/autoregister, crdregistration).
"""


class UnresolvedError(Exception):
    """No Service says where the server is."""


class RemoteApi(Struct, frozen=True):
    """One APIService that has a Service: ``bundle`` in base64, ``available`` as its condition says."""

    name: str
    group: str
    version: str
    namespace: str
    service: str
    port: int
    bundle: str
    insecure: bool
    priorities: tuple[int, int]
    available: bool

    @property
    def key(self) -> GroupVersion:
        """Group and version."""
        return self.group, self.version

    @property
    def path(self) -> str:
        """Below which all of it is."""
        return f"/apis/{self.group}/{self.version}"

    @property
    def backend(self) -> tuple[str, str, int]:
        """The server: several groups may be one's."""
        return self.namespace, self.service, self.port


class ServerPlace(Struct, frozen=True):
    """Where a server is: the address by which upstream calls it, and those of the pods behind it."""

    shown: str
    places: tuple[tuple[str, int], ...]


def remote_api(obj: Object) -> RemoteApi | None:
    """Return what an APIService says of another server; None where this one answers."""
    spec = obj["spec"]
    backend: Mapping[str, Any] | None = spec.get("service")
    if backend is None or not spec.get("group"):
        return None
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return RemoteApi(
        name=name_of(obj),
        group=spec["group"],
        version=spec.get("version", ""),
        namespace=backend.get("namespace", ""),
        service=backend.get("name", ""),
        port=backend.get("port") or _PORT,
        bundle=spec.get("caBundle") or "",
        insecure=bool(spec.get("insecureSkipTLSVerify")),
        priorities=_priorities(spec),
        available=any(each.get("type") == "Available" and each.get("status") == "True" for each in conditions),
    )


def _priorities(spec: Mapping[str, Any]) -> tuple[int, int]:
    return spec.get("groupPriorityMinimum", 0), spec.get("versionPriority", 0)


def remote_apis(store: Store) -> Iterator[RemoteApi]:
    """Yield all of them."""
    for obj in store.shelf(store.kinds.of(API_SERVICES)).select(EVERYTHING):
        found = remote_api(obj)
        if found is not None:
            yield found


class Priorities:
    """In which order groups and their versions are listed, by their APIServices."""

    def __init__(self, store: Store) -> None:
        self._of: dict[GroupVersion, tuple[int, int]] = {}
        for obj in store.shelf(store.kinds.of(API_SERVICES)).select(EVERYTHING):
            spec = obj["spec"]
            self._of[spec.get("group") or "", spec.get("version") or ""] = _priorities(spec)

    def of_group(self, group: str) -> int:
        """Return the highest of its versions; that of a definition's where no APIService is there."""
        found = [priorities[0] for (name, _), priorities in self._of.items() if name == group]
        return max(found, default=_OF_DEFINITIONS[0])

    def of_version(self, group: str, version: str) -> tuple[Any, ...]:
        """Sorts the versions of a group, the preferred one first."""
        return -self._of.get((group, version), _OF_DEFINITIONS)[1], version_rank(version)


def place_of(store: Store, api: RemoteApi) -> ServerPlace:
    """Return where a server is, as upstream's resolver of ClusterIPs finds it (k8s.io/apiserver/pkg/util/proxy).

    Raises UnresolvedError.
    """
    service = store.find(store.kinds.of(SERVICES), api.namespace, api.service)
    if service is None:
        raise UnresolvedError(f'service "{api.service}" not found')
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        host = str(spec.get("externalName", ""))
        return ServerPlace(f"{host}:{api.port}", ((host, api.port),))
    address = spec.get("clusterIP") or ""
    if address in ("", "None"):
        raise UnresolvedError(f'cannot route to service with ClusterIP "{address}"')
    port = next((each for each in spec.get("ports") or () if each.get("port") == api.port), None)
    if port is None:
        raise UnresolvedError(f'no service port {api.port} found for service "{api.service}"')
    shown = f"[{address}]:{api.port}" if ":" in address else f"{address}:{api.port}"
    return ServerPlace(shown, tuple(places_of(store, api.namespace, api.service, str(port.get("name") or ""))))
