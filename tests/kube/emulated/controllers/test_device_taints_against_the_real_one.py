"""Drawn cases of tainted devices before our device-taint-eviction-controller and before the real ones of 1.37 and 1.34:
the same pods deleted, with the same conditions and events, and the same status of rules at every look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import CONTROLLERS, of_release
from mews.kube.releases.cluster_release import ClusterRelease
from tests.kube.emulated.controllers.device_taint_cases import CHANGES, OLD_CHANGES, TaintCase, draw_case
from tests.kube.emulated.controllers.device_taint_oracle import OLD_RELEASE, RELEASE, ours, theirs

_DAILY, _OLD_DAILY, _NIGHTLY, _BATCH = 48, 19, 600, 100
_ATTEMPTS = 3
"""On a busy machine a change may come too close to a look."""


def _same_in_both(cases: Sequence[TaintCase], folder: Path, release: ClusterRelease) -> None:
    if of_release(CONTROLLERS, release.name) is None:
        pytest.skip(f"{CONTROLLERS} of Kubernetes {release.name} is missing in KUBEBUILDER_ASSETS and beside it")
    left = list(cases)
    for attempt in range(_ATTEMPTS):
        place = folder / str(attempt)
        place.mkdir()
        seen, expected = ours(left, release), theirs(left, place, release)
        left = [case for case in left if seen[case.name] != expected[case.name]]
        if not left:
            return
    assert {case.name: seen[case.name] for case in left} == {case.name: expected[case.name] for case in left}


def test_drawn_cases_come_to_every_kind_of_end() -> None:
    cases = [draw_case(2, number) for number in range(2 * _DAILY)]
    seen = ours(cases)
    assert seen == ours(cases)
    assert {case.change for case in cases} == set(CHANGES)
    ends = Counter[str]()
    for looks in seen.values():
        ends.update(event.split()[3] for event in looks[-1]["events"])
        ends.update({condition["reason"] for look in looks for rule in look["rules"].values() for condition in rule})
        ends["changed"] += looks[0]["events"] != looks[-1]["events"]
    assert set(ends) == {
        *("Marking", "Cancelling", "changed"),
        *("NotStarted", "PodsPendingEviction", "Completed", "NoEffect", "OtherEffect"),
    }
    assert min(ends.values()) >= 3, ends


def test_drawn_cases_of_1_34_come_to_every_kind_of_end() -> None:
    cases = [draw_case(2, number, old=True) for number in range(4 * len(OLD_CHANGES))]
    seen = ours(cases, OLD_RELEASE)
    assert {case.change for case in cases} == set(OLD_CHANGES)
    ends, chosen = Counter[str](), Counter[str]()
    for looks in seen.values():
        ends.update(event.split()[3] for event in looks[-1]["events"])
        ends["evicted"] += "DeletionByDeviceTaintManager" in str(looks[-1]["pods"])
        ends["changed"] += looks[0]["pods"] != looks[-1]["pods"]
        assert not any(condition for look in looks for rule in look["rules"].values() for condition in rule)
    for case in cases:
        chosen.update(part for spec in case.rules.values() for part in spec["deviceSelector"])
    assert min(ends[end] for end in ("evicted", "Cancelling", "changed")) >= 2, ends
    assert min(chosen[part] for part in ("deviceClassName", "selectors", "device", "pool")) >= 5, chosen


@pytest.mark.wall
@pytest.mark.parametrize(("release", "count"), [(RELEASE, _DAILY), (OLD_RELEASE, _OLD_DAILY)], ids=["1.37", "1.34"])
def test_a_sample_of_drawn_cases_ends_as_with_the_real_controller(
    release: ClusterRelease, count: int, tmp_path: Path
) -> None:
    _same_in_both([draw_case(1, number, old=release is OLD_RELEASE) for number in range(count)], tmp_path, release)


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize("release", [RELEASE, OLD_RELEASE], ids=["1.37", "1.34"])
@pytest.mark.parametrize("first", range(0, _NIGHTLY, _BATCH))
def test_drawn_cases_end_as_with_the_real_controller(first: int, release: ClusterRelease, tmp_path: Path) -> None:
    cases = [draw_case(2, number, old=release is OLD_RELEASE) for number in range(first, first + _BATCH)]
    _same_in_both(cases, tmp_path, release)
