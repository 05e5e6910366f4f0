"""Rules, as those of this store are written."""

from __future__ import annotations

from mews.kube.emulated.core.store.metadata_errors import UpdateCheck
from mews.kube.emulated.core.store.rules import KindRules
from mews.kube.emulated.core.store.store import Store


class Rules(KindRules[Store], frozen=True):
    """What one kind brings into the life cycle of this store's objects."""


PLAIN = Rules()
"""Of a kind that asks for nothing beyond what every object does."""

METADATA, METADATA_UPDATE = UpdateCheck.METADATA, UpdateCheck.METADATA_UPDATE
OBJECT, CHANGE = UpdateCheck.OBJECT, UpdateCheck.CHANGE
RESET_WITH_STATUS = ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences")
"""Parts of the metadata that most strategies of a status leave as they were (``MetadataChecks.status_leaves``)."""
