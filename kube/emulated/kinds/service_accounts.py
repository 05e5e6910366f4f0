"""ServiceAccounts."""

from __future__ import annotations

from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks

RULES = Rules(metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)))
