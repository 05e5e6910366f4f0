"""Which writes are recorded in ``metadata.managedFields``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store


def record(
    store: Store, kind: Kind, old: Object | None, new: Object, *, subresource: str, request: WriteRequest
) -> None:
    """Write into the new object that this manager owns what it added and changed, and nobody what is gone.

    Both are in storage form. A store that keeps no owners of plain writes leaves the entries as they are.
    """
    if store.keeps_owners and request.manager:
        # Not before: a store in virtual time keeps none, and sets of fields are much to import.
        from mews.kube.emulated.core.objects.ownership import record_changes

        record_changes(store, kind, old, new, subresource=subresource, request=request)
    elif not any(new["metadata"].get("managedFields") or ()):
        new["metadata"].pop("managedFields", None)
