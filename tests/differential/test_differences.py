"""The embedded server answers what a real control plane answers; the exceptions are known and have a reason.

Where there is no real one, requests are compared with what it answered when that was written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from tests.differential import recorded, sides
from tests.differential.areas import ABOUT, AREAS, FILES
from tests.differential.documentation import PAGE, page
from tests.differential.known import KNOWN
from tests.differential.model import Pair, Run, Sent
from tests.differential.report import difference, share, table
from tests.differential.sides import compare_recorded, compare_settled, lacking, plain

_ENOUGH, _ENOUGH_IN_AN_AREA = 98.0, 95.0
_IDS = [f"{area}: {case.name}" for area, cases in AREAS.items() for case in cases]


@cache
def pairs() -> Sequence[Pair]:
    if lacking():
        return compare_recorded(recorded.CASES, FILES, recorded.answers("areas"), namespace="kubectl")
    return compare_settled(AREAS, FILES, namespace="kubectl", known=KNOWN)


def named(area: str, pair_id: str) -> Pair:
    if area not in recorded.CASES and (why := lacking()):
        pytest.skip(why)
    return next(pair for pair in pairs() if pair.area == area and pair.id == pair_id)


@pytest.mark.wall
@pytest.mark.parametrize("pair_id", _IDS)
def test_both_servers_answer_alike(pair_id: str) -> None:
    pair = named(pair_id.partition(": ")[0], pair_id)
    if pair_id in KNOWN:
        assert not pair.same, f"{pair_id} no longer differs: take it out of KNOWN"
        return
    assert pair.same, f"{pair_id}\n{difference(pair)}"


@pytest.mark.wall
def test_nearly_all_answers_are_the_same_in_every_area() -> None:
    areas = recorded.CASES if lacking() else AREAS
    shares = {area: share([pair for pair in pairs() if pair.area == area]) for area in areas}
    assert min(shares.values()) >= _ENOUGH_IN_AN_AREA, table(pairs())
    assert share(pairs()) >= _ENOUGH, table(pairs())


@pytest.mark.wall
def test_what_is_written_down_is_what_the_real_server_answers() -> None:
    if why := lacking():
        pytest.skip(why)
    there = recorded.answers("areas")
    assert [(pair.area, pair.case.name) for pair in pairs() if pair.area in recorded.CASES] == list(there)
    settled = [pair for pair in pairs() if pair.area in recorded.CASES and pair.same]
    changed = [pair.id for pair in settled if plain(pair.real) != there[pair.area, pair.case.name]]
    assert changed == [], "write it anew: python -m tests.differential --record"


def test_the_list_is_long_enough_and_names_each_case_once() -> None:
    cases = [case for members in AREAS.values() for case in members]
    commands = [case for case in cases if isinstance(case, Run)]
    assert len(cases) - len(commands) >= 300
    assert len(commands) >= 80
    assert len(set(_IDS)) == len(_IDS)


def test_known_differences_are_of_cases_that_exist_and_are_told_to_users() -> None:
    assert set(KNOWN) <= set(_IDS)
    assert PAGE.read_text(encoding="utf-8") == page(ABOUT), "write it anew: python -m tests.differential --write-page"


def test_only_what_still_differs_after_longer_pauses_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Sequence[str], float]] = []

    def answers(cases: sides.Cases, files: object, *, namespace: str, pauses: float = 1.0) -> list[Pair]:
        asked.append((tuple(cases), pauses))
        late, never = {"a": pauses > 1}, {"a": False}
        return [
            Pair(area, case, {"a": True}, {"same": {"a": True}, "late": late, "never": never}[area])
            for area in cases
            for case in cases[area]
        ]

    monkeypatch.setattr(sides, "compare", answers)
    areas = {area: (Sent(area, "GET", "/"),) for area in ("same", "late", "never")}
    found = {pair.area: pair.same for pair in compare_settled(areas, {}, namespace="default")}
    assert found == {"same": True, "late": True, "never": False}
    assert [names for names, _ in asked] == [("same", "late", "never"), ("late", "never")]
    assert asked[1][1] > asked[0][1]
