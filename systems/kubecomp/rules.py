"""The rules that Reconfig-Mgr asks at every step, each in one place so that a test can break it and see who notices.

The single-move rule and the in-use test are here; the read-back is ``mover.Mover.settled_port``.
"""

from __future__ import annotations

from mews.systems.kubecomp import policy
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.records import NodeReport
from mews.systems.kubecomp.view import ClusterView, PodShortOfDevices


def remaining_demand(view: ClusterView, pod: PodShortOfDevices, attached: int) -> int:
    """Return the single-move rule: how many devices the pod's node still lacks, asked anew before every move.

    From what the API says now, never from an annotation: 0 once the pod is bound, gone or sent elsewhere.
    ``attached`` are the usable devices on the node's ports, which its status shows only later.
    """
    if not view.still_waiting(pod):
        return 0
    others = (claim.req for claim in view.claims(pod.node) if claim.pod != pod.key)
    return policy.demand(pod.req, policy.available(attached, others))


def in_use(report: NodeReport, gpuid: str, *, now_s: float, timing: Timing, request: str | None = None) -> bool:
    """Return the in-use test: whether a pod holds the device, or nobody can say.

    Without a ``request``, to find candidates: held, or the report is stale. With one, before a detach: held, or there
    is no fresh consent to this very request.
    """
    if gpuid in report.held:
        return True
    if request is None:
        return not report.is_fresh(now_s, timing.report_stale_s)
    consent = report.consents.get(gpuid)
    return not policy.consent_is_fresh(consent, request, now_s=now_s, max_age_s=timing.consent_fresh_s)
