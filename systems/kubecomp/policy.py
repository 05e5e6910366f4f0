"""KubeComp's decisions: values in, values out (seed paper sections IV and V; contract kubecomp.md section 2).

Nothing here waits, reads a clock or rolls dice: now is an argument. The scheduler plugin, Reconfig-Mgr
and the simulator call the same functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from enum import StrEnum

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.api.pod_requests import request_of

PERMIT_BASE_S = 60.0
PERMIT_PER_DEVICE_S = 60.0
PERMIT_LIMIT_S = 900.0
STALE_READING_S = 5.0
"""A chassis that was read longer ago is read again before a device of it is touched."""


class Policy(StrEnum):
    """Which branches of equation 1 are on (paper section VI-F)."""

    BOTH = "both"
    BEST_FIT = "best-fit"
    LEAST_DEMAND = "least-demand"
    NONE = "none"


# Scheduling -----------------------------------------------------------------------------------------------------------


def required(pod: Object, resource: str) -> int:
    """Return how many devices the pod asks for, over all its containers (contract section 3, point 11)."""
    return request_of(pod, resource)


def available(allocatable: int, others: Iterable[int]) -> int:
    """Return what a node has left for a pod: allocatable less the requests of all other bound or assumed pods; can be <
    0."""
    return allocatable - sum(others)


def effective_allocatable(allocatable: int, announced: Set[str] | None, withdrawing: Set[str]) -> int:
    """Return what a node can still hand out, ahead of its status, which lags by a kubelet tick (kubelet.md section 2).

    ``announced`` is the node's own report (None: it made none), ``withdrawing`` the GPUIDs it is being asked for.
    """
    if announced is None:
        return allocatable
    return min(allocatable, len(announced) - len(announced & withdrawing))


def demand(req: int, avail: int) -> int:
    """Return the shortfall to be moved in: 4 asked, 2 there -> 2 (paper section IV-C). Never below 0."""
    return max(req - max(avail, 0), 0)


def pool_free(devices: int, requests: Iterable[int]) -> int:
    """Return all devices of a pool, unattached ones too, less all requests of bound or assumed pods on its nodes."""
    return devices - sum(requests)


def prefilter_message(pod: str, req: int, free_by_pool: Mapping[str, int]) -> str | None:
    """Return why no pool can take the pod, or None when one can."""
    largest = max(free_by_pool.values(), default=0)
    if largest >= req:
        return None
    return f"Pod {pod} requires {req} GPU but only {max(largest, 0)} GPU in the pool."


def pool_fits(req: int, free: int) -> bool:
    """Filter: a node stays when its pool has enough free devices; there is no per-node device filter beyond that."""
    return free >= req


def score(req: int, avail: int, policy: Policy = Policy.BOTH) -> int:
    """Equation 1 in integers: best fit where the node has more than enough, exactly enough 100, least demand below.

    A switched-off branch scores 0. Exactly enough belongs to best fit.
    """
    if not is_scored(req, avail, policy):
        return 0
    if avail > req:
        return 100 * req // avail
    return 100 if avail == req else avail - req


def normalise(scores: Mapping[str, int]) -> dict[str, int]:
    """Scores by node stretched to 0-100, rounded down; all 0 when they are equal."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if low == high:
        return dict.fromkeys(scores, 0)
    return {node: (value - low) * 100 // (high - low) for node, value in scores.items()}


def is_scored(req: int, avail: int, policy: Policy) -> bool:
    """Return whether the node's branch of equation 1 is on."""
    if avail >= req:
        return policy in (Policy.BOTH, Policy.BEST_FIT)
    return policy in (Policy.BOTH, Policy.LEAST_DEMAND)


def ties_by_name(policy: Policy) -> bool:
    """Return whether equal scores are broken by node name; once a branch is switched off they are broken from the
    seed."""
    return policy is Policy.BOTH


def permit_bound_s(shortfall: int) -> float:
    """Return how long Permit waits: 60 s and 60 s per device, at most 15 min (kube-scheduler's own limit)."""
    return min(PERMIT_BASE_S + PERMIT_PER_DEVICE_S * shortfall, PERMIT_LIMIT_S)


# Reconfiguration ------------------------------------------------------------------------------------------------------


class Gpu(Struct, frozen=True, order=True):
    """One device of a pool: ``node`` is "" while it is unattached (or on a port of no known node). ``users``: how many
    pods use parts of it, where another system hands these out; ``divided``: it is in MIG mode."""

    gpuid: str
    node: str
    port: str | None = None
    uuid: str = ""
    users: int = 0
    divided: bool = False


class Claim(Struct, frozen=True):
    """A live pod that is bound to a node, or was told to go there and waits: it asks for ``req`` devices there."""

    pod: str
    node: str
    req: int
    bound: bool


class NodeHoldings(Struct, frozen=True):
    """What a node's report says: GPUID -> pod (``namespace/name``) that holds it, and whether the report is fresh."""

    held: Mapping[str, str] = field(default_factory=dict)
    fresh: bool = False


def kept_back(claims: Iterable[Claim], held: Mapping[str, str]) -> int:
    """Devices that a node must keep for its pods that are bound or awaited there and not yet allocated."""
    holds = Counter(held.values())
    return sum(max(claim.req - holds.get(claim.pod, 0), 0) for claim in claims)


def is_movable(gpu: Gpu, target: str, holdings: NodeHoldings | None) -> bool:
    """Return the in-use test on what is reported: not on the target node, not held, and its node's report fresh.

    An unattached device (port None) is always movable; one on a port of no known node never is.
    """
    if gpu.port is None:
        return True
    if not gpu.node or gpu.node == target or holdings is None or not holdings.fresh:
        return False
    return gpu.gpuid not in holdings.held


def candidates(
    gpus: Iterable[Gpu],
    target: str,
    *,
    holdings: Mapping[str, NodeHoldings],
    claims: Mapping[str, Sequence[Claim]],
    excluded: Collection[str] = (),
    out_of_reach: Collection[str] = (),
) -> tuple[Gpu, ...]:
    """Return the devices of the target's pool that may be moved there, in order of GPUID.

    Per node, as many of the free ones as its pods still need stay (the last by GPUID). ``excluded`` are GPUIDs that
    this reconfiguration has already failed to get; ``out_of_reach`` those of chassis that the target has no cable to:
    they cannot come, so a node keeps them first. Divided ones serve none of its pods.
    """
    by_node: dict[str, list[Gpu]] = {}
    for gpu in sorted(gpus):
        if is_movable(gpu, target, holdings.get(gpu.node)):
            by_node.setdefault(gpu.node if gpu.port is not None else "", []).append(gpu)
    chosen: list[Gpu] = []
    barred = {*excluded, *out_of_reach}
    for node, free in by_node.items():
        keep = kept_back(claims.get(node, ()), holdings[node].held) if node else 0
        whole = sorted((gpu for gpu in free if not gpu.divided), key=lambda gpu: gpu.gpuid in out_of_reach)
        spare = [*whole[: max(len(whole) - keep, 0)], *(gpu for gpu in free if gpu.divided)]
        chosen += [gpu for gpu in spare if gpu.gpuid not in barred]
    return tuple(sorted(chosen))


def gpu_scores(found: Sequence[Gpu]) -> dict[str, int]:
    """Algorithm 1: score(gpu) = -(number of candidates on the gpu's node), by GPUID."""
    counts = Counter(gpu.node for gpu in found)
    return {gpu.gpuid: -counts[gpu.node] for gpu in found}


def ranked(found: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the candidates in the order they are taken: unattached first, then Algorithm 1; ties by node, then GPUID.

    Those of which pods use parts come last (ours), the least used first; before them come those in MIG mode.
    """
    scores = gpu_scores(found)

    def rank(gpu: Gpu) -> tuple[object, ...]:
        return gpu.users, gpu.divided, gpu.port is not None, -scores[gpu.gpuid], gpu.node, gpu.gpuid

    return tuple(sorted(found, key=rank))


def plan(found: Sequence[Gpu], shortfall: int, *, partial: bool = False) -> tuple[Gpu, ...]:
    """Return the devices to move for that shortfall. Too few candidates: none, or with ``partial`` what there is."""
    if len(found) < shortfall and not partial:
        return ()
    return ranked(found)[:shortfall]


class Consent(Struct, frozen=True):
    """A node's word that a device is withdrawn and unused: the request it answers, and when (unix s) it last held."""

    request: str
    time_s: float


def consent_is_fresh(consent: Consent | None, request: str, *, now_s: float, max_age_s: float) -> bool:
    """Return whether a device may be detached: consent to this very request, no older than ``max_age_s``.

    Stale or missing consent means in use.
    """
    return consent is not None and consent.request == request and now_s - consent.time_s <= max_age_s


def spare_after(announced: Collection[str], held: Mapping[str, str], claims: Iterable[Claim], asked: int) -> int:
    """Free announced devices of a node that remain beyond its pods' needs when ``asked`` of them are given away."""
    free = sum(1 for gpuid in announced if gpuid not in held)
    return free - asked - kept_back(claims, held)
