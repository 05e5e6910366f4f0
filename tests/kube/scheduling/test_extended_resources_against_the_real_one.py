"""Drawn cases of extended resources before our scheduler and before the real one: the same verdicts, words and claims,
and the same in the pod's status. On 1.37, and on 1.34 with its gate on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import SCHEDULER, of_release
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from tests.kube.scheduling.extended_cases import draw_extended_case
from tests.kube.scheduling.extended_oracle import ExtendedVerdict, ours, theirs

NEW = cluster_release("1.37")
OLD = cluster_release("1.34", gates={"DRAExtendedResource": True})
_DAILY, _NIGHTLY, _BATCH = 24, 600, 60


def _differing(first: int, count: int, release: ClusterRelease, folder: Path) -> dict[int, object]:
    if of_release(SCHEDULER, release.name) is None:
        pytest.skip(f"no kube-scheduler of {release.name}")
    cases = [draw_extended_case(1, number) for number in range(first, first + count)]
    both = zip(cases, ours(cases, release), theirs(cases, release, folder), strict=True)
    return {
        case.number: (mine, real)
        for case, mine, real in both
        if mine != real and not (release == OLD and _in_random_order(mine))
    }


def _in_random_order(verdict: ExtendedVerdict) -> bool:
    """Whether 1.34 puts the requests of the claim into an order of chance: where there are several resources."""
    return len({mapping["resourceName"] for mapping in (verdict.noted or {}).get("requestMappings", ())}) > 1


def test_drawn_cases_come_to_every_kind_of_end() -> None:
    cases = [draw_extended_case(1, number) for number in range(_NIGHTLY // 4)]
    verdicts = ours(cases, NEW)
    assert verdicts == ours(cases, NEW)
    ends = Counter((bool(verdict.node), verdict.noted is not None, verdict.reason) for verdict in verdicts)
    assert ends[True, True, ""] > _NIGHTLY // 20
    assert set(ends) == {
        (True, True, ""),
        (True, False, ""),
        (False, False, "Unschedulable"),
        (False, False, "SchedulerError"),
    }


@pytest.mark.wall
@pytest.mark.parametrize("release", [NEW, OLD], ids=["1.37", "1.34"])
def test_a_sample_of_drawn_cases_ends_as_with_the_real_scheduler(release: ClusterRelease, tmp_path: Path) -> None:
    assert _differing(0, _DAILY, release, tmp_path) == {}


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize("release", [NEW, OLD], ids=["1.37", "1.34"])
@pytest.mark.parametrize("first", range(0, _NIGHTLY, _BATCH))
def test_drawn_cases_end_as_with_the_real_scheduler(first: int, release: ClusterRelease, tmp_path: Path) -> None:
    assert _differing(first, _BATCH, release, tmp_path) == {}
