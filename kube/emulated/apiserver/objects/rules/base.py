"""Rules, as those of this store are written."""

from __future__ import annotations

from mews.kube.emulated.apiserver.store.rules import KindRules
from mews.kube.emulated.apiserver.store.store import Store


class Rules(KindRules[Store], frozen=True):
    """What one kind brings into the life cycle of this store's objects."""


PLAIN = Rules()
"""Of a kind that asks for nothing beyond what every object does."""
