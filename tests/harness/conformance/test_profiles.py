"""What a vendor says in a profile: grades, clauses that are switched off with a reason, times, and names of its own."""

from __future__ import annotations

import json

import pytest

from mews.harness.cli import exit_code
from mews.harness.commands import conform
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.profiles import ConformProfile, load_profile
from mews.harness.conformance.table import Limits, Units
from mews.harness.errors import BadInputError
from tests.harness.conformance.judging import judged_by, served, url_of
from tests.harness.conformance.replayed import ReplayedClient, our_service, scarred
from tests.harness.conformance.wrong import LocalClient, Wrong

HEAD = "apiVersion: mews/v1\nkind: ConformProfile\n"
ACME = f"""{HEAD}metadata: {{name: acme}}
extends: stack
grades:
  - {{dialect: redfish, clauses: [4.versions], grade: should}}
off:
  - {{dialect: redfish, clauses: [4.absent, 4.patch-*], reason: a later firmware has them}}
  - {{dialect: h3api, clauses: [2.uuid-form, 2.kinds], reason: accelerators have no UUID}}
limits: {{attach_s: 45, settle_s: 2}}
units: {{uuid: 'NPU-[0-9]+', vendor: '0x1AB4', class_code: '0x120000', processor: Accelerator}}
"""


def loaded(folder, text: str, dialect: str = "redfish") -> ConformProfile:
    file = folder / "acme.yaml"
    file.write_text(text, encoding="utf-8")
    judged = clauses_of(dialect)
    return load_profile(str(file), dialect, judged.clauses, judged.gates)


def test_a_profile_extends_another_and_says_what_differs(tmp_path):
    stack, acme = load_profile("stack", "redfish", clauses_of("redfish").clauses, ()), loaded(tmp_path, ACME)
    changed = {clause.id for clause in acme.clauses if acme.grade(clause) != stack.grade(clause)}
    assert (acme.name, changed, acme.grades["4.versions"]) == ("acme", {"4.versions"}, "should")
    assert {*acme.off} == {"4.absent", "4.patch-bad", "4.patch-mixed", "4.patch-nothing"}
    assert {*loaded(tmp_path, ACME, "h3api").off} == {"2.uuid-form", "2.kinds"}


def test_files_extend_one_another_and_the_nearest_wins(tmp_path):
    (tmp_path / "base.yaml").write_text(ACME, encoding="utf-8")
    more = f"{HEAD}extends: base.yaml\noff: [{{clauses: [4.absent], reason: never}}]\nlimits: {{attach_s: 50}}\n"
    found = loaded(tmp_path, more)
    assert (found.off["4.absent"], found.off["4.patch-bad"]) == ("never", "a later firmware has them")
    assert found.limits == {"attach_s": 50.0, "settle_s": 2.0}
    assert found.units == Units("NPU-[0-9]+", "0x1AB4", "0x120000", "Accelerator")


def test_a_profile_that_extends_itself_is_refused(tmp_path):
    (tmp_path / "other.yaml").write_text(f"{HEAD}extends: acme.yaml\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"other.yaml: extends: acme.yaml: extends itself"):
        loaded(tmp_path, f"{HEAD}extends: other.yaml\n")


def test_times_of_a_profile_hold_where_the_quirks_say_nothing():
    profile = ConformProfile("acme", (), limits={"attach_s": 45.0, "settle_s": 2.0})
    assert profile.timing(Limits()) == Limits(attach_s=45.0, settle_s=2.0)
    assert profile.timing(Limits(attach_s=30.0)) == Limits(attach_s=30.0, settle_s=2.0)


def test_what_is_switched_off_is_listed_and_reported_with_its_reason(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file, report = tmp_path / "acme.yaml", tmp_path / "report.json"
    file.write_text(ACME, encoding="utf-8")
    assert exit_code(["conform", "--list", "--dialect", "h3api", "--profile", str(file)]) == 0
    listed = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert (listed["2.kinds"], listed["2.array"]) == ("off", "must")
    with served() as server:
        url = url_of(server, "h3api")
        assert exit_code(["conform", url, "--profile", str(file), "--json", str(report)]) == 0
    found = {each["clause"]: each for each in json.loads(report.read_text())["clauses"]}
    assert found["2.kinds"]["verdict"] == "skipped"
    assert found["2.kinds"]["reason"] == "switched off by the profile: accelerators have no UUID"
    assert found["2.array"]["verdict"] == "passed"


def test_times_of_a_profile_are_those_of_the_run(tmp_path):
    file = tmp_path / "acme.yaml"
    file.write_text(ACME, encoding="utf-8")
    known = conform.ConformExpectations(str(file))
    arguments = conform.ConformArguments("http://box", "h3api", conform.ConformChanges(), known)
    order = conform._order(arguments, conform.ConformOutputs())
    assert (order.quirks.limits.attach_s, order.quirks.limits.settle_s) == (45.0, 2.0)
    assert order.profile is not None
    assert order.profile.units.processor == "Accelerator"


@pytest.mark.parametrize(
    ("clause", "place", "kind", "ours", "theirs", "units"),
    [
        ("4.functions", "VendorId", "PCIeFunction", "0x10de", "0x1ab4", Units(vendor="0x1AB4")),
        ("4.functions", "ClassCode", "PCIeFunction", "0x030200", "0x120000", Units(class_code="0x120000")),
        ("4.processors", "ProcessorType", "Processor", "GPU", "Accelerator", Units(processor="Accelerator")),
    ],
)
def test_another_vendors_names_are_those_of_its_profile(clause, place, kind, ours, theirs, units):
    def verdict(value: str, named: Units) -> str:
        client = ReplayedClient(our_service(), scarred(place, value, kind))
        found = judged_by(
            client, "redfish", changes=False, only=lambda each: each.id in ("4.root", clause), units=named
        )
        return found[clause].verdict

    assert verdict(ours, Units()) == verdict(theirs, units) == "passed"
    assert verdict(theirs, Units()) == "failed"


def test_another_form_of_uuids_is_that_of_a_profile():
    box = Wrong()
    box.uuids = {device: f"NPU-{device}" for device in box.uuids}

    def found(units: Units) -> tuple[str, str]:
        result = judged_by(LocalClient(box), "h3api", changes=False, units=units)["2.uuid-form"]
        return result.verdict, result.reason[-25:]

    assert found(Units(uuid="NPU-[0-9]{6}")) == ("passed", "")
    assert found(Units(uuid="NPU-[0-9]{5}")) == ("failed", "00': must be NPU-[0-9]{5}")
    assert found(Units())[0] == "failed"
