"""What a served cluster holds from its first second, beside what every store is born with (``bootstrap``).

Facts of a bare kube-apiserver 1.34: RBAC policy, flow control, APIServices, its own Service, its range of addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from urllib.parse import urlsplit

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import SERVICES, Resource
from mews.kube.emulated.core.objects import update
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.deletion import delete
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import AUTHENTICATED, MASTERS, User

_SERVICE, _RANGE, _ADDRESS = "kubernetes", "10.96.0.0/16", "10.96.0.1"
_CIDRS = Resource("networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", namespaced=False)
_ADDRESSES = Resource("networking.k8s.io", "v1", "ipaddresses", "IPAddress", namespaced=False)
_ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_SERVER = WriteRequest(User("system:apiserver", (MASTERS, AUTHENTICATED)), "kube-apiserver")


def furnish(store: Store, url: str) -> None:
    """Create what is not there, for a server at that URL."""
    for given in json.loads(files(__package__).joinpath("first_objects.json").read_text("utf-8")):
        group, plural = given.pop("group"), given.pop("plural")
        kind = store.kinds.find(group, "v1", plural)
        assert kind is not None
        _make(store, kind, given, _condition(store, plural))
    condition = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}
    cidr = {
        "metadata": {"name": _SERVICE, "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
        "spec": {"cidrs": [_RANGE]},
    }
    _make(store, store.kinds.of(_CIDRS), cidr, {**condition, "lastTransitionTime": store.timestamp()})
    _furnish_service(store, url)


def _condition(store: Store, plural: str) -> Object | None:
    """Return what the status says, for kinds whose controller is the API server itself."""
    if plural != "apiservices":
        return None
    text = "Local APIServices are always available"
    condition = {"type": "Available", "status": "True", "reason": "Local", "message": text}
    return {**condition, "lastTransitionTime": store.timestamp()}


def _make(store: Store, kind: Kind, body: Object, condition: Object | None = None) -> None:
    place, name = namespace_of(body) if kind.resource.namespaced else "", name_of(body)
    if store.find(kind, place, name) is not None:
        return
    made = create(store, kind, place, body, _SERVER)
    if condition is not None:
        ready = {**made, "status": {"conditions": [condition]}}
        update.replace(store, kind, place, name, ready, subresource="status", request=_SERVER)


def _furnish_service(store: Store, url: str) -> None:
    """The API server's own Service, and where it is: on loopback, as the pods are."""
    where = urlsplit(url)
    port = {"name": "https", "port": where.port, "protocol": "TCP"}
    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec = {
        "clusterIP": _ADDRESS,
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": where.port}],
        "type": "ClusterIP",
    }
    metadata: Object = {"name": _SERVICE, "namespace": "default", "labels": labels}
    _make(store, store.kinds.of(SERVICES), {"metadata": metadata, "spec": spec})
    skipped = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subsets = [{"addresses": [{"ip": where.hostname}], "ports": [port]}]
    endpoints = {"metadata": {"name": _SERVICE, "namespace": "default", "labels": skipped}, "subsets": subsets}
    piece = {
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": _SERVICE}},
        "addressType": "IPv6" if ":" in str(where.hostname) else "IPv4",
        "endpoints": [{"addresses": [where.hostname], "conditions": {"ready": True}}],
        "ports": [port],
    }
    for resource, body in ((_ENDPOINTS, endpoints), (_SLICES, piece)):
        try:
            _make(store, store.kinds.of(resource), body)
        except ApiError:  # an address on which a server may listen, but which none may be told to ask
            continue


def keep_addresses(store: Store) -> Callable[[], None]:
    """Return an IPAddress for each address of a Service, from now on, as the allocator of kube-apiserver has them. Call
    the result to stop."""
    services = store.kinds.of(SERVICES)

    def on_commit(kind: Kind, old: Object | None, new: Object | None) -> None:
        if kind.resource == SERVICES and (old is None or new is None or old["spec"] != new["spec"]):
            _settle_addresses(store, old, new)

    for service in store.shelf(services).select(EVERYTHING):
        _settle_addresses(store, None, service)
    return store.listen(on_commit)


def _settle_addresses(store: Store, old: Object | None, new: Object | None) -> None:
    kind = store.kinds.of(_ADDRESSES)
    before, after = _addresses(old), _addresses(new)
    for address in before - after:
        if store.find(kind, "", address) is not None:
            delete(store, kind, "", address)
    for address in sorted(after - before):
        assert new is not None
        labels = {
            "ipaddress.kubernetes.io/ip-family": "IPv6" if ":" in address else "IPv4",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }
        parent = {"resource": "services", "namespace": namespace_of(new), "name": name_of(new)}
        _make(store, kind, {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}})


def _addresses(service: Object | None) -> set[str]:
    given = [] if service is None else service["spec"].get("clusterIPs") or []
    return {address for address in given if address and address != "None"}
