"""Whether pods bring claims with them, which are made for them."""

from __future__ import annotations

from mews.kube.api.objects import Object


def brings_ephemeral_volumes(pod: Object) -> bool:
    """Return whether claims are made for a pod's volumes."""
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def concerns_resource_claims(obj: Object) -> bool:
    """Return whether an object is a resource claim, or a pod that names one or a template."""
    spec = obj["spec"]
    return "containers" not in spec or bool(spec.get("resourceClaims"))
