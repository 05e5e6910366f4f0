"""Drawn cases of device allocation before our scheduler and before the real one: the same verdicts, words and devices.

The real one of 1.34 takes pools in random order: there the devices are some that the search allows. That of 1.37 takes
them by name; which of two nodes that are as good it takes is chance there, too.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import SCHEDULER, of_release
from mews.kube.releases.cluster_release import cluster_release
from mews.kube.releases.release_data import minor
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.devices.requests import preference
from tests.kube.scheduling.device_cases import DeviceCase, draw_case, uses
from tests.kube.scheduling.device_oracle import Verdict, errors_of, found_on, is_allowed, ours, theirs

log = logging.getLogger(__name__)
OLD, NEW = "1.34", "1.37"
_DAILY, _BATCH = 50, 100
_NIGHTLY = {OLD: 200, NEW: 2000}
_SAMPLE = 200

_OLD_USES = {
    "CEL selectors": 100,
    "count": 80,
    "all devices": 40,
    "prioritized lists": 50,
    "matchAttribute": 40,
    "administrators' access": 8,
    "old generations": 20,
    "allocated before": 8,
}
_NEW_USES = _OLD_USES | {
    "matchAttribute": 25,
    "distinctAttribute": 15,
    "nodes by device": 20,
    "shared counters": 25,
    "shared devices": 80,
    "capacity": 40,
    "taints": 80,
    "tolerations": 50,
    "taint rules": 15,
    "binding conditions": 30,
    "extended resources": 12,
}
_ENDS = {
    "bound": (60, ""),
    "nothing found": (40, "cannot allocate all claims"),
    "class missing": (4, "device class .* does not exist"),
    "expression fails": (4, "CEL runtime error"),
    "pool updated": (4, "is currently being updated"),
    "constraint of all": (2, "a claim constraint would not be satisfied"),
    "too many": (1, "exceeds the claim limit"),
    "invalid pool": (1, "is invalid|invalid resource pools"),
}
_NEW_ENDS = _ENDS | {"attachment breaks": (1, "device binding failed")}


@cache
def _cases(release: str, first: int, count: int) -> Sequence[DeviceCase]:
    return [draw_case(1, number, minor=minor(release)) for number in range(first, first + count)]


def _differing(release: str, first: int, count: int, folder: Path) -> dict[int, object]:
    if of_release(SCHEDULER, release) is None:
        pytest.skip(f"no kube-scheduler of {release}")
    cases, cluster = _cases(release, first, count), cluster_release(release)
    both = zip(cases, ours(cases, cluster), theirs(cases, folder, cluster), strict=True)
    alike = _alike if release == NEW else _alike_in_any_order
    return {case.number: (mine, real) for case, mine, real in both if not alike(case, mine, real)}


def _alike(case: DeviceCase, mine: Verdict, real: Verdict) -> bool:
    features = features_of(cluster_release(NEW))
    if mine.reason == real.reason == "SchedulerError" and mine.words != real.words:
        return {mine.words, real.words} <= errors_of(case, features)
    if mine.said() != real.said() or mine.node == real.node:
        return mine == real
    found = found_on(case, real.node, features) or {}
    given = [(claim, real.allocations[claim["metadata"]["name"]]) for claim in case.claims]
    is_as_good = _goodness(case, mine) == _goodness(case, real)
    return is_as_good and all(
        found.get(claim["metadata"]["name"], allocation) == allocation for claim, allocation in given
    )


def _goodness(case: DeviceCase, verdict: Verdict) -> int:
    return sum(preference(claim, verdict.allocations[claim["metadata"]["name"]]) for claim in case.claims)


def _alike_in_any_order(case: DeviceCase, mine: Verdict, real: Verdict) -> bool:
    if not case.ordered and (mine.met_an_invalid_pool or real.met_an_invalid_pool):
        return True  # in another order it is not met
    if mine.said(ordered=case.ordered) != real.said(ordered=case.ordered):
        return False
    same_devices = not case.ordered or mine.node != real.node or mine.allocations == real.allocations
    return same_devices and (not real.node or is_allowed(case, real, features_of(cluster_release(OLD))))


@pytest.mark.parametrize(
    ("release", "least_uses", "least_ends"),
    [(OLD, _OLD_USES, _ENDS), (NEW, _NEW_USES, _NEW_ENDS)],
    ids=["1.34", "1.37"],
)
def test_drawn_cases_reach_every_feature_and_every_kind_of_end(
    release: str, least_uses: dict[str, int], least_ends: dict[str, tuple[int, str]]
) -> None:
    cases = _cases(release, 0, _SAMPLE)
    verdicts = ours(cases, cluster_release(release))
    used = Counter(feature for case in cases for feature in uses(case))
    ends = {
        kind: sum(bool(re.search(words, verdict.words)) if words else bool(verdict.node) for verdict in verdicts)
        for kind, (_, words) in least_ends.items()
    }
    log.info("of %d cases on %s: %s; %s", _SAMPLE, release, dict(used), ends)
    assert {feature: least for feature, least in least_uses.items() if used[feature] < least} == {}
    assert {kind: least for kind, (least, _) in least_ends.items() if ends[kind] < least} == {}
    assert verdicts == ours(cases, cluster_release(release))
    bound = [(case, verdict) for case, verdict in zip(cases, verdicts, strict=True) if verdict.node]
    assert release == NEW or all(
        is_allowed(case, verdict, features_of(cluster_release(release))) for case, verdict in bound
    )


@pytest.mark.wall
@pytest.mark.parametrize("release", [OLD, NEW])
def test_a_sample_of_drawn_cases_ends_as_with_the_real_scheduler(release: str, tmp_path: Path) -> None:
    assert _differing(release, 0, _DAILY, tmp_path) == {}


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("release", "first"),
    [(release, first) for release, count in _NIGHTLY.items() for first in range(0, count, _BATCH)],
)
def test_drawn_cases_end_as_with_the_real_scheduler(release: str, first: int, tmp_path: Path) -> None:
    assert _differing(release, first, _BATCH, tmp_path) == {}
