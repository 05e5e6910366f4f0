"""The tool that plants one-line faults in a room and runs its tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutate.checkout import Checkout, Reached
from tests.mutate.faults import Mutant, _may_stand_in_any_order, mutants, rooms
from tests.planted.rooms import ROOT

FILE = "kube/releases/release_data.py"
ROOM = "kube/releases"


def fault(before: str, after: str) -> Mutant:
    source = (ROOT / FILE).read_text(encoding="utf-8")
    assert source.count(before) == 1
    return Mutant(FILE, "minor", 0, "constant", source.index(before), before, after)


def test_the_same_seed_draws_the_same_faults_in_as_many_functions() -> None:
    drawn = mutants("kube/cel", 3, 40)
    assert drawn == mutants("kube/cel", 3, 40)
    assert drawn != mutants("kube/cel", 4, 40)
    assert len({(each.file, each.first_line, each.function) for each in drawn}) == 40
    assert len({each.sort for each in drawn}) > 5
    for each in drawn:
        compile(each.text(), each.file, "exec")
        assert each.text() != (ROOT / each.file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("statements", "alike"),
    [
        ("self.a = a\n        self.b = b", True),
        ("a = b\n    b = c", False),
        ("a = 1\n    a = 2", False),
        ("a = f()\n    b = 1", False),
        ("a = 1\n    del b", False),
    ],
)
def test_what_may_stand_in_any_order_is_no_fault(statements: str, alike: bool) -> None:
    assert _may_stand_in_any_order(statements) is alike


def test_rooms_are_the_packages_two_levels_deep_that_have_tests() -> None:
    found = rooms()
    assert {"kube/cel", "kube/emulated", "systems/kubecomp", "harness/scenario", "emulator/nvml"} <= set(found)
    assert all(room.count("/") == 1 for room in found)


def test_a_wrong_room_is_refused_with_the_list() -> None:
    ended = subprocess.run([sys.executable, "-m", "tests.mutate", "kube"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "kube/cel" in ended.stderr


@pytest.mark.wall
def test_a_fault_is_killed_by_the_test_that_fails_and_lives_where_none_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEWS_DATA_DIR", "/nowhere")
    checkout = Checkout()
    try:
        reached = [each for each in checkout.reach(ROOM) if "test_cluster_release" in each.test]
        source = (ROOT / FILE).read_text(encoding="utf-8")
        line = next(number for number, text in enumerate(source.splitlines(), 1) if text.startswith("def minor"))
        tests = [each for each in reached if (FILE, line) in each.functions]
        assert tests
        wrong = fault('name.partition(".")[2]', 'name.partition(".")[0]')
        killed = checkout.judge(ROOM, wrong, tests, reached, limit_s=120.0)
        assert killed.killer in {each.test for each in reached}
        alike = fault('"""Return the second number', '"""Return a second number')
        lives = checkout.judge(ROOM, alike, tests[:2], tests[:3], limit_s=120.0)
        assert (lives.killer, lives.tests) == ("", 3)
        assert (checkout.folder / FILE).read_text(encoding="utf-8") == source
        first = Reached(tests[0].test, 0.1, frozenset())
        hangs = fault("return int(", "while True: pass\n    return int(")
        assert checkout.judge(ROOM, hangs, [first], (), limit_s=20.0).killer.endswith("(hangs)")
    finally:
        checkout.close()
    assert not Path(checkout.folder).exists()
    assert "MUTATE_ROOM" not in os.environ
