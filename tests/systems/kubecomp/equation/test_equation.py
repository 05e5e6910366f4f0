"""Equation 1 and Algorithm 1: ours beside the public scheduler's source, and beside what the paper says of them, worked
out anew by looking at everything there is."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise, permutations

import pytest

from mews.systems.kubecomp import policy
from mews.systems.kubecomp.policy import Gpu, Policy
from tests.systems.kubecomp.equation.oracle import EQUATION


def test_three_hundred_placements_are_the_published_ones_or_of_the_table() -> None:
    found = EQUATION.compare(range(300))
    assert found.wrong == {}
    assert found.equal >= found.cases * 3 // 5
    assert min(found.verdicts[verdict] for verdict in ("refused", "moves", "there")) >= 12


@pytest.mark.nightly
def test_five_thousand_placements_are_the_published_ones_or_of_the_table() -> None:
    found = EQUATION.compare(range(1_000_000, 1_005_000))
    assert found.wrong == {}
    assert found.equal >= found.cases * 3 // 5, found.rows


@pytest.mark.parametrize("fault", ["rounded up", "exactly enough", "stretched", "free", "ties"])
def test_a_fault_of_one_line_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    score, normalise = policy.score, policy.normalise
    if fault == "rounded up":
        monkeypatch.setattr(policy, "score", lambda req, avail: score(req, avail) + (avail > req))
    elif fault == "exactly enough":
        monkeypatch.setattr(policy, "score", lambda req, avail: 0 if avail == req else score(req, avail))
    elif fault == "stretched":
        monkeypatch.setattr(policy, "normalise", dict)
    elif fault == "free":
        monkeypatch.setattr(policy, "pool_free", lambda devices, requests: devices)
    else:
        monkeypatch.setattr(policy, "normalise", lambda scores: {k: v + 1 for k, v in normalise(scores).items()})
    assert EQUATION.compare(range(300)).wrong


def test_the_page_has_the_rows_of_the_table_and_no_other() -> None:
    assert EQUATION.published_rows() == list(EQUATION.rows)


def paper(req: int, avail: int, which: Policy) -> int:
    """Equation 1 (paper section IV-C): a fraction of what is there, or what is missing, as a negative number."""
    if avail >= req:
        fills = Fraction(req, avail) if avail else Fraction(1)
        return int(100 * fills) if which in (Policy.BOTH, Policy.BEST_FIT) else 0
    return -(req - avail) if which in (Policy.BOTH, Policy.LEAST_DEMAND) else 0


@pytest.mark.parametrize("which", list(Policy))
def test_equation_1_is_the_papers_for_every_request_and_node_up_to_twenty(which: Policy) -> None:
    for req in range(1, 21):
        for avail in range(-8, 21):
            assert policy.score(req, avail, which) == paper(req, avail, which), (req, avail)


def best_order(gpus: list[Gpu]) -> list[str]:
    """Algorithm 1 by looking at every order: none of a fuller node comes before one of an emptier one, unattached ones
    come before all, and of equals the first by node and id comes first."""
    of_node = {gpu.node: sum(other.node == gpu.node for other in gpus) for gpu in gpus}

    def holds(order: tuple[Gpu, ...]) -> bool:
        for first, second in pairwise(order):
            loose = first.port is None, second.port is None
            if loose == (False, True):
                return False
            if loose[0] == loose[1]:
                if of_node[first.node] > of_node[second.node]:
                    return False
                same = of_node[first.node] == of_node[second.node]
                if same and (first.node, first.gpuid) > (second.node, second.gpuid):
                    return False
        return True

    (found,) = [order for order in permutations(gpus) if holds(order)]
    return [gpu.gpuid for gpu in found]


@pytest.mark.parametrize("seed", range(60))
def test_algorithm_1_takes_what_the_best_of_all_orders_takes(seed: int) -> None:
    rng = random.Random(seed)
    places = [("", None), ("n1", "p1"), ("n2", "p2"), ("n3", "p3")]
    gpus = []
    for number in rng.sample(range(9), rng.randint(1, 6)):
        node, port = rng.choice(places)
        gpus.append(Gpu(f"GPU-{number}", node, port))
    order = best_order(gpus)
    assert [gpu.gpuid for gpu in policy.ranked(gpus)] == order
    shortfall = rng.randint(1, 7)
    taken = [gpu.gpuid for gpu in policy.plan(gpus, shortfall)]
    assert taken == (order[:shortfall] if shortfall <= len(gpus) else [])
    assert [gpu.gpuid for gpu in policy.plan(gpus, shortfall, partial=True)] == order[:shortfall]
