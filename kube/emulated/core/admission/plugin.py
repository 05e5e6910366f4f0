"""What a plugin of the chain is."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mews.kube.api.errors import ForbiddenError
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store

Handles = Callable[[Kind, AdmissionOperation, str], bool]
"""Whether a plugin has to do with (kind, operation, subresource)."""

Phase = Callable[[Store, AdmissionAttributes], None]
"""One phase of a plugin. Raises ``ApiError`` to refuse."""


class AdmissionPlugin(Struct, frozen=True):
    """One plugin: upstream's name, what it handles, and its part in either phase."""

    name: str
    handles: Handles
    mutate: Phase | None = None
    validate: Phase | None = None


def refused(attributes: AdmissionAttributes, text: str) -> ForbiddenError:
    """403 in admission's words; the resource is named, a subresource is not."""
    return refusals.forbidden(attributes.kind, attributes.named(), text)


def handles(
    plural: str, *operations: AdmissionOperation, group: str = "", subresources: tuple[str, ...] = ("",)
) -> Handles:
    """Return the handler of one resource."""

    def decide(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
        resource = kind.resource
        known = (resource.group, resource.plural) == (group, plural)
        return known and operation in operations and subresource in subresources

    return decide
