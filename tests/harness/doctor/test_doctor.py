"""`mews doctor`: what is there, what was taken away, and what it is asked wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from mews.harness.backends import BACKENDS
from mews.harness.cli import exit_code
from mews.harness.clusters.embedded.opening import descriptors_of
from mews.harness.doctor import parts
from mews.harness.doctor import ways as ways_of
from mews.harness.doctor.ways import WAYS
from mews.harness.extras import EXTRA_OF
from mews.project import DOCUMENTATION

ROOT = Path(__file__).parents[3]
PROGRAMS = (
    *("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"),
    *("kubectl", "kind", "docker", "openssl"),
)

WITHOUT = """
import sys
absent = {absent!r}

class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refusing)
import mews.harness.extras as extras
found = extras.find_spec
extras.find_spec = lambda name: None if name in absent else found(name)
from mews.harness.cli import exit_code
sys.exit(exit_code({words!r}))
"""
"""A process in which modules are not installed: in this one other tests may have imported them already."""


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """Neither programs, nor a kubeconfig, nor a component image."""
    for name in ("KUBEBUILDER_ASSETS", "KUBECONFIG", "MEWS_COMPONENT_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def asked(capsys, *words: str) -> tuple[int, dict[str, dict], dict[str, dict], str]:
    """Exit code, ways and parts by name, and what stands on standard error."""
    code = exit_code(["doctor", *words, "--json"])
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    return code, *({each["name"]: each for each in found[kind]} for kind in ("ways", "parts")), shown.err


def without(absent: set[str], *words: str) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(absent=absent, words=["doctor", *words])
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)


def test_the_ways_are_virtual_time_and_all_backends(nothing, capsys):
    assert list(WAYS) == ["virtual", *BACKENDS]
    assert list(asked(capsys)[1]) == list(WAYS)


def test_every_extra_that_adds_something_has_a_row():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(parts._EXTRAS) == set(EXTRA_OF.values())
    assert set(parts._EXTRAS) == set(extras) - {"all", "bench", "dev", "docs", "test"}


def test_without_programs_virtual_time_works_and_each_is_named_with_how_to_get_it(nothing, capsys):
    code, ways, found, error = asked(capsys)
    assert (code, error) == (0, "")
    assert ways["virtual"]["works"] and ways["embedded"]["works"]
    assert [name for name, way in ways.items() if not way["works"]] == ["control-plane", "kind", "kubeconfig"]
    assert ways["control-plane"]["lacks"][0].startswith("etcd, kube-apiserver, openssl neither in")
    assert ways["kind"]["lacks"][0].startswith("docker is not on PATH: install Docker Engine")
    assert "MEWS_COMPONENT_IMAGE must name" in ways["kubeconfig"]["lacks"][1]
    assert all(found[name]["found"] is None and len(found[name]["get"]) > 20 for name in PROGRAMS)


def test_a_program_in_the_folder_of_envtest_is_found_with_its_version(nothing, monkeypatch, capsys):
    for name in ("etcd", "kube-apiserver"):
        program = nothing / "assets" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho {name} v1.2.3\necho more\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(nothing / "assets"))
    code, ways, found, error = asked(capsys, "--for", "control-plane")
    assert found["etcd"]["found"] == f"etcd v1.2.3 in {nothing / 'assets'}"
    assert found["etcd"]["get"] is None
    assert code == 3  # openssl is missing still
    assert ways["control-plane"]["lacks"][0].startswith("openssl neither in")
    assert error.startswith("mews doctor: control-plane does not work here: openssl neither")


def test_a_program_that_fails_is_found_all_the_same(nothing):
    assert parts._version([str(nothing / "absent")]) == "version unknown"
    assert parts._version([sys.executable, "-c", "print('{}')"]) == "version unknown"


@pytest.mark.parametrize("way", ["embedded", "control-plane", "kind", "kubeconfig"])
def test_without_the_extra_a_way_that_needs_it_does_not_work(way):
    done = without({"grpc"}, "--for", way)
    assert done.returncode == 3
    assert "grpc is not installed; pip install 'falcon-mews[cluster]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_with_the_base_alone_virtual_time_works():
    done = without(set(EXTRA_OF), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert [way["name"] for way in found["ways"] if way["works"]] == ["virtual"]
    extras = {part["name"]: part for part in found["parts"] if part["name"].startswith("extra ")}
    assert len(extras) == len(set(EXTRA_OF.values()))
    assert all(part["found"] is None for part in extras.values())
    assert extras["extra fuse"]["get"] == "run pip install 'falcon-mews[fuse]'"


class Distributions:
    """Of an environment from which google-re2 was removed."""

    PackageNotFoundError = metadata.PackageNotFoundError
    requires = staticmethod(metadata.requires)

    @staticmethod
    def distribution(name: str) -> metadata.Distribution:
        if name == "google-re2":
            raise metadata.PackageNotFoundError(name)
        return metadata.distribution(name)


def test_without_what_the_base_needs_virtual_time_does_not_work_and_it_exits_3(nothing, monkeypatch, capsys):
    monkeypatch.setattr(ways_of, "metadata", Distributions())
    assert exit_code(["doctor"]) == 3
    assert capsys.readouterr().err == (
        "mews doctor: virtual does not work here: google-re2 is not installed; run pip install 'falcon-mews' "
        f"(see {DOCUMENTATION})\n"
    )


def test_too_few_open_files_too_little_disk_and_closed_namespaces_are_reported(nothing, monkeypatch, capsys):
    monkeypatch.setattr(parts, "allowed_descriptors", lambda: 256)
    monkeypatch.setattr(parts, "_FREE_MIB", 1 << 40)
    monkeypatch.setattr(parts, "namespaces_lacking", lambda: "unshare: Operation not permitted")
    monkeypatch.setattr(parts, "lacking", lambda kind: "mount(proc): no" if kind == "pid" else "")
    monkeypatch.setattr(parts.library, "available", lambda: False)
    _, _, found, _ = asked(capsys)
    assert found["pod processes"]["get"].startswith("pods share this machine's process IDs: mount(proc): no; run Mews")
    assert f"run ulimit -n {descriptors_of(4)}" in found["open files"]["get"]
    assert "set XDG_RUNTIME_DIR or TMPDIR" in found["runtime folder"]["get"]
    assert found["namespaces"]["get"].startswith("unshare: Operation not permitted; allow unprivileged")
    assert "apt install gcc" in found["NVML library"]["get"]


def test_the_text_has_a_line_each_and_the_same_as_json(nothing, capsys):
    _, ways, found, _ = asked(capsys)
    assert exit_code(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Ways to run"
    assert [line.strip().partition("  ")[0] for line in lines[1:]] == [*ways, "Parts", *found]
    assert any(line.split() == ["virtual", "works:", "mews", "run", "demo"] for line in lines)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--for", "knd"),
            "--for knd: must be one of virtual, embedded, control-plane, kind, kubeconfig (did you mean kind?)",
        ),
        (("--for",), "mews doctor: argument --for: expected one argument"),
        (("kind",), "mews doctor: unrecognized arguments: kind"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(words, line, capsys):
    assert exit_code(["doctor", *words]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", f"{line}\n")
