"""Generated cases about the fields of built-in kinds are judged alike by both servers, in the same words."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.differential.generated import fields, published
from tests.differential.generated.bases import BASES
from tests.differential.generated.field_report import differing, kinds_table
from tests.differential.recorded import FIELD_CASES, FIELD_SEED, pairs_of
from tests.differential.report import difference
from tests.differential.sides import lacking, real_documents

_CASES = 500
"""Put to a real server; of recorded answers there are more."""
_SHARE = 0.96
_MISSES_OF_A_KIND = 3
"""Of a kind's cases in the sample (seven, more of pods and of kinds in several forms), so many at most may differ."""


@pytest.mark.wall
def test_generated_fields_are_judged_alike() -> None:
    pairs = pairs_of("fields", fields.cases(FIELD_SEED, FIELD_CASES if lacking() else _CASES))
    refused = [pair for pair in pairs if pair.real["status"] in (400, 422)]
    assert len(refused) > len(pairs) / 3
    found, _known = differing(pairs)
    first = f"first {found[0].case.name}\n{difference(found[0])}" if found else ""
    assert len(found) <= (1 - _SHARE) * len(pairs), f"{kinds_table(pairs)}\n{first}"
    misses = Counter(fields.kind_of(pair.case.name) for pair in found)
    assert max(misses.values(), default=0) <= _MISSES_OF_A_KIND, f"{kinds_table(pairs)}\n{first}"


@pytest.mark.wall
def test_good_objects_are_taken_by_both() -> None:
    pairs = pairs_of("fields", tuple(fields.prepared()))
    refused = [(pair.case.name, pair.real["body"]) for pair in pairs if pair.real["status"] != 201]
    assert not refused
    assert [pair.case.name for pair in pairs if pair.ours["status"] != 201] == []


@pytest.mark.wall
def test_recorded_types_are_those_that_a_server_publishes() -> None:
    if why := lacking():
        pytest.skip(why)
    found = published.written(real_documents(published.recorded))
    assert published.RECORD.read_text(encoding="utf-8") == found, "python -m tests.differential.generated record"


def test_cases_are_different_ones_and_the_same_for_the_same_seed() -> None:
    cases = fields.drawn(1, _CASES)
    assert [case.name for case in cases] == [case.name for case in fields.drawn(1, _CASES)]
    assert [case.name for case in cases] != [case.name for case in fields.drawn(2, _CASES)]
    assert len({case.name for case in cases}) == len(cases) >= 0.9 * _CASES


def test_every_kind_that_can_be_created_has_a_good_object() -> None:
    from mews.kube.emulated.core.store.released_kinds import standard_kinds

    needless = {"SelfSubjectReview", "SelfSubjectRulesReview"}  # nothing in them is checked
    kinds = {
        f"{kind.resource.api_version}/{kind.resource.kind}"
        for kind in standard_kinds()
        if "create" in kind.verbs and kind.resource.kind not in needless
    }
    assert kinds == {base.kind for base in BASES}


def test_cases_of_a_place_are_absent_zero_wrong_and_beyond() -> None:
    base = next(base for base in BASES if base.kind == "v1/Service")
    place = next(place for place in fields.places(base) if place.shown == "spec.ports[0].port")
    labels = {label for label, _ in fields.candidates(place.schema, 80)}
    assert {"absent", "zero", "null", "wrong type", "65535", "65536", "-1", "79", "81"} <= labels
