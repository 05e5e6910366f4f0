"""The areas, in the order in which they are asked."""

from tests.differential.areas import crds, deletion, discovery, kubectl, lists, patches, tables, validation, verbs
from tests.differential.areas.manifests import FILES
from tests.differential.model import Case

AREAS: dict[str, tuple[Case, ...]] = {
    "discovery": discovery.CASES,
    "verbs": verbs.CASES,
    "validation": validation.CASES,
    "patches": patches.CASES,
    "lists": lists.CASES,
    "tables": tables.CASES,
    "deletion": deletion.CASES,
    "crds": crds.CASES,
    "kubectl": kubectl.CASES,
}

__all__ = ["AREAS", "FILES"]
