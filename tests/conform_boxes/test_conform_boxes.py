"""A sample of what ``make conform-boxes`` measures in full, and that the measure itself is right."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from msgspec.structs import replace

from mews.emulator.wrongs.registry import WRONGS
from tests.conform_boxes.__main__ import good, totals
from tests.conform_boxes.boxes import DIALECTS, SLOW, SMALL, Box, drawn
from tests.conform_boxes.trial import ROOT, BoxVerdict, judged

pytestmark = pytest.mark.wall

SAMPLE = (
    Box("h3api-day", "h3api", SMALL, wrong="no-uuid", odd=("odd-escapes",), manners=("chunks", "prefix", "tls")),
    Box("pool-day", "resource-pool", wrong="again-listed", odd=("odd-upper-uuid",), manners=("http-1.0", "via")),
    Box("redfish-day", "redfish", odd=("odd-space",), manners=("close", "lower-case", "prefix")),
)
FOUND = BoxVerdict(
    box=Box("x", "h3api", wrong="null-uuid"),
    changes=True,
    code=1,
    seconds=5.0,
    judging_s=4.0,
    wanted=("2.strings",),
    clauses={"2.strings": "null"},
    verdict="failed",
    left=(),
    told=False,
    report=True,
    last="",
)
RIGHT = replace(FOUND, box=Box("x", "h3api"), code=0, wanted=(), clauses={}, verdict="passed")


@pytest.mark.parametrize("box", SAMPLE, ids=lambda box: box.name)
def test_a_box_behind_a_reverse_proxy_is_judged_with_changes(box, tmp_path):
    verdict = judged(box, 1, tmp_path, changes=True)
    assert verdict.faults == [], verdict
    assert (verdict.planted, verdict.code) == (bool(box.wrong), int(bool(box.wrong)))


@pytest.mark.nightly
def test_sixty_boxes_are_judged_as_they_are():
    command = [sys.executable, "-m", "tests.conform_boxes", "--seed", "1", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=3600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = json.loads(done.stdout.splitlines()[-1])
    assert (counted["boxes"], counted["runs"]) == (60, 120)


def test_the_boxes_are_those_of_the_seed_and_of_every_kind():
    boxes = drawn(1)
    assert boxes == drawn(1) != drawn(2)
    assert Counter(box.dialect for box in boxes) == dict.fromkeys(DIALECTS, 20)
    assert len({box.name for box in boxes}) == 60
    assert sum(not box.wrong for box in boxes) == 24
    assert sum(not box.wrong and not box.odd for box in boxes) == 12
    assert sum(box.pace == SLOW for box in boxes) >= 5
    assert sum(box.make == SMALL for box in boxes) >= 5
    assert sum(bool(box.manners) for box in boxes) == 45
    assert not any(WRONGS[box.wrong].legal for box in boxes if box.wrong)
    assert all(WRONGS[name].legal for box in boxes for name in box.odd)


@pytest.mark.parametrize(
    ("verdict", "faults"),
    [
        (FOUND, []),
        (RIGHT, []),
        (replace(FOUND, clauses={}, code=0, verdict="passed"), ["not named by one clause of 2.strings"]),
        (replace(FOUND, clauses={"2.strings": "", "2.kinds": ""}), ["not named by one clause of 2.strings"]),
        (replace(FOUND, clauses={"2.kinds": ""}), ["not named by one clause of 2.strings"]),
        (replace(FOUND, wanted=()), ["false alarm"]),
        (replace(RIGHT, clauses={"2.kinds": ""}), ["false alarm"]),
        (replace(RIGHT, verdict="failed", code=1), ["false alarm"]),
        (replace(RIGHT, verdict="incomplete", code=4), []),
        (replace(RIGHT, left=("000100",)), ["left changed without a word: 000100"]),
        (replace(RIGHT, left=("000100",), told=True), []),
        (replace(RIGHT, judging_s=60.6), ["judged for 61 s"]),
        (replace(RIGHT, seconds=70.0, judging_s=60.0), []),
        (replace(RIGHT, report=False), ["no report"]),
        (replace(RIGHT, code=2, last="oops"), ["exit code 2: oops"]),
    ],
)
def test_what_a_run_did_wrong_is_found(verdict, faults):
    assert verdict.faults == faults
    assert good(totals([verdict])) == (not faults or faults[0].startswith("exit code"))


def test_a_login_that_is_missing_is_named_by_its_option():
    asking = replace(RIGHT, box=Box("x", "h3api", wrong="asks-credentials"), code=3, last="give --credentials FILE")
    assert asking.planted
    assert asking.faults == []
    assert replace(asking, last="no").faults == ["not named by one clause of "]


def test_nine_in_ten_is_the_bar():
    missed = replace(FOUND, clauses={}, code=0, verdict="passed")
    assert good(totals([FOUND] * 9 + [missed]))
    assert not good(totals([FOUND] * 8 + [missed]))
