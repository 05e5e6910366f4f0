"""The areas, in the order in which they are asked."""

from tests.differential.areas import (
    admission,
    changes,
    crds,
    deletion,
    discovery,
    kubectl,
    lists,
    patches,
    policies,
    services,
    tables,
    validation,
    verbs,
)
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
    "admission": admission.CASES,
    "policies": policies.CASES,
    "services": services.CASES,
    "changes": changes.CASES,
    "kubectl": kubectl.CASES,
}

ABOUT: dict[str, str] = {
    "discovery": "what is served: groups, media types, paths, identity, health",
    "verbs": "GET, POST, PUT, subresources, dry runs",
    "validation": "bodies that are refused, warned about or completed",
    "patches": "JSON, merge, strategic and apply patches, with the ownership of fields",
    "lists": "lists, pages, selectors, watches",
    "tables": "the table of every kind",
    "deletion": "grace, finalizers, propagation, preconditions, eviction",
    "crds": "custom kinds",
    "admission": "limits, quotas, Pod Security, classes",
    "policies": "admission policies in CEL, and webhooks that are not there",
    "services": "what a Service is given, and what goes with a type that it leaves",
    "changes": "what may not change, who gives out rights, what a group does not serve",
    "kubectl": "commands: output and exit code",
}

__all__ = ["ABOUT", "AREAS", "FILES"]
