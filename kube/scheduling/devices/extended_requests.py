"""What a pod's extended resources are as requests of a claim, and which container has which (KEP-5004). Pure.

Source: createRequestsAndMappings of pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go
(1.37), createDeviceRequests and createRequestMappings of 1.34.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mews.kube.api.objects import Object, containers_of, init_containers_of, requests_of
from mews.kube.api.quantities import parse

Request = dict[str, Any]
Mapped = dict[str, str]


class Drafted(NamedTuple):
    """``spec.devices.requests`` of the claim, and ``requestMappings`` of the pod's status."""

    requests: list[Request]
    mappings: list[Mapped]


def drafted(
    pod: Object, resources: Iterable[str], class_of: Callable[[str], str | None], *, reuses: bool = True
) -> Drafted:
    """Return one request for each container and resource. ``reuses``: a container that ends before others start has the
    devices of those (from 1.35 on)."""
    init, main = list(init_containers_of(pod)), list(containers_of(pod))
    containers = [*init, *main]
    early = [
        index
        for index, container in enumerate(containers)
        if reuses and index < len(init) and container.get("restartPolicy") != "Always"
    ]
    lasting = [index for index in range(len(containers)) if index not in early]
    found = Drafted([], [])
    for resource in sorted(resources):
        device_class = class_of(resource)
        if device_class is not None:
            _add(found, _OneResource(containers, resource, device_class), early, lasting)
    found.requests.sort(key=lambda request: str(request["name"]))
    return found


class _OneResource(NamedTuple):
    containers: Sequence[Mapping[str, Any]]
    resource: str
    device_class: str

    def ask(self, index: int, others: Iterable[Request]) -> tuple[Request | None, list[Mapped]]:
        """Return what a container needs beside the devices of ``others``, and whose devices it has."""
        container, asked = self.containers[index], requests_of(self.containers[index])
        amount = parse(asked.get(self.resource, 0))
        if amount != int(amount) or not amount:
            return None, []
        wanted, mapped = int(amount), []
        for other in others:
            wanted -= int(other["exactly"]["count"])
            mapped.append(self._mapped(container, str(other["name"])))
            if wanted <= 0:
                return None, mapped
        name = f"container-{index}-request-{sorted(asked).index(self.resource)}"
        exactly = {"deviceClassName": self.device_class, "allocationMode": "ExactCount", "count": wanted}
        mapped.append(self._mapped(container, name))
        return {"name": name, "exactly": exactly}, mapped

    def _mapped(self, container: Mapping[str, Any], request: str) -> Mapped:
        return {"containerName": str(container["name"]), "resourceName": self.resource, "requestName": request}


def _add(found: Drafted, one: _OneResource, early: Iterable[int], lasting: Iterable[int]) -> None:
    lasting_requests: dict[int, Request] = {}
    for index in lasting:
        request, mapped = one.ask(index, ())
        if request is not None:
            lasting_requests[index] = request
        found.mappings.extend(mapped)
    largest: Request | None = None
    names: dict[str, None] = {}
    early_mapped: list[Mapped] = []
    for index in early:
        request, mapped = one.ask(index, _from(lasting_requests, index))
        early_mapped.extend(mapped)
        if request is not None:
            names[str(request["name"])] = None
            if largest is None or largest["exactly"]["count"] < request["exactly"]["count"]:
                largest = request
    if largest is not None:  # they run one after another: the largest request is for all of them
        found.requests.append(largest)
        for entry in early_mapped:
            if entry["requestName"] in names:
                entry["requestName"] = str(largest["name"])
    found.requests.extend(lasting_requests.values())
    found.mappings.extend(early_mapped)


def _from(requests: dict[int, Request], first: int) -> Iterator[Request]:
    return (request for index, request in requests.items() if index >= first)
