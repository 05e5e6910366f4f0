from __future__ import annotations

import pytest

from mews.systems.kubecomp import policy
from mews.systems.kubecomp.policy import Claim, Consent, Gpu, NodeHoldings, Policy

GPU = "falcon.com/gpu"
FRESH = NodeHoldings(fresh=True)


def pod(*amounts: int) -> dict[str, object]:
    containers = [{"name": f"c{i}", "resources": {"limits": {GPU: str(n)}}} for i, n in enumerate(amounts)]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers}}


def gpus(**by_node: int) -> list[Gpu]:
    return [
        Gpu(f"{index}-{slot:02}", node.replace("_", "-"), str(index))
        for index, (node, count) in enumerate(by_node.items())
        for slot in range(count)
    ]


def test_req_sums_all_containers() -> None:
    assert policy.required(pod(1, 2, 1), GPU) == 4
    assert policy.required(pod(), GPU) == 0


def test_avail_is_allocatable_less_all_other_requests_and_may_be_negative() -> None:
    assert policy.available(4, [1, 1]) == 2
    assert policy.available(2, [4]) == -2


def test_a_node_can_hand_out_no_more_than_it_announces_beyond_what_is_asked_back() -> None:
    assert policy.effective_allocatable(4, None, {"0-a"}) == 4
    assert policy.effective_allocatable(4, {"0-a", "0-b", "0-c", "0-d"}, {"0-a"}) == 3
    assert policy.effective_allocatable(2, {"0-a", "0-b", "0-c"}, set()) == 2


@pytest.mark.parametrize(("req", "avail", "short"), [(4, 2, 2), (4, 4, 0), (4, 6, 0), (4, -3, 4), (0, -1, 0)])
def test_demand_is_the_shortfall(req: int, avail: int, short: int) -> None:
    assert policy.demand(req, avail) == short


def test_pool_free_is_all_devices_less_all_requests() -> None:
    assert policy.pool_free(12, [4, 4, 1]) == 3


def test_prefilter_says_how_many_the_fullest_pool_has() -> None:
    expected = "Pod train requires 5 GPU but only 3 GPU in the pool."
    assert policy.prefilter_message("train", 5, {"pool-0": 3, "pool-1": 1}) == expected
    assert policy.prefilter_message("train", 5, {"pool-0": -2}) == expected.replace("only 3", "only 0")
    assert policy.prefilter_message("train", 5, {}) == expected.replace("only 3", "only 0")
    assert policy.prefilter_message("train", 3, {"pool-0": 3, "pool-1": 1}) is None


def test_filter_drops_nodes_of_pools_with_too_few_free() -> None:
    assert policy.pool_fits(3, 3)
    assert not policy.pool_fits(4, 3)


@pytest.mark.parametrize(
    ("req", "avail", "by_policy"),
    [
        (3, 4, {"both": 75, "best-fit": 75, "least-demand": 0, "none": 0}),
        (1, 3, {"both": 33, "best-fit": 33, "least-demand": 0, "none": 0}),
        (4, 4, {"both": 100, "best-fit": 100, "least-demand": 0, "none": 0}),
        (4, 1, {"both": -3, "best-fit": 0, "least-demand": -3, "none": 0}),
        (4, -2, {"both": -6, "best-fit": 0, "least-demand": -6, "none": 0}),
    ],
)
def test_equation_1_in_integers_and_with_branches_switched_off(req: int, avail: int, by_policy: dict[str, int]) -> None:
    assert {str(p): policy.score(req, avail, p) for p in Policy} == by_policy


def test_scores_are_stretched_to_0_to_100_and_equal_ones_are_all_0() -> None:
    assert policy.normalise({"a": -3, "b": 100, "c": 50}) == {"a": 0, "b": 100, "c": 51}
    assert policy.normalise({"a": 7, "b": 7}) == {"a": 0, "b": 0}
    assert policy.normalise({}) == {}


def test_ties_are_broken_by_name_unless_a_branch_is_off() -> None:
    assert [p for p in Policy if policy.ties_by_name(p)] == [Policy.BOTH]


@pytest.mark.parametrize(("short", "bound_s"), [(1, 120), (4, 300), (14, 900), (40, 900)])
def test_permit_waits_a_minute_and_one_per_device_at_most_fifteen(short: int, bound_s: float) -> None:
    assert policy.permit_bound_s(short) == bound_s


def test_candidates_are_free_and_not_on_the_target() -> None:
    found = policy.candidates(
        gpus(n1=1, n2=2),
        "n1",
        holdings={"n1": FRESH, "n2": NodeHoldings({"1-00": "default/a"}, fresh=True)},
        claims={"n2": [Claim("default/a", "n2", 1, bound=True)]},
    )
    assert [gpu.gpuid for gpu in found] == ["1-01"]


def test_a_node_with_a_stale_report_or_none_gives_nothing() -> None:
    found = policy.candidates(
        gpus(n1=1, n2=2, n3=2), "n1", holdings={"n1": FRESH, "n2": NodeHoldings(fresh=False)}, claims={}
    )
    assert found == ()


def test_as_many_are_kept_back_as_bound_or_awaited_pods_still_need() -> None:
    holdings = {"n2": NodeHoldings({"0-00": "default/a"}, fresh=True)}
    claims = {
        "n2": [
            Claim("default/a", "n2", 2, bound=True),  # one of its two is allocated
            Claim("default/b", "n2", 1, bound=False),
        ]
    }
    found = policy.candidates(gpus(n2=5), "n1", holdings=holdings, claims=claims)
    assert [gpu.gpuid for gpu in found] == ["0-01", "0-02"]


def test_an_unattached_device_is_a_candidate_and_one_on_an_unknown_port_is_not() -> None:
    pool = [Gpu("0-00", "", None), Gpu("0-01", "", "99")]
    found = policy.candidates(pool, "n1", holdings={}, claims={})
    assert [gpu.gpuid for gpu in found] == ["0-00"]


def test_excluded_devices_are_no_candidates_and_do_not_stand_in_for_kept_back_ones() -> None:
    claims = {"n2": [Claim("default/b", "n2", 2, bound=True)]}
    found = policy.candidates(gpus(n2=3), "n1", holdings={"n2": FRESH}, claims=claims, excluded={"0-00"})
    assert found == ()


def test_a_node_keeps_first_what_the_target_has_no_cable_to() -> None:
    claims = {"n2": [Claim("default/b", "n2", 1, bound=True)]}
    found = policy.candidates(gpus(n2=3), "n1", holdings={"n2": FRESH}, claims=claims, out_of_reach={"0-00"})
    assert [gpu.gpuid for gpu in found] == ["0-01", "0-02"]


def test_algorithm_1_takes_from_the_node_with_fewest_candidates() -> None:
    found = gpus(n2=3, n3=1, n4=2)
    assert policy.gpu_scores(found) == {
        "0-00": -3, "0-01": -3, "0-02": -3, "1-00": -1, "2-00": -2, "2-01": -2,
    }  # fmt: skip
    assert [gpu.gpuid for gpu in policy.ranked(found)] == ["1-00", "2-00", "2-01", "0-00", "0-01", "0-02"]


def test_ties_of_algorithm_1_go_by_node_then_gpuid() -> None:
    found = [Gpu("0-b", "n3", "3"), Gpu("0-a", "n3", "3"), Gpu("1-b", "n2", "2"), Gpu("1-a", "n2", "2")]
    assert [gpu.gpuid for gpu in policy.ranked(found)] == ["1-a", "1-b", "0-a", "0-b"]


def test_unattached_devices_come_first() -> None:
    found = [*gpus(n2=1), Gpu("9-01", "", None), Gpu("9-00", "", None)]
    assert [gpu.gpuid for gpu in policy.ranked(found)] == ["9-00", "9-01", "0-00"]


def test_too_few_candidates_move_none_unless_partial() -> None:
    found = gpus(n2=2)
    assert policy.plan(found, 3) == ()
    assert len(policy.plan(found, 3, partial=True)) == 2
    assert len(policy.plan(found, 1)) == 1


def test_consent_counts_for_its_request_while_it_is_fresh() -> None:
    consent = Consent("r1", 100.0)
    assert policy.consent_is_fresh(consent, "r1", now_s=115.0, max_age_s=15.0)
    assert not policy.consent_is_fresh(consent, "r1", now_s=115.1, max_age_s=15.0)
    assert not policy.consent_is_fresh(consent, "r2", now_s=100.0, max_age_s=15.0)
    assert not policy.consent_is_fresh(None, "r1", now_s=100.0, max_age_s=15.0)


def test_a_node_gives_away_only_what_its_pods_do_not_need() -> None:
    claims = [Claim("default/a", "n2", 2, bound=True)]
    assert policy.spare_after(["0-00", "0-01", "0-02"], {}, claims, 1) == 0
    assert policy.spare_after(["0-00", "0-01", "0-02"], {"0-00": "default/a"}, claims, 2) == -1
