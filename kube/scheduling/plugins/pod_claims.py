"""The claims of a pod, as long as they are there and are the pod's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mews.kube.api.objects import Object, is_deleting
from mews.kube.api.resource_claims import ClaimNotMadeError, claim_name, is_generated, not_made_for
from mews.kube.scheduling import messages
from mews.kube.scheduling.podinfo import PodInfo


class NoClaimError(Exception):
    """A claim of the pod cannot be used; the text is upstream's."""


def claims_of(pod: PodInfo, claim_at: Callable[[str], Object | None]) -> Iterator[Object]:
    """Yield the claims that are there, as ``claim_at`` finds them by ``namespace/name``.

    Raises NoClaimError for the first that is not.
    """
    for entry in pod.pod["spec"].get("resourceClaims") or ():
        try:
            name = claim_name(pod.pod, entry)
        except ClaimNotMadeError as missing:
            raise NoClaimError(str(missing)) from missing
        if name is None:  # none was to be made
            continue
        claim = claim_at(f"{pod.namespace}/{name}")
        if claim is None:
            raise NoClaimError(messages.no_claim(f"{pod.namespace}/{name}"))
        if is_deleting(claim):
            raise NoClaimError(f'resourceclaim "{name}" is being deleted')
        if is_generated(entry) and (why := not_made_for(pod.pod, claim)):
            raise NoClaimError(why)
        yield claim
