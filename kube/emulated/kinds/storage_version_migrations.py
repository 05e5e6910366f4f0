"""StorageVersionMigrations."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of

_MIGRATIONS = ("Running", "Failed", "Succeeded")


def _migration(obj: Object, _: float) -> Row:
    """Later releases have a second column."""
    resource, state = spec_of(obj).get("resource") or {}, "Unknown"
    for condition in status_of(obj).get("conditions") or ():
        if condition.get("status") == "True" and condition["type"] in _MIGRATIONS:
            state = condition["type"]
    return [f"{resource.get('resource', '')}.{resource.get('group', '')}".rstrip("."), state]


RULES = Rules(printer=Printer(_migration, is_part=True))
