"""`mews reproduce`: what it takes, what it refuses, and that nothing counts as reproduced that is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from mews.harness.cli import exit_code
from mews.harness.errors import BadInputError
from mews.harness.museum.bug import Bug, BugSigns, BugSwitch, SourceChange, read_bug
from mews.harness.museum.museum import Played, Reproduction, bug_of, check_places, words_of
from mews.harness.museum.planting import LostPlaceError, changed, plant_text

BUG = """
title: A bug
component: kubelet
links: ["https://github.com/a/b/issues/1"]
affected: all
mechanism: It does one thing. It should do another.
scenario: demo
seen: {bug: no, otherwise: it passes}
"""
TWIN = """
twin:
  change: {file: kube/emulated/kubelet/devices/endpoint.py, source: 'GRACE_S = 300.0', planted: 'GRACE_S = 1.0'}
"""
PROGRAM = """
program: {name: a, module: example.com/m, bad: {version: v1.1.0}, good: {version: v1.2.0, set: {seed: 7}}}
"""


def a_folder(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "bug.yaml").write_text(text, encoding="utf-8")
    return folder


def a_bug() -> Bug:
    return Bug("A bug", "kubelet", ("https://github.com/a/b/issues/1",), "all", "One. Two.", BugSigns("boom", "passes"))


@pytest.mark.parametrize(
    ("with_bug", "without", "wrong"),
    [
        (Played("failed", ("step 3: boom",)), Played("passed", ()), ""),
        (Played("passed", ()), Played("passed", ()), "with the bug: passed; it must fail: boom"),
        (Played("skipped", ("no fuse",)), Played("passed", ()), "with the bug: skipped (no fuse); it must fail: boom"),
        (Played("error", ("boom",)), Played("passed", ()), "with the bug: error (boom); it must fail: boom"),
        (Played("failed", ("bang",)), Played("passed", ()), "with the bug: failed, but not by 'boom': bang"),
        (Played("failed", ("boom",)), Played("failed", ("x",)), "without the bug: failed; it must pass: x"),
        (Played("failed", ("boom",)), Played("skipped", ("y",)), "without the bug: skipped; it must pass: y"),
    ],
)
def test_only_a_bug_that_shows_and_goes_is_reproduced(with_bug: Played, without: Played, wrong: str):
    assert Reproduction(a_bug(), with_bug, without).wrong == wrong


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (BUG, "twin, remedy, program: needs one of them"),
        (BUG + TWIN + TWIN.replace("twin:", "remedy:"), "twin, remedy, program: needs one of them"),
        (BUG + PROGRAM + TWIN, "twin, remedy, program: needs one of them"),
        (BUG + PROGRAM.replace("bad:", "worse:"), "unknown field `worse`"),
        (BUG + "twin: {}\n", "change, set: needs one of them"),
        (BUG.replace("https://github.com/a/b/issues/1", "b#1") + TWIN, "links: must be addresses"),
        (BUG.replace("title: A bug", "titel: A bug") + TWIN, "unknown field `titel`"),
        (BUG.replace("bug: no", "bug: ''") + TWIN, "seen.bug: must not be empty"),
        ("a: [", "not YAML"),
        ("", "got `null`"),
    ],
)
def test_a_description_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text: str, complaint: str):
    with pytest.raises(BadInputError) as refused:
        read_bug(a_folder(tmp_path, text.replace("bug: no", "bug: 'no'")))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("kube/nowhere.py", "a", "b"), "there is no such file"),
        (("kube/emulated/kubelet/devices/endpoint.py", "no such text", "b"), "0 times"),
        (("kube/emulated/kubelet/devices/endpoint.py", "self", "b"), "times; it must have it once"),
        (("kube/emulated/kubelet/devices/endpoint.py", "GRACE_S = 300.0", "GRACE_S = ("), "does not compile"),
    ],
)
def test_a_place_that_is_not_there_once_is_refused(change: tuple[str, str, str], complaint: str):
    with pytest.raises(LostPlaceError, match=complaint):
        changed(SourceChange(*change))
    bug = replace(a_bug(), scenario="demo", twin=BugSwitch(SourceChange(*change)))
    with pytest.raises(BadInputError, match=complaint):
        check_places([bug])


def test_a_change_of_a_module_that_is_imported_comes_too_late(tmp_path: Path):
    with pytest.raises(RuntimeError, match="imported already"):
        plant_text("json", tmp_path / "json.py", "")


def test_an_unknown_name_is_met_with_the_nearest():
    with pytest.raises(BadInputError, match=r"no such bug \(did you mean kubernetes-62773\?\)"):
        bug_of("kubernetes-62774")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nothing-1"], "no such bug"),
        (["--with-bug", "version"], "--with-bug: needs the name of one bug"),
        (["kubernetes-62773", "kubernetes-60176", "--without-bug", "version"], "--without-bug: needs the name of one"),
        (["kubernetes-62773", "--with-bug"], "--with-bug: needs a command of mews after it"),
        (["--jobs", "0"], "must be a whole number of at least 1"),
    ],
)
def test_wrong_words_are_refused(capfd: pytest.CaptureFixture[str], words: list[str], complaint: str):
    assert exit_code(["reproduce", *words]) == 2
    said = capfd.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


def test_a_command_runs_with_the_bug_and_without():
    def ends(*words: str) -> int:
        command = [sys.executable, "-m", "mews.harness", "reproduce", "kubernetes-62773", *words]
        return subprocess.run([*command, "run", "kubelet/03-plugin-restart"], capture_output=True).returncode

    assert ends("--with-bug") == 1
    assert ends("--without-bug") == 0


def test_a_folder_of_ones_own_is_reproduced_or_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    harmless = BUG.replace("bug: no", "bug: 'no'") + TWIN.replace("GRACE_S = 1.0", "GRACE_S = 301.0")
    folder = a_folder(tmp_path, harmless)
    assert exit_code(["reproduce", str(folder), "--json", "--out", str(tmp_path / "out")]) == 1
    (found,) = json.loads(capfd.readouterr().out)
    assert (found["reproduced"], found["with"]["verdict"], found["without"]["verdict"]) == (False, "passed", "passed")
    for side in ("with", "without"):
        assert (tmp_path / "out" / "mine" / side / "journal.jsonl").read_text().startswith("{")
        assert (tmp_path / "out" / "mine" / side / "report.html").is_file()


def test_an_entry_whose_program_is_absent_is_skipped_with_the_line_that_builds_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = a_folder(tmp_path, BUG.replace("bug: no", "bug: 'no'") + PROGRAM)
    assert exit_code(["reproduce", str(folder)]) == 0
    built = tmp_path / "mews" / "programs"
    said = capfd.readouterr().out
    assert said.startswith(f"SKIPPED mine: {built}/a-v1.1.0 is missing; get it with: ")
    assert f"GOBIN={built} go install example.com/m/cmd/a@v1.1.0 && mv {built}/a {built}/a-v1.1.0" in said
    assert exit_code(["reproduce", str(folder), "--json"]) == 0
    (found,) = json.loads(capfd.readouterr().out)
    assert (found["reproduced"], found["with"]["verdict"]) == (False, "skipped")
    assert "is missing" in found["reason"]


def test_a_program_of_a_release_lies_beside_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "v1.34.2"))
    text = PROGRAM.replace("name: a, module: example.com/m", "name: kube-scheduler").replace("1.1.0", "1.34.2")
    program = read_bug(a_folder(tmp_path, BUG.replace("bug: no", "bug: 'no'") + text)).program
    assert program is not None
    assert program.path(has_bug=True) == tmp_path / "v1.34.2" / "kube-scheduler"
    assert "/v1.34.2/bin/linux/amd64/kube-scheduler && chmod +x" in program.build(has_bug=True)
    for version in ("v1.34.2", "v1.2.0"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "kube-scheduler").touch(mode=0o755)
    assert program.lacking() == ""
    (tmp_path / "v1.2.0" / "kube-scheduler").chmod(0o644)
    assert program.lacking().startswith(f"{tmp_path / 'v1.2.0' / 'kube-scheduler'} is missing")


def test_each_side_runs_with_its_program_and_its_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bug = read_bug(a_folder(tmp_path, BUG.replace("bug: no", "bug: 'no'") + PROGRAM))
    assert words_of(bug, has_bug=True) == ["run", "demo", "--seed", "1", "--time", "wall"]
    assert words_of(bug, has_bug=False)[-2:] == ["--set", "seed=7"]


def test_the_list_is_a_line_each_or_json(capfd: pytest.CaptureFixture[str]):
    assert exit_code(["reproduce", "--list"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert exit_code(["reproduce", "--list", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)
    assert [line.split()[0] for line in lines] == [each["name"] for each in listed]
    assert {"name", "title", "component", "links", "affected", "fixed", "mechanism", "scenario", "seed"} == set(
        listed[0]
    )
