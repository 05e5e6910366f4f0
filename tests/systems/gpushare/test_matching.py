"""Which container an Allocate is for."""

from __future__ import annotations

from typing import Any

from mews.systems.gpushare import names
from mews.systems.gpushare.matching import PodCandidate, candidates, match
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import decided

FIRST, SECOND = SharedGpu(0, "GPU-0", 8), SharedGpu(1, "GPU-1", 8)


def pod(name: str, gpu: SharedGpu, *amounts: int, assumed: int) -> dict[str, Any]:
    containers = [
        {"name": f"c{n}", "resources": {"limits": {names.MEMORY_RESOURCE: str(amount)}}}
        for n, amount in enumerate(amounts)
    ]
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": decided(gpu, sum(amounts), assumed)}
    return {"metadata": metadata, "spec": {"containers": containers}, "status": {"phase": "Pending"}}


def waiting(**served: frozenset[str]) -> list[PodCandidate]:
    """A pod of two containers on the first GPU, and one that asks for as much as each of them on the second."""
    pods = [pod("two", FIRST, 3, 3, assumed=1), pod("one", SECOND, 3, assumed=2)]
    return candidates(pods, names.MEMORY_RESOURCE, served)


def meant(found: tuple[PodCandidate, str] | None) -> tuple[str, str] | None:
    return None if found is None else (found[0].uid, found[1])


def test_the_gpu_of_the_slices_tells_pods_of_equal_amounts_apart() -> None:
    assert meant(match(3, waiting(), gpu="GPU-1")) == ("one", "c0")
    assert meant(match(3, waiting())) == ("two", "c0")


def test_slices_of_another_gpu_are_for_the_pod_of_several_containers_for_which_they_were_preferred() -> None:
    assert meant(match(3, waiting(), gpu="GPU-1", preferred=("two", "c0"))) == ("two", "c0")
    begun = waiting(two=frozenset({"c0"}))
    assert meant(match(3, begun, gpu="GPU-1", preferred=("two", "c1"))) == ("two", "c1")


def test_a_pod_of_one_container_is_served_in_anothers_place_and_their_decisions_are_exchanged() -> None:
    pods = [pod("equal", FIRST, 3, assumed=1), pod("one", SECOND, 3, assumed=2)]
    found = candidates(pods, names.MEMORY_RESOURCE, {})
    assert meant(match(3, found, gpu="GPU-1", preferred=("equal", "c0"))) == ("one", "c0")


def test_a_preference_for_a_container_that_no_longer_waits_counts_for_nothing() -> None:
    begun = waiting(two=frozenset({"c0"}))
    assert meant(match(3, begun, gpu="GPU-1", preferred=("two", "c0"))) == ("one", "c0")
    assert meant(match(3, waiting(), gpu="GPU-1", preferred=("gone", "c0"))) == ("one", "c0")
    assert match(4, waiting(), preferred=("two", "c0")) is None


def test_by_the_design_s_rule_the_earliest_decision_of_that_amount_is_meant_and_no_other_is_looked_at() -> None:
    pods = [pod("late", FIRST, 3, assumed=9), pod("other", FIRST, 4, assumed=1), pod("early", SECOND, 3, assumed=2)]
    running = pod("runs", FIRST, 3, assumed=0)
    running["status"]["phase"] = "Running"
    undecided = pod("undecided", FIRST, 3, assumed=0)
    undecided["metadata"]["annotations"] = {}
    assigned = pod("assigned", FIRST, 3, assumed=0)
    assigned["metadata"]["annotations"][names.ASSIGNED] = "true"
    found = candidates([*pods, running, undecided, assigned], names.MEMORY_RESOURCE, {}, seed=True)
    assert [each.uid for each in found] == ["other", "early", "late"]
    assert meant(match(3, found)) == ("early", "c0")
    assert meant(match(4, found)) == ("other", "c0")
    assert match(5, found) is None
