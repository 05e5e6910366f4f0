"""A sample of what ``make planted`` measures in full, and that the measure itself is right."""

import ast
import json
import random
import subprocess
import sys
from collections import Counter

import pytest

from mews.kube.system.journal import Line
from tests.planted import __main__ as command
from tests.planted import kept
from tests.planted.fault import Fault, LostFaultError
from tests.planted.kept import kept_faults
from tests.planted.mutate import changes, faults_of
from tests.planted.rooms import ROOMS, ROOT
from tests.planted.trial import Sight, Verdict, compared, departure, with_drawn_names
from tests.planted.worlds import Citation, Played, World, objects_of

WORLD = World("demo.yaml", 1)


def planted(*options, seconds=600):
    """What the command prints, in a process that has not imported mews yet."""
    command = [sys.executable, "-m", "tests.planted", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=seconds, check=False)


def test_twenty_of_the_faults_kept_by_hand_are_found_as_recorded():
    done = planted("--sample", "20", "--seed", "1", seconds=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("20 planted, 20 as they are recorded\n")


@pytest.mark.nightly
def test_all_faults_kept_by_hand_are_found_as_recorded():
    done = planted("--sample", "75", seconds=3600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("found", "named", "reached"),
    [
        pytest.param(19, 17, True, id="both bars"),
        pytest.param(18, 17, False, id="too few found"),
        pytest.param(20, 16, False, id="too few named"),
    ],
)
def test_a_half_below_a_bar_fails_the_command(found, named, reached, capsys):
    fault = Fault("x", "kubecomp", "systems/kubecomp/rules.py", 0, "", "")
    sight = Sight("demo.yaml seed 1", 3, "api bound", "failed", "law 3")
    verdicts = [
        Verdict(fault, counts=True, found=sight if n < found else None, named=sight if n < named else None)
        for n in range(20)
    ]
    assert command.account("kept by hand", verdicts) is reached
    assert f"20 planted, {found} found ({found * 5} %), {named} named ({named * 5} %)" in capsys.readouterr().out


@pytest.mark.nightly
def test_both_halves_are_measured_room_by_room():
    done = planted("--seed", "1", seconds=4 * 3600)
    assert done.returncode == 0, done.stdout + done.stderr
    rooms = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [room["room"] for room in rooms] == list(ROOMS)
    assert sum(room["planted"] for room in rooms) >= 140
    assert all(room["planted"] >= room["found"] >= room["named"] for room in rooms)


def test_75_faults_are_kept_and_every_room_has_its_share():
    faults = kept_faults()
    assert len(faults) == 75
    counted = Counter(each.fault.room for each in faults)
    assert set(counted) == set(ROOMS)
    assert min(counted.values()) >= 6
    for each in faults:
        assert each.fault.text() != each.fault.source()
        assert each.finder in ("", "none") or each.world.scenario
    assert sum(each.finder.startswith(("found", "named by ")) for each in faults) >= 20


def test_a_fault_whose_line_is_not_in_the_source_any_more_is_named(monkeypatch):
    lost = {"rule": "none", "file": "systems/kubecomp/rules.py", "source": "if no_such_line:", "planted": "if True:"}
    monkeypatch.setattr(kept, "_entries", lambda room: [lost] if room == "kubecomp" else [])
    with pytest.raises(
        LostFaultError, match=r"kubecomp-kept-1: systems/kubecomp/rules\.py has 'if no_such_line:' 0 times"
    ):
        kept_faults()


SOURCE = """
def judge(found, most):
    if found is None:
        return 0
    log.info("looked %s", 3)
    count = len(found) + 1
    total = count * 2
    if count < most and total:
        found.clear()
    return count
"""


def test_the_mutator_makes_guards_comparisons_missing_calls_and_orders_wrong():
    made = {}
    for change in changes(SOURCE):
        text = SOURCE[: change.start] + change.text + SOURCE[change.end :]
        ast.parse(text)
        (differs,) = {*text.splitlines()} - {*SOURCE.splitlines()} or {"swapped"}
        made.setdefault(change.sort, set()).add(differs.strip())
    assert made["guard-negated"] == {"if not (found is None):", "if not (count < most and total):"}
    assert made["guard-removed"] == {"if False:"}
    assert made["comparison"] == {"if (found) is not (None):", "if (count) <= (most) and total:"}
    assert made["operand-dropped"] == {"if ((total)):", "if ((count < most)):"}
    assert made["off-by-one"] == {"return 1", "count = len(found) + 2", "total = count * 3"}
    assert made["call-dropped"] == {"pass"}
    assert made["order"] == {"swapped"}


def test_faults_are_drawn_by_seed_and_each_compiles():
    def drawn(seed):
        among = faults_of("chassis", random.Random(seed))
        return [next(among) for _ in range(20)]

    assert drawn("1") == drawn("1") != drawn("2")
    for fault in drawn("1"):
        assert fault.text() != fault.source()
        assert fault.function() is not None


def test_a_planted_fault_is_imported_in_its_files_place_and_no_file_is_touched():
    before = (ROOT / "systems/kubecomp/rules.py").read_text()
    plant = (
        "from tests.planted.fault import Fault; from tests.planted.planting import plant;"
        f"plant(Fault('x', 'kubecomp', 'systems/kubecomp/rules.py', {before.index('gpuid in report.held')}, "
        "'gpuid in report.held', 'planted_here')); from mews.systems.kubecomp import rules;"
        "print('planted_here' in rules.in_use.__code__.co_names, rules.__file__)"
    )
    done = subprocess.run([sys.executable, "-c", plant], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["True", str(ROOT / "systems/kubecomp/rules.py")]
    assert (ROOT / "systems/kubecomp/rules.py").read_text() == before


def run_of(*events, alarm="", citations=()):
    """A run of which each line is ``actor event``, with what its verdict cites."""
    lines = [Line(number, 0.0, "api", *event.split()) for number, event in enumerate(events)]
    return Played(tuple(line.as_json() for line in lines), tuple(map(objects_of, lines)), alarm, citations, 0.1)


CLEAN = run_of("pod/default/a created", "pod/default/a bound", "pod/default/a phase")


def test_the_first_wrong_line_is_the_first_that_is_not_as_in_the_clean_run():
    assert departure(CLEAN.lines, CLEAN.lines) is None
    assert departure(CLEAN.lines, CLEAN.lines[:2]) == 2
    assert departure(CLEAN.lines, (CLEAN.lines[0], "other", CLEAN.lines[2])) == 1


@pytest.mark.parametrize(
    ("cited", "named"),
    [
        pytest.param(1, True, id="the line itself"),
        pytest.param(2, True, id="the same pod soon after"),
        pytest.param(3, False, id="another pod"),
        pytest.param(0, False, id="a line before it"),
        pytest.param(12, False, id="the same pod more than ten lines later"),
    ],
)
def test_a_fault_is_named_by_its_first_wrong_line_or_one_of_the_same_object_soon_after(cited, named):
    events = ["pod/default/a created", "pod/default/a deleting", "pod/default/a phase", "pod/default/b created"]
    events += ["pod/default/c phase"] * 8 + ["pod/default/a deleted"]
    seen = run_of(*events, alarm="failed: it was deleted", citations=(Citation(cited, "law 3"),))
    sight = compared(WORLD, CLEAN, seen)
    assert (sight.first, sight.kind, bool(sight.named)) == (1, "api deleting", named)


def test_a_run_that_goes_wrong_unnoticed_is_changed_and_not_found():
    sight = compared(WORLD, CLEAN, run_of("pod/default/a created", "pod/default/a deleting"))
    assert (sight.alarm, sight.named) == ("", "")
    assert compared(WORLD, CLEAN, CLEAN) is None


def test_a_run_that_ends_too_early_is_named_by_its_last_line():
    ended = run_of("pod/default/a created", "pod/default/a bound", alarm="Stalled", citations=(Citation(1, "step"),))
    sight = compared(WORLD, CLEAN, ended)
    assert (sight.first, sight.named) == (2, "step")
    early = run_of("pod/default/a created", "pod/default/a bound", alarm="Stalled", citations=(Citation(0, "step"),))
    assert compared(WORLD, CLEAN, early).named == ""


def test_a_name_that_is_drawn_another_time_is_no_difference_and_one_in_anothers_place_is():
    uids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(4)]

    def run(*names, last):
        said = [f'{{"uid":"{name}","request":"19b76dad29d-{name[:8]}"}}' for name in names]
        return with_drawn_names([*said, f'{{"entries":[["{last}","GPU-{uids[3]}"]]}}'])

    assert run(uids[0], uids[1], last=uids[0]) == run(uids[2], uids[0], last=uids[2])
    assert run(uids[0], uids[1], last=uids[0]) != run(uids[0], uids[1], last=uids[1])
    assert run(uids[0], uids[0], last=uids[0]) != run(uids[0], uids[1], last=uids[0])


def test_a_survivor_that_only_changes_an_order_within_a_moment_is_told_from_others(capsys):
    def swapped(*events, t=0.0):
        lines = [Line(n, t, "api", *event.split(), {"uid": f"u{n}"}) for n, event in enumerate(events)]
        return Played(tuple(line.as_json() for line in lines), tuple(map(objects_of, lines)), "", (), 0.1)

    clean = swapped("pod/default/a bound", "pod/default/b bound")
    reordered = compared(WORLD, clean, swapped("pod/default/b bound", "pod/default/a bound"))
    later = compared(WORLD, clean, swapped("pod/default/b bound", "pod/default/a bound", t=1.0))
    assert (reordered.reorders, later.reorders) == (True, False)
    fault = Fault("x", "kubecomp", "systems/kubecomp/rules.py", 0, "", "")
    verdicts = [Verdict(fault, True, None, None, sights) for sights in ((reordered,), (later,), (reordered, later))]
    assert [each.reorders for each in verdicts] == [True, False, False]
    command.account("drawn", verdicts)
    assert "  1 of those that live only change the order of what happens at one moment" in capsys.readouterr().out


def test_a_fault_keeps_its_line_and_shows_what_it_is():
    source = (ROOT / "systems/kubecomp/rules.py").read_text()
    fault = Fault("x", "kubecomp", "systems/kubecomp/rules.py", source.index("gpuid in report.held"), "gpuid", "uuid")
    assert fault.line == source.count("\n", 0, fault.offset) + 1
    assert str(fault) == f"x systems/kubecomp/rules.py:{fault.line}: 'gpuid' -> 'uuid'"
