"""Loads as files and annotations have them."""

import pytest

from mews.emulator.telemetry.load import parse_load, traced
from mews.emulator.telemetry.units import ns


@pytest.mark.parametrize("value", [80, "80", "80%", {"utilization": 80}, {"curve": {0: 80}}, {"curve": [[0, 80]]}])
def test_a_constant_load_has_many_forms(value):
    assert parse_load(value).levels("").at(ns(99)) == (80, None)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (
            101,
            "load 101: must be a percentage, or a mapping with one of utilization, curve, walk, trace, and memory_mib",
        ),
        ("much", "load 'much': must be a percentage"),
        (None, "load None: must be a percentage"),
        ({}, "load {}: must be a percentage"),
        ({"utilization": 80, "walk": {}}, "load {'utilization': 80, 'walk': {}}: must be a percentage"),
        ({"utilisation": 80}, "load 'utilisation': unknown key; allowed: utilization, curve, walk, trace, memory_mib"),
        ({"utilization": "x"}, "utilization 'x': must be a percentage from 0 to 100"),
        ({"utilization": 1, "memory_mib": -1}, "memory_mib -1: must be a whole number from 0 to 4194304"),
        ({"utilization": 1, "repeat_s": 5}, "repeat_s 5: only a curve repeats"),
        ({"curve": []}, "curve []: must be seconds and percentages"),
        ({"curve": [[5, 1], [5, 2]]}, "curve's seconds 5: must be more than those before"),
        ({"curve": [[5]]}, "curve [5]: must be a pair of seconds and percent"),
        ({"curve": {0: 1, 9: 2}, "repeat_s": 9}, "repeat_s 9: must be more than the last of the curve's seconds"),
        ({"walk": 5}, "walk 5: must be a mapping of low, high, step, every_s"),
        ({"walk": {"low": 9, "high": 8}}, "walk: low 9 is above high 8"),
        ({"walk": {"every": 8}}, "walk 'every': unknown key; allowed: low, high, step, every_s"),
        ({"trace": "a.csv"}, "trace 'a.csv': a trace file can be named only on the command line"),
    ],
)
def test_what_is_no_load_is_refused_in_one_line(value, complaint):
    with pytest.raises(ValueError) as refusal:
        parse_load(value)
    assert str(refusal.value).startswith(complaint)
    assert "\n" not in str(refusal.value)


def test_a_trace_is_a_curve():
    load = traced([{"t_s": "0", "utilization": "10"}, {"t_s": "2.5", "utilization": "90"}])
    assert [load.levels("").at(ns(t))[0] for t in (0, 2.4, 2.5, 100)] == [10, 10, 90, 90]
    with pytest.raises(ValueError, match="line 3: must have numbers in the columns t_s and utilization"):
        traced([{"t_s": "0", "utilization": "10"}, {"t_s": "2.5"}])


@pytest.mark.parametrize(
    "value",
    [80, {"curve": [[0, 10], [3, 20]], "repeat_s": 7.5, "memory_mib": 5}, {"walk": {"low": 1, "high": 2, "step": 3}}],
)
def test_a_load_as_a_value_reads_back_as_the_same(value):
    load = parse_load(value)
    assert parse_load(load.as_value()) == load
