"""What a profile after DSP0272 asks becomes clauses, and each is judged by what a service says of itself.

Sources: DMTF DSP0272 1.8, clauses 6 to 10 (requirements of resources, properties, actions, protocol and registries)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.dialects.redfish_table import RedfishTableClient, link
from mews.harness.conformance.errors import MalformedError
from mews.harness.conformance.expectations import Quirks
from mews.harness.conformance.interop.clauses import interop_clauses
from mews.harness.conformance.interop.document import read_document
from mews.harness.conformance.judge import ClauseJudge
from mews.harness.errors import BadInputError
from tests.harness.conformance.judging import DAY

ROOT = "/redfish/v1/"
THING, BARE = "/redfish/v1/Things/1", "/redfish/v1/Things/2"
DOER = "#Thing.Do"
INFO = "/redfish/v1/Things/1/DoInfo"
REGISTRY, FILE = "/redfish/v1/Registries/Base.1.2.0", "/redfish/v1/Registries/Base"


def thing(**properties: Any) -> dict[str, Any]:
    return {"@odata.id": THING, "@odata.type": "#Thing.v1_4_0.Thing", "Id": "1", **properties}


class SmallService(Client):
    """A service of these resources; its root names them all. ``allow``: the verbs that all of them allow."""

    def __init__(self, resources: Mapping[str, Any], allow: str = "") -> None:
        super().__init__(ChassisTarget("http://service"))
        root = {"@odata.id": ROOT, "RedfishVersion": "1.20.0", "Links": [{"@odata.id": path} for path in resources]}
        self.resources = {ROOT: root, **resources}
        self.resources[ROOT] = {**root, **resources.get(ROOT, {})}
        self.allow = allow

    def _send(self, method: str, path: str, body: bytes | None, headers: Any, most: int = 0) -> HttpReply:
        found = self.resources.get(path)
        said = {"content-type": "application/json", **({"allow": self.allow} if self.allow else {})}
        return HttpReply(404, said, b"") if found is None else HttpReply(200, said, json.dumps(found).encode())


def judged(document: Mapping[str, Any], *resources: Mapping[str, Any], allow: str = "") -> dict[str, tuple[str, str]]:
    client = SmallService({each["@odata.id"]: each for each in resources}, allow)
    bench = ClauseContext(client, RedfishTableClient(client))
    clauses = interop_clauses({"ProfileName": "P", **document})
    judge = ClauseJudge(bench, Quirks(), (), DAY, changes=False, grades={each.id: each.grade for each in clauses})
    return {clause.id: ((result := judge.judge(clause)).verdict, result.reason) for clause in clauses}


def of_thing(requirement: Mapping[str, Any], *resources: Mapping[str, Any], allow: str = "") -> dict[str, Any]:
    found = judged({"Resources": {"Thing": requirement}}, *resources, allow=allow)
    return {name.removeprefix("profile.Thing").lstrip("."): found[name] for name in found}


def of_property(requirement: Mapping[str, Any], **properties: Any) -> tuple[str, str]:
    return of_thing({"PropertyRequirements": {"It": requirement}}, thing(**properties))["It"]


@pytest.mark.parametrize(
    ("requirement", "properties", "verdict"),
    [
        ({}, {"It": 1}, "passed"),
        ({}, {}, "failed"),
        ({"ReadRequirement": "Recommended"}, {}, "warning"),
        ({"ReadRequirement": "Excluded"}, {"It": 1}, "failed"),
        ({"ReadRequirement": "Excluded"}, {}, "passed"),
        ({"ReadRequirement": "IfPopulated"}, {}, "failed"),
        ({"ReadRequirement": "IfPopulated"}, {"Status": {"State": "Absent"}}, "skipped"),
        ({"ReadRequirement": "None"}, {}, "skipped"),
        ({"ReadRequirement": "Supported"}, {}, "failed"),
        ({"ReadRequirement": "Supported"}, {"It": 1}, "passed"),
        ({"ReadRequirement": "None", "MinCount": 2}, {"It": [1]}, "failed"),
        ({"MinCount": 2}, {"It": [1, None]}, "failed"),
        ({"MinCount": 2}, {"It": [1, 2]}, "passed"),
        ({"MinCount": 1}, {"It": 1}, "failed"),
        ({"MinSupportValues": ["a", "b"]}, {"It": "a", "It@Redfish.AllowableValues": ["a"]}, "failed"),
        ({"MinSupportValues": ["a"]}, {"It": "a", "It@Redfish.AllowableValues": ["a", "b"]}, "passed"),
        ({"Comparison": "Equal", "Values": [1]}, {"It": True}, "failed"),
        ({"Comparison": "Equal", "Values": [True]}, {"It": True}, "passed"),
        ({"Comparison": "NotEqual", "Values": ["a"]}, {"It": "a"}, "failed"),
        ({"Comparison": "NotEqual", "Values": ["a"]}, {"It": "b"}, "passed"),
        ({"Comparison": "Pattern", "Values": ["[a-z]{2}"]}, {"It": "ab"}, "passed"),
        ({"Comparison": "Pattern", "Values": ["[a-z]{2}"]}, {"It": "abc"}, "failed"),
        ({"Comparison": "AnyOf", "Values": ["a", "b"]}, {"It": ["c", "b"]}, "passed"),
        ({"Comparison": "AnyOf", "Values": ["a", "b"]}, {"It": ["c"]}, "failed"),
        ({"Comparison": "AllOf", "Values": ["a", "b"]}, {"It": ["b"]}, "failed"),
        ({"Comparison": "AllOf", "Values": ["a", "b"]}, {"It": ["b", "a", "c"]}, "passed"),
        ({"Comparison": "GreaterThan", "Values": [3]}, {"It": 3}, "failed"),
        ({"Comparison": "GreaterThanOrEqual", "Values": [3]}, {"It": 3}, "passed"),
        ({"Comparison": "LessThan", "Values": [3]}, {"It": 3}, "failed"),
        ({"Comparison": "LessThanOrEqual", "Values": [3]}, {"It": 3}, "passed"),
        ({"Comparison": "LessThan", "Values": [3]}, {"It": True}, "failed"),
        ({"Comparison": "Range", "Values": [1, 3]}, {"It": 3}, "passed"),
        ({"Comparison": "Range", "Values": [1, 3]}, {"It": 4}, "failed"),
        ({"Comparison": "Range", "Values": [1, None]}, {"It": 0}, "failed"),
        ({"Comparison": "LinkToResource", "Values": ["Thing"]}, {"It": {"@odata.id": THING}}, "passed"),
        ({"Comparison": "LinkToResource", "Values": ["Fan"]}, {"It": {"@odata.id": THING}}, "failed"),
        ({"ReplacedByProperty": "Newer"}, {"Newer": 1}, "skipped"),
        ({"ReplacedByProperty": "Newer"}, {}, "failed"),
        ({"ReplacesProperty": "Older"}, {"Older": 1}, "skipped"),
        ({"ReplacesProperty": "Older"}, {}, "failed"),
        ({"ReplacedByProperty": "/Links/Newer"}, {"Links": {"Newer": 1}}, "skipped"),
        ({"ReplacedByProperty": "/List/1"}, {"List": [1]}, "failed"),
        ({"ReplacedByProperty": "/List/0"}, {"List": [1]}, "skipped"),
    ],
)
def test_a_property_is_judged_by_its_requirement(requirement, properties, verdict):
    assert of_property(requirement, **properties)[0] == verdict


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        ({"CompareProperty": "Id", "CompareType": "Equal", "CompareValues": ["1"]}, "failed"),
        ({"CompareProperty": "Id", "CompareType": "Equal", "CompareValues": ["2"]}, "skipped"),
        ({"CompareProperty": "Nothing", "CompareType": "Absent"}, "failed"),
        ({"CompareProperty": "Nothing", "CompareType": "Present"}, "skipped"),
        ({"URIs": ["/redfish/v1/Things/{ThingId}"]}, "failed"),
        ({"URIs": ["/redfish/v1/Fans/{FanId}"]}, "skipped"),
        ({"SubordinateToResource": ["ThingCollection"]}, "failed"),
        ({"SubordinateToResource": ["FanCollection"]}, "skipped"),
        ({"SubordinateToResource": ["ServiceRoot", "ThingCollection"]}, "skipped"),
    ],
)
def test_a_condition_asks_for_a_property_where_it_is_met(condition, verdict):
    """The collection's parent is no ServiceRoot here: it has no such type."""
    requirement = {"ReadRequirement": "Conditional", "ConditionalRequirements": [condition]}
    things = {"@odata.id": "/redfish/v1/Things", "@odata.type": "#ThingCollection.ThingCollection"}
    found = of_thing({"PropertyRequirements": {"It": requirement}}, thing(), things)
    assert found["It"][0] == verdict


def test_values_may_be_spread_over_the_instances():
    other = {**thing(It="b"), "@odata.id": BARE}
    asked = {"PropertyRequirements": {"It": {"Comparison": "AllOf", "Values": ["a", "b"]}}}
    assert of_thing(asked, thing(It="a"), other)["It"] == ("passed", "")
    assert of_thing(asked, thing(It="a"))["It"] == ("failed", "It is nowhere b")


def test_inner_objects_are_judged_at_their_place():
    asked = {"PropertyRequirements": {"List": {"PropertyRequirements": {"Name": {}}}}}
    found = of_thing(asked, thing(List=[{"Name": "x"}, {}]))
    assert found["List.Name"] == ("failed", f"{THING}: /List/1: Name is missing")


@pytest.mark.parametrize(
    ("wanted", "allow", "writable", "verdict"),
    [
        ("Mandatory", "GET, HEAD", None, "failed"),
        ("Mandatory", "GET, PATCH", ["It"], "passed"),
        ("Mandatory", "GET, PATCH", ["Other"], "failed"),
        ("Mandatory", "GET, PATCH", None, "skipped"),
        ("Recommended", "GET", None, "warning"),
        ("Supported", "GET, PUT", ["It"], "passed"),
    ],
)
def test_what_can_be_written_is_what_the_service_says(wanted, allow, writable, verdict):
    said = {} if writable is None else {"@Redfish.WriteableProperties": writable}
    asked = {"PropertyRequirements": {"It": {"WriteRequirement": wanted}}}
    assert of_thing(asked, thing(It=1, **said), allow=allow)["It.(write)"][0] == verdict


ACTION = {"Actions": {DOER: {"target": f"{THING}/Actions/Thing.Do", "How@Redfish.AllowableValues": ["Now", "Soon"]}}}
DESCRIBED = {"Actions": {DOER: {"target": "x", "@Redfish.ActionInfo": INFO}}}
SAYS = {
    "@odata.id": INFO,
    "@odata.type": "#ActionInfo.v1_4_0.ActionInfo",
    "Parameters": [{"Name": "How", "AllowableValues": ["Now"]}, {"Name": "Free"}],
}


def of_action(requirement: Mapping[str, Any], *resources: Mapping[str, Any]) -> dict[str, Any]:
    return of_thing({"ActionRequirements": {"Do": requirement}}, *resources)


@pytest.mark.parametrize(
    ("wanted", "has", "verdict"),
    [
        ("Mandatory", True, "passed"),
        ("Mandatory", False, "failed"),
        ("Recommended", False, "warning"),
        ("Supported", False, "failed"),
        ("Supported", True, "passed"),
        ("None", False, "skipped"),
        ("None", True, "passed"),
    ],
)
def test_an_action_is_there_as_it_is_asked_for(wanted, has, verdict):
    other = {**thing(), "@odata.id": BARE}
    there = (thing(**ACTION), other) if wanted == "Supported" and has else (thing(**(ACTION if has else {})),)
    assert of_action({"ReadRequirement": wanted}, *there)["#Do"][0] == verdict


@pytest.mark.parametrize(
    ("parameter", "asked", "verdict", "says"),
    [
        ("How", {"ParameterValues": ["Now", "Soon"]}, "passed", ""),
        ("How", {"ParameterValues": ["Now", "Never"]}, "failed", f"{THING}: How of Do does not take Never"),
        ("Where", {}, "skipped", "nothing says what parameters Do takes"),
    ],
)
def test_a_parameter_takes_the_values_asked_for(parameter, asked, verdict, says):
    assert of_action({"Parameters": {parameter: asked}}, thing(**ACTION))[f"#Do.{parameter}"] == (verdict, says)


def test_an_action_info_lists_parameters_and_values():
    asked = {
        "ActionInfo": "Mandatory",
        "Parameters": {"How": {"ParameterValues": ["Now"], "RecommendedValues": ["Soon"]}, "Free": {}, "Lost": {}},
    }
    found = of_action(asked, thing(**DESCRIBED), SAYS)
    assert found["#Do.ActionInfo"] == ("passed", "")
    assert found["#Do.How"] == ("passed", "")
    assert found["#Do.How.(recommended)"] == ("warning", f"{THING}: How of Do does not take Soon")
    assert found["#Do.Free"] == ("passed", "")
    assert found["#Do.Lost"] == ("failed", f"{THING}: the action Do does not list the parameter Lost")
    assert of_action(asked, thing(**ACTION))["#Do.ActionInfo"][0] == "failed"


@pytest.mark.parametrize(
    ("requirement", "verdict"),
    [
        ({"MinVersion": "1.4.0"}, "passed"),
        ({"MinVersion": "1.3.0"}, "passed"),
        ({"MinVersion": "1.5.0"}, "failed"),
    ],
)
def test_a_resource_is_of_a_version(requirement, verdict):
    assert of_thing(requirement, thing())["MinVersion"][0] == verdict


def test_a_resource_is_there_or_not_as_it_is_asked_for():
    assert of_thing({})[""] == ("failed", "no Thing can be reached")
    assert of_thing({"ReadRequirement": "Recommended"})[""][0] == "warning"
    assert of_thing({"ReadRequirement": "Excluded"}, thing())[""] == ("failed", f"{THING}: must not be there")
    assert of_thing({"ReadRequirement": "Excluded"})[""] == ("passed", "")
    assert of_thing({"ReadRequirement": "None"})[""][0] == "skipped"


def test_a_resource_that_is_only_asked_for_where_there_is_something_may_be_missing():
    """OCP's baseline of services asks so for subscriptions and connections."""
    assert of_thing({"ReadRequirement": "IfPopulated"})[""][0] == "skipped"
    assert of_thing({"ReadRequirement": "IfPopulated"}, thing())[""] == ("passed", "")


def test_no_uris_are_any():
    """OCP's profile of baseboards has empty lists of them."""
    assert of_thing({"URIs": []}, thing())[""] == ("passed", "")
    assert of_thing({"URIs": ["/redfish/v1/Fans/{FanId}"]}, thing())[""][0] == "failed"


THINGS = "/redfish/v1/Things"


@pytest.mark.parametrize(
    ("wanted", "parents", "has", "verdict", "reason"),
    [
        ("Mandatory", ["ThingCollection"], True, "passed", ""),
        ("Mandatory", ["ThingCollection"], False, "failed", f"{THINGS}: has no Thing"),
        ("Recommended", ["ThingCollection"], False, "warning", f"{THINGS}: has no Thing"),
        ("Excluded", ["ThingCollection"], True, "failed", f"{THING}: must not be there"),
        ("Excluded", ["ThingCollection"], False, "passed", ""),
        ("Mandatory", ["Fan", "ThingCollection"], False, "skipped", "there is no Fan / ThingCollection"),
        ("IfPopulated", ["ThingCollection"], False, "skipped", "none is asked for there"),
    ],
)
def test_a_resource_is_below_others(wanted, parents, has, verdict, reason):
    """OCP's baseline of hardware asks so for the EthernetInterface of a Manager."""
    condition = {"SubordinateToResource": parents, "ReadRequirement": wanted}
    asked = {"ReadRequirement": "Recommended", "ConditionalRequirements": [condition]}
    things = {"@odata.id": THINGS, "@odata.type": "#ThingCollection.ThingCollection"}
    found = of_thing(asked, *([thing()] if has else []), things)
    assert found[f"(below {'/'.join(parents)})"] == (verdict, reason)


@pytest.mark.parametrize(
    ("option", "allow", "verdict"),
    [
        ("UpdateResource", "GET, PATCH", "passed"),
        ("UpdateResource", "GET, PUT", "passed"),
        ("UpdateResource", "GET", "failed"),
        ("DeleteResource", "GET, DELETE", "passed"),
        ("DeleteResource", "GET, POST", "failed"),
        ("CreateResource", "GET, POST", "passed"),
        ("CreateResource", "GET, PUT", "failed"),
        ("CreateResource", "", "skipped"),
    ],
)
def test_what_may_be_done_with_a_resource_is_what_allow_says(option, allow, verdict):
    assert of_thing({option: True}, thing(), allow=allow)[option][0] == verdict


def test_use_cases_choose_their_instances():
    cases = {
        "UseCases": [
            {
                "UseCaseTitle": "Big",
                "UseCaseKeyProperty": "Size",
                "UseCaseComparison": "Equal",
                "UseCaseKeyValues": ["Big"],
                "PropertyRequirements": {"It": {}},
            },
            {"UseCaseTitle": "Gone", "UseCaseType": "AbsentResource", "PropertyRequirements": {"It": {}}},
        ]
    }
    small = {**thing(Size="Small", Status={"State": "Absent"}, It=1), "@odata.id": BARE}
    found = of_thing(cases, thing(Size="Big"), small)
    assert found["[Big].It"] == ("failed", f"{THING}: It is missing")
    assert found["[Gone].It"] == ("passed", "")


@pytest.mark.parametrize(
    ("asked", "root", "verdict"),
    [
        ({"MinVersion": "1.20.0"}, {}, "passed"),
        ({"MinVersion": "1.21.0"}, {}, "failed"),
        ({"SelectQuery": "Mandatory"}, {"SelectQuery": True}, "passed"),
        ({"SelectQuery": "Mandatory"}, {"SelectQuery": False}, "failed"),
        ({"SelectQuery": "Recommended"}, {}, "warning"),
        ({"ExpandQuery": "Mandatory"}, {"ExpandQuery": {"NoLinks": True}}, "passed"),
        ({"ExpandQuery": "Mandatory"}, {"ExpandQuery": {"NoLinks": False}}, "failed"),
        ({"DeepPATCH": "Mandatory"}, {"DeepOperations": {"DeepPATCH": True}}, "passed"),
        ({"Discovery": "Mandatory"}, {}, "skipped"),
        ({"SelectQuery": "None"}, {}, None),
    ],
)
def test_the_protocol_is_what_the_root_says(asked, root, verdict):
    found = judged({"Protocol": asked}, {"@odata.id": ROOT, "ProtocolFeaturesSupported": root})
    assert [each for each, _ in found.values()] == ([] if verdict is None else [verdict])


OF_REGISTRY = {
    "@odata.id": FILE,
    "@odata.type": "#MessageRegistryFile.v1_1_0.MessageRegistryFile",
    "Registry": "Base.1.2",
    "Location": [{"Uri": REGISTRY}],
}
MESSAGES = {"@odata.id": REGISTRY, "@odata.type": "#MessageRegistry.v1_6_0.MessageRegistry", "Messages": {"Done": {}}}


def test_registries_are_there_with_their_messages():
    asked = {
        "Base": {"MinVersion": "1.1.0", "Messages": {"Done": {}, "Lost": {}, "Free": {"ReadRequirement": "None"}}},
        "Newer": {"ReadRequirement": "Recommended"},
        "Unasked": {"ReadRequirement": "None"},
    }
    found = judged({"Registries": asked}, OF_REGISTRY, MESSAGES)
    assert found == {
        "profile.registry.Base": ("passed", ""),
        "profile.registry.Base.Done": ("passed", ""),
        "profile.registry.Base.Lost": ("failed", f"{REGISTRY}: has no message Lost"),
        "profile.registry.Newer": ("warning", "there is no registry Newer"),
    }
    later = judged({"Registries": {"Base": {"MinVersion": "1.3.0"}}}, OF_REGISTRY, MESSAGES)
    assert later["profile.registry.Base"] == ("failed", "Base.1.2, must be 1.3.0")


def test_a_link_that_is_none_is_malformed():
    assert link({"Zones": {"@odata.id": "/x"}}, "Zones") == "/x"
    with pytest.raises(MalformedError, match="/y: Zones is not a link"):
        link({"@odata.id": "/y", "Zones": None}, "Zones")


def document(folder: Path, name: str, **parts: Any) -> Path:
    file = folder / name
    head = {"SchemaDefinition": "RedfishInteroperabilityProfile.v1_8_0", "ProfileVersion": "1.0.0"}
    file.write_text(json.dumps({**head, "ProfileName": name.partition(".")[0], **parts}))
    return file


def test_a_profile_takes_over_what_it_requires_in_the_newest_version_beside_it(tmp_path):
    base = {"Fan": {"PropertyRequirements": {"Id": {}}}, "Thing": {"PropertyRequirements": {"Old": {}}}}
    document(tmp_path, "Base.v1_0_0.json", Resources={"Chassis": {}})
    document(tmp_path, "Base.v1_2_0.json", Resources=base, Protocol={"MinVersion": "1.6.0"})
    own = {"Thing": {"PropertyRequirements": {"New": {}}}}
    file = document(tmp_path, "Own.v1_0_0.json", RequiredProfiles={"Base": {"MinVersion": "1.1.0"}}, Resources=own)
    read = read_document(file)
    assert {*read["Resources"]} == {"Fan", "Thing"}
    assert read["Protocol"] == {"MinVersion": "1.6.0"}
    file = document(tmp_path, "Own.v1_0_0.json", RequiredProfiles={"Base": {"MinVersion": "1.3.0"}}, Resources=own)
    with pytest.raises(BadInputError, match=r"must be next to it, as Base.vX_Y_Z.json, version 1.3.0 or later"):
        read_document(file)
    file = document(tmp_path, "Base.v2_0_0.json", RequiredProfiles={"Base": {}}, Resources=own)
    with pytest.raises(BadInputError, match="requires itself"):
        read_document(file)
    file = document(tmp_path, "Own.v1_0_0.json", Resources={"Thing": {"ConditionalRequirements": [{}]}})
    with pytest.raises(BadInputError, match=r"Thing.ConditionalRequirements.0: SubordinateToResource: missing"):
        read_document(file)
