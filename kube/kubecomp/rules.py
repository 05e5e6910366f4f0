"""The rules that Reconfig-Mgr asks at every step, each in one place so that a test can break it and see who notices.

Besides these: ``mover.Mover.settled_port`` (the read-back) and ``withdrawal.Withdrawals.is_in_use`` (the in-use test).
"""

from __future__ import annotations

from mews.kube.kubecomp import policy
from mews.kube.kubecomp.view import ClusterView, Waiting


def remaining_demand(view: ClusterView, pod: Waiting, attached: int) -> int:
    """The single-move rule: how many devices the pod's node still lacks, asked anew before every move.

    From what the API says now, never from an annotation: 0 once the pod is bound, gone or sent elsewhere.
    ``attached`` are the usable devices on the node's ports, which its status shows only later.
    """
    if not view.still_waiting(pod):
        return 0
    others = (claim.req for claim in view.claims(pod.node) if claim.pod != pod.key)
    return policy.demand(pod.req, policy.available(attached, others))
