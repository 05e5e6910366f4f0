"""Why a pod's resource claims keep it waiting. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.live.sight import ExplainedSight, Finding
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resource_claims import ClaimNotMadeError, allocation_of, claim_name


def claim_findings(sight: ExplainedSight, pod: Object) -> Iterator[Finding]:
    """Yield which claims are missing, and which requests of those that are there find no devices."""
    known = {name_of(claim): claim for claim in sight.claims if claim["metadata"].get("namespace") == sight.namespace}
    for entry in pod["spec"].get("resourceClaims") or ():
        try:
            name = claim_name(pod, entry)
        except ClaimNotMadeError:
            template = entry.get("resourceClaimTemplateName", "")
            yield "unschedulable", f"No claim was made yet for {entry['name']}, of template {template}."
            continue
        if name is None:
            continue
        claim = known.get(name)
        if claim is None:
            yield "unschedulable", f"There is no claim {name}: its scheduler does not look at the pod before there is."
        elif allocation_of(claim) is None:
            yield from _unallocated(sight, claim)


def _unallocated(sight: ExplainedSight, claim: Object) -> Iterator[Finding]:
    from mews.kube.scheduling.devices.shortages import shortages
    from mews.kube.scheduling.devices.taint_rules import with_rules

    classes = {name_of(each): each for each in sight.device_classes}
    slices = [with_rules(each, sight.taint_rules, classes.get) for each in sight.slices]
    found = shortages(claim, slices=slices, claims=sight.claims, class_of=classes.get, features=sight.devices)
    for sentence in found:
        yield "unschedulable", f"Claim {name_of(claim)} is not allocated: {sentence}."
