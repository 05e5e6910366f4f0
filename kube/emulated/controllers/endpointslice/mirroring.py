"""Mirrors Endpoints that users write for Services without a selector into EndpointSlices (k8s.io/kubernetes
pkg/controller/endpointslicemirroring)."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.objects import Object, annotations_of, is_deleting, labels_of, name_of, namespace_of
from mews.kube.api.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mews.kube.component import Context
from mews.kube.emulated.controllers.endpointslice.policy import MANAGED, SERVICE
from mews.kube.emulated.controllers.owners import Informers, controller_reference
from mews.kube.emulated.controllers.pod_control import is_terminating_namespace
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, SyncLoop
from mews.kube.events import EventRecorder, reference

US = "endpointslicemirroring-controller.k8s.io"
MOST_PER_SUBSET = 1000
_SKIP = "endpointslice.kubernetes.io/skip-mirror"
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_NOT_COPIED = ("endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration")


def is_mirrored(endpoints: Object) -> bool:
    """Return whether Endpoints are such that a user may have written them for a Service."""
    return labels_of(endpoints).get(_SKIP) != "true" and _LEADER not in annotations_of(endpoints)


def repacked(subsets: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the subsets with each address once, among those that have all of its ports; an address that is ready
    somewhere is ready."""
    ports_of: dict[str, dict[str, Mapping[str, Any]]] = {}
    known: dict[str, tuple[Mapping[str, Any], bool]] = {}
    for subset in subsets:
        ports = {json.dumps(_port(port), sort_keys=True): port for port in subset.get("ports") or ()}
        for field, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(field) or ():
                mark = json.dumps([address["ip"], (address.get("targetRef") or {}).get("uid", ""), ready])
                ports_of.setdefault(mark, {}).update(ports)
                known.setdefault(mark, (address, ready))
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for mark, ports in ports_of.items():
        key = tuple(sorted(ports))
        group = groups.setdefault(key, {"ports": [_port(ports[one]) for one in key], "addresses": []})
        group["addresses"].append(known[mark])
    return [groups[key] for key in sorted(groups)]


def _port(port: Mapping[str, Any]) -> dict[str, Any]:
    made = {"name": port.get("name", ""), "port": port["port"], "protocol": port.get("protocol", "TCP")}
    return made | ({"appProtocol": port["appProtocol"]} if "appProtocol" in port else {})


def contents(endpoints: Object) -> tuple[list[dict[str, Any]], int]:
    """Return the slices that Endpoints ought to have, without metadata, and how many addresses are too many for
    them."""
    made: list[dict[str, Any]] = []
    skipped = 0
    for group in repacked(endpoints.get("subsets") or ()):
        addresses = sorted(group["addresses"], key=lambda each: (not each[1], each[0]["ip"]))
        skipped += max(len(addresses) - MOST_PER_SUBSET, 0)
        families: dict[str, list[dict[str, Any]]] = {}
        for address, ready in addresses[:MOST_PER_SUBSET]:
            family = "IPv6" if ipaddress.ip_address(address["ip"]).version == 6 else "IPv4"
            families.setdefault(family, []).append(_endpoint(address, ready=ready))
        for family in sorted(families):
            made.append({"addressType": family, "endpoints": families[family], "ports": group["ports"]})
    return made, skipped


def _endpoint(address: Mapping[str, Any], *, ready: bool) -> dict[str, Any]:
    made = {"addresses": [str(ipaddress.ip_address(address["ip"]))], "conditions": {"ready": ready}}
    return made | {name: address[name] for name in ("hostname", "targetRef", "nodeName") if name in address}


def metadata_for(endpoints: Object) -> dict[str, Any]:
    """Labels, annotations and owner of a slice that mirrors Endpoints."""
    copied = {key: value for key, value in annotations_of(endpoints).items() if key not in _NOT_COPIED}
    labels = {**labels_of(endpoints), SERVICE: name_of(endpoints), MANAGED: US}
    owners = [controller_reference(endpoints, ENDPOINTS)]
    return {"labels": labels, "ownerReferences": owners, **({"annotations": copied} if copied else {})}


class EndpointsMirroring:
    """Component: one for a cluster. ``events`` records as ``endpoint-slice-mirroring-controller``."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._kube = context.kube
        self._events = events
        self._services = informers.of(SERVICES)
        self._endpoints = informers.of(ENDPOINTS)
        self._slices = informers.of(ENDPOINT_SLICES)
        self._expectations = Expectations()
        self._loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (self._services, self._endpoints, self._slices):
            await informer.synced()
        self._services.on_change(self._service_changed)
        self._endpoints.on_change(self._endpoints_changed)
        self._slices.on_change(self._slice_changed)
        await self._loop.run()

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        if any(each is not None and _selector(each) is None for each in (old, new)):
            self._loop.add_changed(old, new)

    def _endpoints_changed(self, old: Object | None, new: Object | None) -> None:
        if any(each is not None and is_mirrored(each) for each in (old, new)):
            self._loop.add_changed(old, new)

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        for found in (old, new):
            if found is not None and labels_of(found).get(MANAGED) == US:
                self._loop.add(f"{namespace_of(found)}/{labels_of(found).get(SERVICE, '')}")

    async def _sync(self, key: str) -> None:
        if not self._expectations.met(key):
            return
        endpoints, service = self._endpoints.at(key), self._services.at(key)
        known = [found for found in self._slices.items() if _is_ours(found, key)]
        wanted: list[dict[str, Any]] = []
        if endpoints is not None and service is not None and _selector(service) is None and is_mirrored(endpoints):
            wanted, skipped = contents(endpoints)
            if skipped:
                text = f"A max of {MOST_PER_SUBSET} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                about = reference({**endpoints, "kind": ENDPOINTS.kind, "apiVersion": ENDPOINTS.api_version})
                self._events.event(
                    about, "Warning", "TooManyAddressesToMirror", f"{text}{skipped} addresses were skipped"
                )
        if endpoints is not None:
            known = await self._write(key, endpoints, wanted, known)
        for found in known:
            self._expectations.deleted(key, self._slices, found)
            try:
                await self._kube.delete(ENDPOINT_SLICES, name_of(found), namespace=namespace_of(found))
            except NotFoundError:
                continue

    async def _write(
        self, key: str, endpoints: Object, wanted: Sequence[Mapping[str, Any]], known: Sequence[Object]
    ) -> list[Object]:
        """Bring slices of the right kind up to date, first those with the same ports; answers those that are left."""
        left, metadata = list(known), metadata_for(endpoints)
        missing = []
        for content in wanted:
            same = next((found for found in left if _ports(found) == _ports(content)), None)
            if same is None:
                missing.append(content)
            else:
                left.remove(same)
                await self._bring_up_to_date(key, same, metadata, content)
        for content in missing:
            free = next((found for found in left if found["addressType"] == content["addressType"]), None)
            if free is not None:
                left.remove(free)
                await self._bring_up_to_date(key, free, metadata, content)
            elif not is_deleting(endpoints):
                await self._create(key, endpoints, {"metadata": metadata, **content})
        return left

    async def _create(self, key: str, endpoints: Object, body: dict[str, Any]) -> None:
        named = {**body, "metadata": {**body["metadata"], "generateName": f"{name_of(endpoints)}-"}}
        try:
            made = await self._kube.create(
                ENDPOINT_SLICES, named, namespace=namespace_of(endpoints), field_manager=MANAGER
            )
        except ApiError as error:
            if not is_terminating_namespace(error):
                raise
        else:
            self._expectations.wrote(key, self._slices, made)

    async def _bring_up_to_date(
        self, key: str, found: Object, metadata: Mapping[str, Any], content: Mapping[str, Any]
    ) -> None:
        same = all((found.get(name) or []) == content[name] for name in ("endpoints", "ports"))
        if same and all((found["metadata"].get(name) or {}) == (metadata.get(name) or {}) for name in _COMPARED):
            return
        kept = {name: found["metadata"][name] for name in ("name", "namespace")}
        body = {"metadata": {**metadata, **kept}, **content}
        self._expectations.wrote(
            key, self._slices, await self._kube.replace(ENDPOINT_SLICES, body, field_manager=MANAGER)
        )


_COMPARED = ("labels", "annotations", "ownerReferences")


def _selector(service: Object) -> Mapping[str, str] | None:
    return service["spec"].get("selector")  # type: ignore[no-any-return]


def _ports(content: Mapping[str, Any]) -> tuple[str, str]:
    return content["addressType"], json.dumps([_port(port) for port in content.get("ports") or ()], sort_keys=True)


def _is_ours(found: Object, key: str) -> bool:
    if is_deleting(found) or labels_of(found).get(MANAGED) != US:
        return False
    return f"{namespace_of(found)}/{labels_of(found).get(SERVICE, '')}" == key
