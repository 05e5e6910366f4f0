"""What a claim asks for: its requests and their alternatives in one form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of, namespace_of

Spec = Mapping[str, Any]
MOST_ALTERNATIVES = 8
"""Of a request (FirstAvailableDeviceRequestMaxSize)."""


class ClaimedRequest(Struct, frozen=True):
    """One request, or one alternative of a request named ``parent``; ``count`` is None for all devices."""

    name: str
    parent: str
    spec: Spec
    device_class: Object
    count: int | None
    admin: bool

    @property
    def full_name(self) -> str:
        """As results and configurations name it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def selectors(self) -> Sequence[Spec]:
        """Its own selectors, without those of the class."""
        return self.spec.get("selectors") or ()

    @property
    def tolerations(self) -> Sequence[Spec]:
        """Which taints it bears."""
        return self.spec.get("tolerations") or ()

    @property
    def capacity(self) -> Mapping[str, Any]:
        """How much it asks of each capacity."""
        return (self.spec.get("capacity") or {}).get("requests") or {}

    def is_named_by(self, names: Sequence[str]) -> bool:
        """Return whether a list of requests is empty, or has this one or its parent."""
        return not names or self.full_name in names or bool(self.parent and self.parent in names)


def claim_key(claim: Object) -> str:
    """``namespace/name``, as messages name it."""
    return f"{namespace_of(claim)}/{name_of(claim)}"


def requests_of(claim: Object) -> Sequence[Spec]:
    """``spec.devices.requests``."""
    return (claim["spec"].get("devices") or {}).get("requests") or ()


def requested_classes(claim: Object) -> Iterator[tuple[str, str]]:
    """(request, device class) of a claim."""
    for request in requests_of(claim):
        if "exactly" in request:
            yield str(request["name"]), str(request["exactly"]["deviceClassName"])
        for part in request.get("firstAvailable") or ():
            yield f"{request['name']}/{part['name']}", str(part["deviceClassName"])


def has_alternatives(claim: Object) -> bool:
    """Return whether a request of the claim may be answered in several ways."""
    return any(request.get("firstAvailable") for request in requests_of(claim))


def preference(claim: Object, allocation: Spec) -> int:
    """Return how good an allocation is: the earlier the alternatives that were taken, the more (upstream
    computeScore)."""
    taken = {result["request"] for result in (allocation.get("devices") or {}).get("results") or ()}
    return sum(
        MOST_ALTERNATIVES - index
        for request in requests_of(claim)
        for index, part in enumerate(request.get("firstAvailable") or ())
        if f"{request['name']}/{part['name']}" in taken
    )
