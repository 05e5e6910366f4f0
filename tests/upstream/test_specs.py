"""The lists of upstream's specs, and how its reports are read; the specs themselves: make test-upstream."""

import re
from pathlib import Path

import pytest

from tests.upstream import building, dra
from tests.upstream.__main__ import LISTS, WAITING
from tests.upstream.building import E2E, NotBuiltError
from tests.upstream.specs import Outcome, focus, listed, read_report, reasons, sample

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite name="Kubernetes e2e suite">
<testcase name="[SynchronizedBeforeSuite]" status="{setup}">{setup_failure}</testcase>
<testcase name="[It] [sig-a] one [Conformance] [sig-a, Conformance]" status="{one}"></testcase>
<testcase name="[It] [sig-a] two [Conformance] [sig-a, Conformance]" status="failed">
<failure message="it broke&#10;in two lines">trace</failure></testcase>
<testcase name="[It] [sig-a] three [Conformance] [sig-a, Conformance]" status="skipped"><skipped/></testcase>
</testsuite></testsuites>"""
PLAIN = """<testsuites><testsuite name="Kubernetes e2e suite">
<testcase name="[It] [sig-a] Five does it [Serial] [sig-a]" status="passed"></testcase>
</testsuite></testsuites>"""
SPECS = tuple(f"[sig-a] {name} [Conformance]" for name in ("one", "two", "three", "four"))


def test_every_spec_is_listed_once():
    specs = [spec for name in LISTS for spec in listed(name)]
    assert len(set(specs)) == len(specs) > 0
    assert all(re.fullmatch(r"\[sig-[a-z-]+\] .+", spec) for spec in specs)


@pytest.mark.parametrize("name", LISTS)
def test_specs_of_conformance_are_in_the_lists_of_conformance_alone(name):
    assert {"[Conformance]" in spec for spec in listed(name)} == {name not in ("further.txt", dra.LIST)}


def test_dra_specs_run_with_gates_where_their_features_are_off_by_default():
    usual, switched = dra.settings(listed(dra.LIST))
    assert {spec for setting in (usual, switched) for spec in setting.specs} <= set(listed(dra.LIST))
    assert "--feature-gates" in switched.options and "--feature-gates" not in usual.options
    assert not [spec for spec in usual.specs if "OffByDefault" in spec]
    assert [spec for spec in switched.specs if "[FeatureGate:DRADeviceTaints]" in spec]


def test_without_mount_namespaces_no_spec_with_sockets_is_played(monkeypatch):
    monkeypatch.setattr(dra, "namespaces_lacking", lambda: "no user namespaces")
    played = [setting for setting in dra.settings(listed(dra.LIST)) if setting.specs]
    assert [setting.files for setting in played] == [()]
    assert all("[DRA] kubelet" not in spec for spec in played[0].specs)
    assert len(played[0].specs) == 21


def test_what_waits_is_listed_and_has_its_reason():
    known = {spec for name in LISTS for spec in listed(name)}
    waiting = reasons(WAITING)
    assert set(waiting) <= known
    assert all(waiting.values())


def test_a_sample_is_the_seeds_and_in_the_lists_order():
    specs = listed("conformance.txt")
    drawn = sample(specs, 10, 3)
    assert drawn == sample(specs, 10, 3) != sample(specs, 10, 4)
    assert [spec for spec in specs if spec in drawn] == drawn
    assert sample(specs[:2], 10, 1) == list(specs[:2])


def test_the_focus_selects_these_specs_alone():
    specs = listed("conformance.txt")
    chosen = specs[::7]
    found = re.compile(focus(chosen))
    assert [spec for spec in specs if found.search(f"{spec} [sig-x, Conformance]")] == list(chosen)


def test_a_spec_counts_only_where_the_suite_says_that_it_passed():
    told = read_report(REPORT.format(setup="passed", setup_failure="", one="passed"), SPECS)
    assert [each.verdict for each in told] == ["passed", "failed", "skipped", "failed"]
    assert told[1] == Outcome(SPECS[1], "failed", "it broke")
    assert told[3].reason == "the suite does not report it"


def test_a_spec_without_further_labels_is_found_by_its_name():
    spec = "[sig-a] Five does it [Serial]"
    assert read_report(PLAIN, (spec,)) == [Outcome(spec, "passed")]


def test_a_set_up_that_fails_fails_every_spec():
    failure = '<failure message="services &quot;kubernetes&quot; not found"/>'
    told = read_report(REPORT.format(setup="failed", setup_failure=failure, one="skipped"), SPECS)
    assert {each.verdict for each in told} == {"failed"}
    assert told[0].reason == '[SynchronizedBeforeSuite]: services "kubernetes" not found'


def test_the_module_names_the_version_that_is_judged_by():
    text = (E2E.folder / "go.mod").read_text()
    assert f"require k8s.io/kubernetes {building.KUBERNETES}" in text
    staged = re.findall(r"^replace (k8s\.io/\S+) => \1 (\S+)$", text, re.MULTILINE)
    assert {version for _, version in staged} == {building.KUBERNETES.replace("v1.", "v0.")}


def test_without_go_it_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotBuiltError, match=r"e2e\.test cannot be built: go is not on PATH"):
        E2E.built()


def test_what_cannot_be_built_is_told_with_the_last_line(monkeypatch, tmp_path):
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho first >&2\necho no such module >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(NotBuiltError, match=r"e2e\.test cannot be built: go test: no such module"):
        E2E.built()
    assert not list(Path(tmp_path / "cache").rglob("e2e.test*"))
