"""Every kind of file that users write, wrong in one thing at any depth: one line with the file, the place, the value
and what is allowed, exit code 2, and nothing begun."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest

from mews.harness.cli import exit_code

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\n"
HARDWARE = """apiVersion: mews/v1
kind: Hardware
metadata: {name: h}
hosts:
  - {name: host-1, cpus: 8, memory_mib: 1024}
chassis:
  - name: A
    index: 0
    slots: 4
    ports: {"1": host-1}
    devices:
      - {id: "000100", uuid: GPU-1, kind: GPU, model: V100, serial: "1", port: "1"}
"""
QUIRKS = """apiVersion: mews/v1
kind: Quirks
metadata: {name: my-box, firmware: '2.1'}
dialect: h3api
limits: {attach_s: 30}
expect:
  - {clause: 2.truth-attach, reason: lies}
"""
WAIVERS = "- {clause: 2.lost, reason: 'x', expires: 2037-03-31}\n"
PROFILE = """apiVersion: mews/v1
kind: ConformProfile
metadata: {name: mine, title: x}
grades:
  - {clauses: ['2.*'], grade: must}
"""
TRACE = "job,type,arrival_s,gpus,cpus,duration_s\n"
CONFORM = "conform http://127.0.0.1:9 --dialect"
KINDS = {
    "hardware": (HARDWARE, "validate FILE"),
    "scenario": (HEAD, "run FILE"),
    "quirks": (QUIRKS, f"{CONFORM} h3api --quirks FILE"),
    "waivers": (WAIVERS, f"{CONFORM} h3api --waivers FILE"),
    "profile": (PROFILE, f"{CONFORM} h3api --profile FILE"),
    "interop": ("", f"{CONFORM} redfish --profile FILE"),
    "trace": (TRACE, "simulate FILE"),
}
"""Kind of file -> one that is right, and the command line that reads it."""

ROWS = list(csv.DictReader(Path(__file__).with_name("wrong_files.csv").read_text(encoding="utf-8").splitlines(True)))
"""``change``: text that is added (of scenarios, or after ``+``), ``OLD => NEW``, or all of it (after ``=``)."""


def written(kind: str, change: str) -> str:
    right = KINDS[kind][0]
    if change.startswith("= "):
        return change[2:] + "\n"
    if kind == "scenario" or change.startswith("+ "):
        return right + change.removeprefix("+ ") + "\n"
    old, new = change.split(" => ")
    assert right.count(old) == 1, old
    return right.replace(old, new)


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that is said of that command line."""
    assert exit_code(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "Traceback" not in err
    return err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MEWS_REDFISH_USER", "admin")
    monkeypatch.setenv("MEWS_REDFISH_PASSWORD", "secret")
    (tmp_path / "t-ok.csv").write_text(TRACE + "a,A,1,1,1,5\n")
    return tmp_path


@pytest.mark.parametrize(("kind", "change", "says"), [tuple(row.values()) for row in ROWS])
def test_a_wrong_file_is_one_line(kind, change, says, folder, capsys):
    name = {"trace": "wrong.csv", "interop": "wrong.json"}.get(kind, "wrong.yaml")
    (folder / name).write_text(written(kind, change), encoding="utf-8")
    err = refused(KINDS[kind][1].replace("FILE", name), capsys)
    assert says.replace("FILE", name) in err.replace(f"{folder}/", "")
    assert sorted(path.name for path in folder.iterdir()) == sorted(["t-ok.csv", name])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty: must be a mapping"),
        (b"\x00\xff\xfe\x80", "not a text file in UTF-8"),
        ("a: 1".encode("utf-16"), "not a text file in UTF-8"),
        (b"a: \xe9\n", "not a text file in UTF-8"),
        (b"a:\n\tb: 1\n", ":2: not YAML: found character that cannot start any token"),
        (b"a: &x [*x]\n", "not YAML: nested too deeply: the anchor 'x' contains itself"),
        (b"a: " + b"[" * 300 + b"\n", "not YAML: nested too deeply: at most 100 levels"),
        (b"a: 1\n\x00", "not YAML: "),
        (b"a: 1\na: 2\n", ":2: a: duplicate key 'a': write it once"),
        (b"a: !!python/object:os.system x\n", ":1: not YAML: could not determine a constructor for the tag"),
        (b"a: 1\n---\nb: 2\n", ": not YAML: but found another document"),
    ],
)
@pytest.mark.parametrize("kind", ["hardware", "scenario", "quirks", "profile"])
def test_a_text_that_is_no_document_is_one_line_whatever_it_is_for(content, says, kind, folder, capsys):
    (folder / "wrong.yaml").write_bytes(content)
    assert says in refused(KINDS[kind][1].replace("FILE", "wrong.yaml"), capsys)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_folder_in_the_place_of_a_file_is_one_line(kind, folder, capsys):
    (folder / "wrong").mkdir()
    assert "wrong: " in refused(KINDS[kind][1].replace("FILE", "wrong"), capsys)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("interop", "trace", "waivers")])
def test_the_files_are_right_but_for_what_is_changed(kind, folder, capsys):
    """A byte order mark and Windows' line ends change nothing."""
    text = KINDS[kind][0] + ("steps: [{sleep: 1}]\n" if kind == "scenario" else "")
    (folder / "right.yaml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    code = exit_code(shlex.split(KINDS[kind][1].replace("FILE", "right.yaml")))
    assert code == (3 if kind in ("quirks", "profile") else 0), capsys.readouterr().err  # 3: no chassis answers
