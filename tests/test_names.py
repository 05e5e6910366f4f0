"""A name that is not there, in words."""

import pytest

from mews.names import among, candidates, did_you_mean, must_be, nearest

FEW = ["alpha", "beta", "gamma"]
MANY = ["slow-operation", "lying-result", "partial-list", "stale-list", "http-error", "timeout", "link-down"]


def test_few_candidates_are_all_named_in_their_order():
    assert candidates("betta", FEW) == "alpha, beta, gamma"
    assert must_be("betta", FEW) == "must be one of alpha, beta, gamma (did you mean beta?)"


def test_of_many_the_nearest_five_are_named_and_the_others_counted():
    said = candidates("stale-lists", MANY)
    assert said.startswith("stale-list, partial-list, ")
    assert said.endswith(" or 2 others")
    assert said.count(", ") == 4
    assert candidates("x", MANY[:6]) == ", ".join(MANY[:6])


def test_no_candidates_at_all_are_said():
    assert candidates("x", []) == "(none)"
    assert among("x", []) == "(none)"


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("ALPHA", FEW, "alpha"),
        ("unattached-gpu", ["demo", "03-unattached-gpu"], "03-unattached-gpu"),
        ("kod2-fg4", ["kod2", "kod2-fig4"], "kod2-fig4"),
        (7, [70, 100], "70"),
        ("al", FEW, None),
        ("wholly-other", FEW, None),
        ("alpha", FEW, None),
    ],
)
def test_what_was_meant_is_spelt_alike_or_has_the_name_within(name, known, meant):
    assert did_you_mean(name, known) == ("" if meant is None else f" (did you mean {meant}?)")


def test_names_that_are_equally_far_stay_in_their_order():
    assert nearest("zz", ["b1", "a1", "c1"]) == ["b1", "a1", "c1"]
    assert nearest("a1", ["b1", "c1", "a2", "a1"], 2) == ["a1", "b1"]


def test_of_a_very_long_name_the_beginning_counts():
    assert must_be("schedular" + "x" * 70_000, ["scheduler", "chassis"]) == "must be one of scheduler, chassis"
    assert nearest("chassis" + "x" * 70_000, ["scheduler", "chassis"]) == ["chassis", "scheduler"]
    long = "a" * 300
    assert nearest(f"{long}bx", [f"{long}cc", f"{long}bb"]) == [f"{long}cc", f"{long}bb"]
