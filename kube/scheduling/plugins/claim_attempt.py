"""What one attempt to schedule a pod knows of its claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mews.kube.api.objects import Object, uid_of
from mews.kube.api.resource_claims import allocation_of

if TYPE_CHECKING:
    from mews.kube.scheduling.devices.allocator import Allocator
    from mews.kube.scheduling.devices.known_allocations import KnownOnNodes
    from mews.kube.scheduling.plugins.device_ledger import DeviceLedger
    from mews.kube.scheduling.plugins.extended_resources import OnNode, SpecialClaim


class ClaimAttempt(Struct):
    """The claims, that for extended resources apart, the allocator where one has to be allocated, what it found by
    node, which allocated claims no node so far could use, and what Reserve took.

    ``unallocated`` are those of the claims that were so at first; ``known``: what was found for claims like these.
    """

    claims: list[Object] = field(default_factory=list)
    special: SpecialClaim | None = None
    unallocated: list[Object] = field(default_factory=list)
    allocator: Allocator | None = None
    known: KnownOnNodes | None = None
    on_node: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    unavailable: dict[int, None] = field(default_factory=dict)
    reserved: dict[str, dict[str, Any]] = field(default_factory=dict)

    def end(self, ledger: DeviceLedger) -> None:
        """Nothing that Reserve took for the claims is in flight any more."""
        for claim in self.unallocated:
            if self.reserved.pop(uid_of(claim), None) is not None:
                ledger.end(claim, None)

    def waiting(self, special: OnNode | None) -> list[Object]:
        """Return the claims that are to be allocated on a node, that for extended resources last."""
        claims = [claim for claim in self.claims if allocation_of(claim) is None]
        return claims if special is None else [*claims, special.claim]
