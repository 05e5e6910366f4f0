"""KubeComp's placement beside what the paper and the public code say of it.

The Go module proxy does not serve the public scheduler plugin, so it is not built here. ``published`` is a reading of
its source, line by line and without a word of ours: PreFilter, Score and NormalizeScore of
04kubecomp-sched/pkg/falconresources/falcon_resources.go (NTHU-LSALAB/KubeComp, 6375131), and its demand in Permit. Each
difference of ours is of a row of docs/kubecomp.md, and proved: with that one thing in the case as the public code takes
it, ours answers the very same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from mews.systems.kubecomp import policy
from tests.upstream.oracles.model import Answer, Case, Oracle

RESOURCE = "falcon.com/gpu"


def drawn(seed: int) -> Case:
    """Nodes with pools, devices and the requests of their pods; a pod by what its containers ask for; devices that no
    node has, by pool."""
    rng = random.Random(seed)
    pools = ["a"] if rng.random() < 0.85 else ["a", "b"]
    nodes = []
    for number in range(rng.randint(1, 6)):
        has = rng.choice((0, 2, 4, 4, 8, 8))
        asked = [[rng.choice((1, 1, 2, 4))] for _ in range(rng.randint(0, 3))]
        while sum(map(sum, asked)) > has + (4 if rng.random() < 0.03 else 0):
            asked.pop()
        if asked and rng.random() < 0.1:
            asked[0].append(1)
        nodes.append({"name": f"n{number}", "pool": rng.choice(pools), "has": has, "pods": asked})
    pod = [rng.choice((1, 1, 2, 2, 3, 4, 4, 6, 8))] + ([rng.choice((1, 2))] if rng.random() < 0.12 else [])
    loose = {pool: rng.choice((1, 2)) for pool in pools if rng.random() < 0.08}
    return {"nodes": nodes, "pod": pod, "loose": loose}


# Complex: the published procedure, step by step.
def published(case: Case) -> Answer:  # noqa: C901
    """What the public plugin decides: it reads the first container alone, and one pool of what the nodes have."""
    asks = case["pod"][0]
    local: dict[str, int] = {}
    total = 0
    for node in case["nodes"]:
        requested = 0
        for containers in node["pods"]:
            for amount in containers:
                requested += amount  # kube-scheduler sums these, over all containers
        local[node["name"]] = node["has"] - requested
        total += node["has"] - requested
    if total < asks:
        return _refused(f"Pod p requires {asks} GPU but only {total} GPU in the pool.")
    scores: dict[str, int] = {}
    for name, there in local.items():
        if there > asks:
            hundredths = 0
            while (hundredths + 1) * there <= 100 * asks:  # the integer part of a fraction
                hundredths += 1
            scores[name] = hundredths
        elif there == asks:
            scores[name] = 100
        else:
            scores[name] = there - asks
    highest, lowest = -(2**63), 2**63
    for value in scores.values():
        if value > highest:
            highest = value
        if value < lowest:
            lowest = value
    stretched = {}
    for name, value in scores.items():
        stretched[name] = 0 if highest == lowest else int((value - lowest) * 100 / (highest - lowest))
    demands = {}
    for name, there in local.items():
        demands[name] = asks - there if asks - there > 0 else 0
    return _placed(scores, stretched, demands)


def ours(case: Case) -> Answer:
    """What our plugin decides, by its policy."""
    asks = sum(case["pod"])
    others = {node["name"]: [sum(containers) for containers in node["pods"]] for node in case["nodes"]}
    pools = sorted({node["pool"] for node in case["nodes"]})
    free = {pool: _free(case, pool, others) for pool in pools}
    refusal = policy.prefilter_message("p", asks, free)
    if refusal is not None:
        return _refused(refusal)
    there = {
        node["name"]: policy.available(node["has"], others[node["name"]])
        for node in case["nodes"]
        if policy.pool_fits(asks, free[node["pool"]])
    }
    scores = {name: policy.score(asks, left) for name, left in there.items()}
    demands = {name: policy.demand(asks, left) for name, left in there.items()}
    return _placed(scores, policy.normalise(scores), demands)


def _free(case: Case, pool: str, others: Mapping[str, Sequence[int]]) -> int:
    nodes = [node for node in case["nodes"] if node["pool"] == pool]
    devices = sum(node["has"] for node in nodes) + case["loose"].get(pool, 0)
    return policy.pool_free(devices, (one for node in nodes for one in others[node["name"]]))


def _refused(message: str) -> Answer:
    return {"verdict": "refused", "message": message}


def _placed(scores: Mapping[str, int], normalised: Mapping[str, int], demands: Mapping[str, int]) -> Answer:
    chosen = max(sorted(normalised), key=lambda name: normalised[name])
    verdict = "moves" if demands[chosen] else "there"
    return {"verdict": verdict, "node": chosen, "scores": scores, "normalised": normalised, "demands": demands}


# Rows


def _first_container(case: Case) -> Case:
    return {**case, "pod": case["pod"][:1]}


def _one_pool(case: Case) -> Case:
    loose = {"a": sum(case["loose"].values())} if case["loose"] else {}
    return {**case, "nodes": [{**node, "pool": "a"} for node in case["nodes"]], "loose": loose}


def _attached_alone(case: Case) -> Case:
    return {**case, "loose": {}}


ROWS: Mapping[str, Callable[[Case], Case]] = {
    "several containers": _first_container,
    "several pools": _one_pool,
    "devices that no node has": _attached_alone,
    "less than nothing": lambda case: case,
}
"""Row of docs/kubecomp.md -> the case as the public plugin takes it; of the last see ``_as_public``."""
_LAST = "less than nothing"


def row_of(case: Case, theirs: Answer, mine: Answer) -> str:
    """The row whose change makes ours answer as the public plugin does; of several that are needed the first; "" where
    none does."""
    sets = (rows for size in range(1, len(ROWS) + 1) for rows in combinations(ROWS, size))
    return next((rows[0] for rows in sets if _as_public(case, rows) == theirs), "")


def _as_public(case: Case, rows: Sequence[str]) -> Answer:
    for row in rows:
        case = ROWS[row](case)
    answer: dict[str, Any] = dict(ours(case))
    if _LAST in rows and answer["verdict"] == "refused":
        asks = sum(case["pod"])  # the message shows what is free, below nothing, too
        free = sum(node["has"] - sum(map(sum, node["pods"])) for node in case["nodes"]) + sum(case["loose"].values())
        answer["message"] = f"Pod p requires {asks} GPU but only {free} GPU in the pool."
    elif _LAST in rows:
        lacks = {node["name"]: min(node["has"] - sum(map(sum, node["pods"])), 0) for node in case["nodes"]}
        demands = {name: value - lacks[name] for name, value in answer["demands"].items()}
        answer |= {"demands": demands, "verdict": "moves" if demands[answer["node"]] else "there"}
    return answer


EQUATION = Oracle(
    name="kubecomp",
    drawn=drawn,
    theirs=lambda cases: [published(case) for case in cases],
    ours=ours,
    row_of=row_of,
    rows=tuple(ROWS),
    page="kubecomp.md",
    heading="## Compared with the public scheduler",
)
