"""ServiceAccounts."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age


def _account(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], len(obj.get("secrets") or ()), meta_age(obj, now_s)]


RULES = Rules(
    posts={"token": "packs.access.reviews:issue_token"},
    printer=Printer(_account),
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
