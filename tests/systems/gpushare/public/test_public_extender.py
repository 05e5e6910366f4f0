"""What the public extender answers and what ours does: recorded answers in every run, two thousand cases where its
program is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mews.systems.gpushare import extender, ledger, policy, records
from tests.systems.gpushare.public.oracle import GPU_SHARE
from tests.upstream.building import NotBuiltError


def test_recorded_answers_are_ours_or_of_the_table_of_differences() -> None:
    found = GPU_SHARE.compare_recorded()
    assert found.wrong == {}
    assert found.equal >= found.cases * 3 // 4
    assert set(found.verdicts) == {"all bound", "some bound", "none bound"}


def _worst_fit(request: int, gpus: Sequence[policy.SharedGpu], free: Mapping[str, int]) -> policy.SharedGpu | None:
    fitting = (gpu for gpu in gpus if gpu.usable and free[gpu.uuid] >= request)
    return max(fitting, key=lambda gpu: free[gpu.uuid], default=None)


@pytest.mark.parametrize("fault", ["worst fit", "failed bindings", "sums", "texts"])
def test_a_fault_of_one_line_is_seen_in_the_recorded_answers(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "worst fit":
        monkeypatch.setattr(ledger, "best_fit", _worst_fit)
    elif fault == "failed bindings":
        monkeypatch.setattr(extender, "node_name_of", lambda pod: pod["spec"].get("nodeName") or "n0")
    elif fault == "sums":
        monkeypatch.setattr(records, "limits_of", lambda container: {})
        monkeypatch.setattr(policy, "used_memory", lambda gpus, uses: dict.fromkeys((gpu.uuid for gpu in gpus), 0))
    else:
        monkeypatch.setattr(policy, "TOO_FULL", "Insufficient GPU Memory")
    assert GPU_SHARE.compare_recorded(40).wrong


def test_the_page_has_the_rows_of_the_table_and_no_other() -> None:
    assert GPU_SHARE.published_rows() == list(GPU_SHARE.rows)


@pytest.mark.nightly
@pytest.mark.wall
def test_two_thousand_cases_are_the_public_extenders_or_of_the_table() -> None:
    try:
        found = GPU_SHARE.compare(range(1_000_000, 1_002_000))
    except NotBuiltError as error:
        pytest.skip(f"the public extender is not here: {error}")
    assert found.wrong == {}
    assert found.equal >= found.cases * 3 // 4, found.rows
