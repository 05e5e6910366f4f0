"""Whether pods bring claims with them, which are made for them."""

from __future__ import annotations

from mews.kube.api.objects import Object


def brings_ephemeral_volumes(pod: Object) -> bool:
    """Whether claims are made for a pod's volumes."""
    return any("ephemeral" in volume for volume in pod["spec"].get("volumes") or ())


def brings_claim_templates(pod: Object) -> bool:
    """Whether resource claims are made for a pod."""
    return any("resourceClaimTemplateName" in entry for entry in pod["spec"].get("resourceClaims") or ())
