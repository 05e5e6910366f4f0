"""The benchmark of pods that wait in PreBind at once, at a smaller size."""

from __future__ import annotations

import pytest

from benchmarks.prebind import Attaching, ours


def test_all_pods_wait_at_once_and_each_is_bound_when_its_device_is_attached() -> None:
    found = ours(Attaching(pods=150, attach_s=20.0, at_once=50))
    assert (found.waiting, len(found.bound_s)) == (150, 150)
    # Three rounds of attaches; the scheduler looks at conditions every 5 s.
    rounds = [sorted(found.bound_s)[index : index + 50] for index in (0, 50, 100)]
    for number, times in enumerate(rounds, start=1):
        assert times[0] >= 20.0 * number
        assert times[-1] <= 20.0 * number + 6.0
    assert found.quantile_s(0.99) == pytest.approx(63.0, abs=3.0)


def test_nobody_waits_longer_than_an_attach_where_all_run_side_by_side() -> None:
    found = ours(Attaching(pods=30, attach_s=5.0, at_once=30))
    assert found.waiting == 30
    assert 5.0 <= found.quantile_s(0.0) <= found.quantile_s(1.0) < 11.0
