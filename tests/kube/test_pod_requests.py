"""What a pod asks for is one rule, held against the invariants' own reckoning."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mews.harness.invariants.scheduled import amounts_of
from mews.kube.api.pod_requests import pod_amount, pod_amounts, pod_limit, request_of
from mews.kube.api.quantities import milli, parse
from mews.kube.scheduling.podinfo import amounts, pod_info


def container(asked: str, *, always: bool = False, **limits: str) -> dict:
    made = {"name": "c", "resources": {"requests": {"cpu": asked}, "limits": limits}}
    return {**made, "restartPolicy": "Always"} if always else made


def pod(mains: list[dict], inits: list[dict] = (), **overhead: str) -> dict:
    spec = {"containers": mains, "initContainers": list(inits), "overhead": overhead}
    return {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "spec": spec}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod([container("1"), container("500m")]), 1500),
        (pod([container("1")], [container("3")]), 3000),
        (pod([container("1")], [container("1", always=True), container("3")]), 4000),
        (pod([container("1")], [container("3"), container("1", always=True)]), 3000),
        (pod([container("1")], [container("2", always=True), container("1", always=True)]), 4000),
        (pod([container("1")], [container("3")], cpu="250m"), 3250),
        (pod([]), 0),
    ],
)
def test_a_pod_asks_for_what_runs_together_or_its_largest_moment_and_its_overhead(asked, expected):
    assert pod_amount(asked, "cpu", milli) == expected
    assert pod_info(asked).request("cpu") == expected


def test_a_limit_stands_for_a_request_that_is_missing():
    asked = {"spec": {"containers": [{"resources": {"limits": {"falcon.com/gpu": "2"}}}]}}
    assert request_of(asked, "falcon.com/gpu") == 2


def test_what_a_pod_asks_for_as_a_whole_stands_for_what_its_containers_do():
    asked = pod([container("1")], cpu="250m")
    asked["spec"]["resources"] = {"requests": {"cpu": "3", "example.com/x": "9"}, "limits": {"cpu": "4"}}
    assert (pod_amount(asked, "cpu", milli), pod_info(asked).request("cpu")) == (3250, 3250)
    assert pod_limit(asked, "cpu", milli) == 4250
    assert request_of(asked, "example.com/x") == 0


def test_overhead_counts_beside_a_limit_only():
    assert pod_limit(pod([container("1", cpu="2")], cpu="250m"), "cpu", parse) == Decimal("2.25")
    assert pod_limit(pod([container("1")], cpu="250m"), "cpu", parse) == 0


def test_defaults_fill_in_what_a_container_does_not_ask():
    asked = pod([container("1"), {"name": "d"}], [{"name": "i"}])
    assert pod_amounts(asked, amounts, {"cpu": 100, "memory": 7}) == {"cpu": 1100, "memory": 14}


amount = st.integers(0, 4).map(str)


@given(
    mains=st.lists(amount.map(container), max_size=3),
    inits=st.lists(st.builds(container, amount, always=st.booleans()), max_size=4),
    overhead=amount,
    whole=st.none() | amount,
)
def test_the_rule_and_the_oracle_of_the_invariants_agree(mains, inits, overhead, whole):
    asked = pod(mains, inits, cpu=overhead)
    if whole is not None:
        asked["spec"]["resources"] = {"requests": {"cpu": whole}}
    assert pod_amount(asked, "cpu", parse) == amounts_of(asked).get("cpu", 0)
    assert pod_amounts(asked, amounts).get("cpu", 0) == pod_amount(asked, "cpu", milli)
