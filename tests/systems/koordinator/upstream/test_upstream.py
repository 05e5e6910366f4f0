"""Upstream's decisions and ours: those recorded in every run, those of thousands of cases where Go is there."""

from __future__ import annotations

import pytest

from mews.systems.koordinator import node_choice, policy, topology
from mews.systems.koordinator.scoring import normalized
from tests.systems.koordinator.upstream.comparing import ours
from tests.systems.koordinator.upstream.drawing import drawn
from tests.systems.koordinator.upstream.oracle import DEVICE_SHARE, SCORES
from tests.upstream.building import NotBuiltError

SEEDS = range(DEVICE_SHARE.recorded)


def test_recorded_decisions_are_ours_or_of_the_table_of_differences() -> None:
    found = DEVICE_SHARE.compare_recorded()
    assert found.wrong == {}
    assert found.cases - found.equal <= found.cases * 4 // 100


def test_recorded_decisions_are_of_every_kind() -> None:
    found = DEVICE_SHARE.compare_recorded()
    assert set(found.verdicts) == {"given", "filtered", "invalid", "unreserved"}
    assert found.verdicts["given"] >= found.cases * 2 // 5


def test_scores_of_nodes_are_normalized_as_recorded() -> None:
    recorded = [answer["normalized"] for answer in DEVICE_SHARE.recorded_answers()[len(SEEDS) :]]
    assert [list(normalized({str(n): s for n, s in enumerate(scores)}).values()) for scores in SCORES] == recorded


@pytest.mark.parametrize("fault", ["first minor", "wide scopes", "no scores", "no switches"])
def test_a_fault_of_one_line_is_seen_in_the_recorded_decisions(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "first minor":
        monkeypatch.setattr(topology, "_rank", lambda found: (0, 0))
    elif fault == "wide scopes":
        tree_of = topology.tree_of
        flat = lambda gpus: (tree := tree_of(gpus)) and topology.GpuScope(tree.level, tree.minors)  # noqa: E731
        monkeypatch.setattr(node_choice, "tree_of", flat)
    elif fault == "no scores":
        monkeypatch.setattr(policy, "score", lambda *_: 0)
    else:
        monkeypatch.setattr(policy, "_switches", lambda pick: frozenset())
    assert DEVICE_SHARE.compare_recorded().wrong


def test_the_seeds_order_is_another_than_upstreams(monkeypatch: pytest.MonkeyPatch) -> None:
    """`deviceChoice: minor` takes the first GPU with room, whatever else is used; upstream packs."""
    allocate = policy.allocate
    chosen = []
    for seed in SEEDS:
        case = {**drawn(seed), "annotations": {}, "requests": {"koordinator.sh/gpu": "30"}}
        case["device"] = {**case["device"], "metadata": {"name": "n", "labels": {}, "annotations": {}}}
        case["nodeLabels"] = {}
        upstream = ours(case)
        monkeypatch.setattr(policy, "allocate", lambda ask, use, **how: allocate(ask, use, **how | {"choice": "minor"}))
        mine = ours(case)
        monkeypatch.setattr(policy, "allocate", allocate)
        if mine["verdict"] == "given":
            chosen.append((mine["given"]["gpu"][0][0], upstream["given"]["gpu"][0][0]))
    assert all(minor <= other for minor, other in chosen)
    assert sum(minor < other for minor, other in chosen) > len(chosen) // 3


def test_the_page_has_the_rows_of_the_table_and_no_other() -> None:
    assert DEVICE_SHARE.published_rows() == list(DEVICE_SHARE.rows)


@pytest.mark.nightly
def test_five_thousand_decisions_are_upstreams_or_of_the_table() -> None:
    try:
        found = DEVICE_SHARE.compare(range(1_000_000, 1_005_000))
    except NotBuiltError as error:
        pytest.skip(f"upstream's DeviceShare cannot be built here: {error}")
    assert found.wrong == {}
    assert found.cases - found.equal <= found.cases * 3 // 100, found.rows
