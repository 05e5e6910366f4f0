"""Drawn cases of device allocation before our scheduler and before the real one: the same verdicts and words, and
devices that the search allows. The real one of 1.34 takes pools in random order."""

from __future__ import annotations

from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import NEEDED
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES
from tests.kube.emulated.apiserver.real_parts import missing
from tests.kube.scheduling.device_cases import draw_case
from tests.kube.scheduling.device_oracle import is_allowed, ours, theirs

_MISSING = missing(*NEEDED, "kube-scheduler")
_DAILY, _NIGHTLY, _BATCH = 50, 2000, 100


def _differing(first: int, count: int, folder: Path) -> dict[int, object]:
    cases = [draw_case(1, number) for number in range(first, first + count)]
    found: dict[int, object] = {}
    for case, mine, real in zip(cases, ours(cases), theirs(cases, folder), strict=True):
        if not case.ordered and (mine.met_an_invalid_pool or real.met_an_invalid_pool):
            continue  # in another order it is not met
        same_devices = not case.ordered or mine.node != real.node or mine.allocations == real.allocations
        if mine.said(ordered=case.ordered) != real.said(ordered=case.ordered) or not same_devices:
            found[case.number] = (mine, real)
        elif real.node and not is_allowed(case, real, DEFAULT_FEATURES):
            found[case.number] = ("not allowed", real)
    return found


def test_drawn_cases_come_to_every_kind_of_end() -> None:
    cases = [draw_case(1, number) for number in range(_DAILY)]
    verdicts = ours(cases)
    assert verdicts == ours(cases)
    assert sum(bool(verdict.node) for verdict in verdicts) > _DAILY // 4
    assert {verdict.reason for verdict in verdicts} == {"", "Unschedulable", "SchedulerError"}
    bound = [(case, verdict) for case, verdict in zip(cases, verdicts, strict=True) if verdict.node]
    assert all(is_allowed(case, verdict, DEFAULT_FEATURES) for case, verdict in bound)


@pytest.mark.wall
@pytest.mark.skipif(bool(_MISSING), reason=_MISSING or "-")
def test_a_sample_of_drawn_cases_ends_as_with_the_real_scheduler(tmp_path: Path) -> None:
    assert _differing(0, _DAILY, tmp_path) == {}


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.skipif(bool(_MISSING), reason=_MISSING or "-")
@pytest.mark.parametrize("first", range(0, _NIGHTLY, _BATCH))
def test_drawn_cases_end_as_with_the_real_scheduler(first: int, tmp_path: Path) -> None:
    assert _differing(first, _BATCH, tmp_path) == {}
