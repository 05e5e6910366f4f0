"""Custom kinds as the field writes them: what their definitions may say, and what their objects are held against."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mews.kube.api.errors import ApiError, InvalidError, NotFoundError
from mews.kube.client.port import Patch
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.openapi_cache import SwaggerCache
from mews.kube.emulated.core.objects.apply import apply
from mews.kube.emulated.core.objects.creation import create
from mews.kube.emulated.core.objects.deletion import delete
from mews.kube.emulated.core.objects.update import patch
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.core.wire.openapi import document, index, swagger
from mews.kube.emulated.types.custom import formats, trees
from mews.kube.emulated.types.custom.structural import structural_errors
from mews.kube.emulated.types.custom.values import value_errors

Body = dict[str, Any]
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@pytest.fixture
def store() -> Store:
    return fresh_store(lambda: 0.0, random.Random(1))


def _definition(*versions: Body, plural: str = "tasks", group: str = "x.test", **names: Any) -> Body:
    given = {"plural": plural, "kind": plural[:-1].capitalize(), **names}
    spec = {"group": group, "scope": "Cluster", "names": given, "versions": list(versions)}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


def _version(spec: Body, name: str = "v1", **more: Any) -> Body:
    root = {"type": "object", "properties": {"spec": spec}}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": root}, **more}


def _crds(store: Store) -> Kind:
    kind = store.kinds.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert kind is not None
    return kind


def _define(store: Store, *versions: Body, **more: Any) -> Body:
    return create(store, _crds(store), "", _definition(*versions, **more))


def _tasks(store: Store, version: str = "v1") -> Kind:
    kind = store.kinds.find("x.test", version, "tasks")
    assert kind is not None
    return kind


def _task(spec: Any, name: str = "a", version: str = "v1") -> Body:
    return {"apiVersion": f"x.test/{version}", "kind": "Task", "metadata": {"name": name}, "spec": spec}


def _object(**properties: Any) -> Body:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "port",
    [
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "anyOf": INT_OR_STRING},
        {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": INT_OR_STRING}, {"pattern": "^[0-9]+%?$"}]},
    ],
)
def test_int_or_string_is_taken_in_all_forms_that_tools_write(store: Store, port: Body) -> None:
    _define(store, _version(_object(port=port)))
    for name, value in (("number", 80), ("text", "80")):
        assert create(store, _tasks(store), "", _task({"port": value}, name))["spec"]["port"] == value
    with pytest.raises(InvalidError, match="must be of type integer,string"):
        create(store, _tasks(store), "", _task({"port": 1.5}, "wrong"))


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (
            {"type": "object", "anyOf": [{"type": "object"}]},
            "spec.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        ({"description": "d"}, "spec.type: Required value: must not be empty at the root"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "properties[a].items: Required value"),
        (
            {"type": "object", "anyOf": [{"properties": {"q": {"minimum": 1}}}]},
            "spec.properties[q]: Required value: because it is defined in spec.anyOf[0].properties[q]",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)"}}},
            "invalid or unsupported Perl syntax: `(?=`",
        ),
    ],
)
def test_a_schema_that_is_not_structural_is_told_why(part: Body, fault: str) -> None:
    assert any(fault in str(found) for found in structural_errors(part, "spec"))


def test_values_are_judged_by_junctors_bounds_and_multiples() -> None:
    schema = _object(
        a={"type": "integer", "multipleOf": 3, "maximum": 9},
        b={"type": "string", "oneOf": [{"minLength": 2}, {"pattern": "^x"}]},
        c={"type": "string", "not": {"enum": ["no"]}},
    )
    found = [str(fault) for fault in value_errors({"a": 10, "b": "xy", "c": "no"}, schema)]
    assert found == [
        "a: Invalid value: 10: a in body should be a multiple of 3",
        "a: Invalid value: 10: a in body should be less than or equal to 9",
        '<nil>: Invalid value: "": "b" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        '<nil>: Invalid value: "": "c" must not validate the schema (not)',
    ]


def test_what_an_update_leaves_alone_is_not_held_against_it() -> None:
    schema = _object(a={"type": "integer", "maximum": 3}, b={"type": "string"})
    assert value_errors({"a": 9, "b": "new"}, schema, old={"a": 9, "b": "old"}) == []
    assert value_errors({"a": 8, "b": "new"}, schema, old={"a": 9, "b": "old"})


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("datetime", "2024-01-02T03:04:05.5+01:00", "2024-01-02"),
        ("duration", "1h30m", "soon"),
        ("email", "A B <a@b.c>", "a@"),
        ("ipv4", "10.0.0.01", "::1"),
        ("ipv6", "fe80::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("uri", "https://x/y", "x y"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("mac", "00:11:22:33:44:55", "00:11:22"),
        ("hostname", "a.example.com", "-a"),
        ("byte", "YWJj", "abc"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("hexcolor", "#ff00FF", "#ff"),
    ],
)
def test_texts_are_held_against_their_format(name: str, right: str, wrong: str) -> None:
    assert formats.FORMATS[name](right)
    assert not formats.FORMATS[name](wrong)


def test_formats_that_nobody_knows_are_ignored_and_warned_of(store: Store) -> None:
    request = WriteRequest()
    body = _definition(_version(_object(a={"type": "string", "format": "frob"})))
    create(store, _crds(store), "", body, request)
    assert request.warnings == ['unrecognized format "frob"']
    assert formats.known("k8s-short-name") == ""


def test_unknown_fields_go_and_preserved_ones_stay() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **_object(a=_object(b={"type": "string"}))}
    value = {"spec": {"q": 1, "free": {"z": 1, "a": {"b": "x", "c": 1}}}}
    assert trees.prune(value, _object(spec=_object(free=free))) == ["spec.free.a.c", "spec.q"]
    assert value == {"spec": {"free": {"z": 1, "a": {"b": "x"}}}}


def test_embedded_resources_have_the_metadata_of_resources(store: Store) -> None:
    pod = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    _define(store, _version(_object(pod=pod)))
    made = create(
        store,
        _tasks(store),
        "",
        _task({"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "frob": 1}, "spec": {"a": 1}}}),
    )
    assert made["spec"]["pod"]["metadata"] == {"name": "p"}
    assert made["spec"]["pod"]["spec"] == {"a": 1}
    with pytest.raises(InvalidError, match=r"spec\.pod\.kind: Required value"):
        create(store, _tasks(store), "", _task({"pod": {"apiVersion": "v1"}}, "b"))


def test_rules_hold_for_objects_and_for_changes(store: Store) -> None:
    rules = [
        {
            "rule": "self.least <= self.most",
            "messageExpression": "'most is ' + 'low'",
            "fieldPath": ".most",
        },
        {"rule": "self.most >= oldSelf.most", "message": "may not shrink", "reason": "FieldValueForbidden"},
    ]
    spec = {**_object(least={"type": "integer"}, most={"type": "integer"}), "x-kubernetes-validations": rules}
    _define(store, _version({**spec, "required": ["least", "most"]}))
    with pytest.raises(InvalidError, match=r'spec\.most: Invalid value: "object": most is low'):
        create(store, _tasks(store), "", _task({"least": 2, "most": 1}))
    create(store, _tasks(store), "", _task({"least": 1, "most": 3}))
    with pytest.raises(InvalidError, match="spec: Forbidden: may not shrink"):
        patch(store, _tasks(store), "", "a", {"spec": {"most": 2}}, patch_kind=Patch.MERGE)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({"rule": "self.zz == 1"}, "undefined field 'zz'"),
        ({"rule": "self.names.size()"}, "cel expression must evaluate to a bool"),
        ({"rule": "self.names.all(x, self.names.all(y, self.names.all(z, x != y + z)))"}, "more than 100x"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
        ({"rule": "true", "fieldPath": ".zz"}, "must be a valid path"),
        ({"rule": "true", "reason": "Frob"}, "supported values"),
    ],
)
def test_rules_that_cannot_hold_are_refused_with_the_definition(store: Store, rule: Body, fault: str) -> None:
    spec = _object(names={"type": "array", "items": {"type": "string"}})
    with pytest.raises(InvalidError, match=fault):
        _define(store, _version({**spec, "x-kubernetes-validations": [rule]}))


@pytest.mark.parametrize(("versions", "shown"), [([], r"\[\]"), (None, "null")])
def test_versions_that_are_not_there_are_printed_as_they_were_given(store: Store, versions: Any, shown: str) -> None:
    body = _definition()
    body["spec"]["versions"] = versions
    with pytest.raises(InvalidError, match=f"spec.versions: Invalid value: {shown}: must have exactly one version"):
        create(store, _crds(store), "", body)


def test_groups_of_kubernetes_want_an_approval(store: Store) -> None:
    with pytest.raises(InvalidError, match="protected groups must have approval annotation"):
        _define(store, _version(_object()), group="x.k8s.io")
    body = _definition(_version(_object()), group="x.k8s.io")
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    made = create(store, _crds(store), "", body)
    assert made["status"]["conditions"] is None  # they come with the commit
    stored = store.get(_crds(store), "", made["metadata"]["name"])
    conditions = {one["type"]: one for one in stored["status"]["conditions"]}
    assert conditions["KubernetesAPIApprovalPolicyConformant"]["reason"] == "UnapprovedAnnotation"


def test_names_that_are_taken_wait_until_they_are_free(store: Store) -> None:
    _define(store, _version(_object()), shortNames=["tk"])
    second = _define(store, _version(_object()), plural="jobs", shortNames=["tk"], kind="Task")
    stored = store.get(_crds(store), "", second["metadata"]["name"])
    conditions = {one["type"]: one for one in stored["status"]["conditions"]}
    assert (conditions["NamesAccepted"]["status"], conditions["Established"]["status"]) == ("False", "False")
    assert conditions["NamesAccepted"]["reason"] == "ListKindConflict"
    assert store.kinds.find("x.test", "v1", "jobs") is None
    delete(store, _crds(store), "", "tasks.x.test")
    assert store.kinds.find("x.test", "v1", "jobs") is not None


def test_the_storage_version_joins_the_stored_ones(store: Store) -> None:
    made = _define(store, _version(_object()))
    assert made["status"]["storedVersions"] == ["v1"]
    versions = [_version(_object(), storage=False), _version(_object(a={"type": "string"}), "v2")]
    changed = patch(store, _crds(store), "", "tasks.x.test", {"spec": {"versions": versions}}, patch_kind=Patch.MERGE)
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    with pytest.raises(InvalidError, match=r"missing from spec\.versions; v1 was previously a storage version"):
        only = {"spec": {"versions": versions[1:]}}
        patch(store, _crds(store), "", "tasks.x.test", only, patch_kind=Patch.MERGE)


def test_an_object_is_stored_in_one_version_and_shown_in_all(store: Store) -> None:
    both = _object(a={"type": "string"}, b={"type": "string"})
    _define(store, _version(both), _version(_object(a={"type": "string"}), "v2", storage=False))
    create(store, _tasks(store), "", _task({"a": "x", "b": "y"}))
    assert store.get(_tasks(store, "v2"), "", "a")["spec"] == {"a": "x"}
    made = create(store, _tasks(store, "v2"), "", _task({"a": "z"}, "c", "v2"))
    assert made["apiVersion"] == "x.test/v2"
    assert store.get(_tasks(store), "", "c")["apiVersion"] == "x.test/v1"


def test_a_deleted_definition_takes_its_objects_with_it(store: Store) -> None:
    _define(store, _version(_object()))
    create(store, _tasks(store), "", _task({}))
    kind = _tasks(store)
    delete(store, _crds(store), "", "tasks.x.test")
    with pytest.raises(NotFoundError):
        store.get(kind, "", "a")


def test_what_an_older_definition_stored_is_shown_as_the_present_one_has_it(store):
    made = _define(store, _version(_object(a={"type": "string"}, gone={"type": "string"})))
    create(store, _tasks(store), "", _task({"gone": "x"}))
    assert store.get(_tasks(store), "", "a")["spec"] == {"gone": "x"}
    changed = _version(_object(a={"type": "string", "default": "A"}))
    patch(store, _crds(store), "", made["metadata"]["name"], {"spec": {"versions": [changed]}}, patch_kind=Patch.MERGE)
    shown = view_of(_tasks(store)).show(store.get(_tasks(store), "", "a"))
    assert shown["spec"] == {"a": "A"}
    assert shown["metadata"]["generation"] == 1


def test_a_kind_that_keeps_all_at_its_root_can_be_applied(store):
    root = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    _define(store, {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}})
    made = apply(store, _tasks(store), "", "a", _task({"any": {"thing": [1]}}), request=WriteRequest(manager="m"))
    assert made["spec"] == {"any": {"thing": [1]}}


def test_version_2_of_openapi_says_of_a_custom_kind_what_kubectl_can_read(store):
    spec = _object(
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
        maybe={"type": "string", "nullable": True},
        port={"x-kubernetes-int-or-string": True, "anyOf": INT_OR_STRING, "description": "A port."},
        oneOf={"type": "string"},
    )
    _define(store, _version({**spec, "required": ["maybe", "port"]}))
    shown = swagger(store.kinds)["definitions"]["test.x.v1.Task"]["properties"]
    assert shown["metadata"]["$ref"] == "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    assert shown["spec"] == {
        "type": "object",
        "required": ["port"],
        "properties": {
            "free": {"x-kubernetes-preserve-unknown-fields": True},
            "maybe": {},
            "port": {"x-kubernetes-int-or-string": True, "description": "A port."},
            "oneOf": {"type": "string"},
        },
    }


def test_a_kind_that_keeps_all_has_no_properties_in_version_2_of_openapi(store):
    root = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}}
    _define(store, {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}})
    gvk = [{"group": "x.test", "version": "v1", "kind": "Task"}]
    shown = swagger(store.kinds)["definitions"]["test.x.v1.Task"]
    assert shown == {"type": "object", "x-kubernetes-group-version-kind": gvk}
    newer = document(store.kinds, "apis/x.test/v1")
    assert newer is not None
    assert "a" in newer["components"]["schemas"]["test.x.v1.Task"]["properties"]


def test_version_2_of_openapi_has_a_schema_wherever_one_belongs(store):
    for name, schema in swagger(store.kinds)["definitions"].items():
        for field, below in (schema.get("properties") or {}).items():
            assert isinstance(below, dict), f"{name}.{field}"
            assert "oneOf" not in below or name.endswith("JSONSchemaProps"), f"{name}.{field}"


def test_the_document_of_version_2_is_named_by_its_content_and_sent_once(store):
    cache = SwaggerCache()
    first = cache.answer(store.kinds, "")
    tag = first.headers["ETag"]
    assert (first.status, cache.answer(store.kinds, f'"x", {tag}').status) == (200, 304)
    _define(store, _version(_object()))
    second = cache.answer(store.kinds, tag)
    assert (second.status, second.headers["ETag"] != tag) == (200, True)
    assert isinstance(second.body, bytes)
    assert b"test.x.v1.Task" in second.body


@pytest.mark.parametrize(("part", "value"), [("name", "v3"), ("served", False)])
def test_the_documents_follow_a_version_that_is_renamed_or_no_longer_served(store, part, value):
    def versions(**changed):
        first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        return [first, {**first, "name": "v2", "storage": False, **changed}]

    cache = SwaggerCache()
    _define(store, *versions())
    before, known = cache.answer(store.kinds, ""), index(store.kinds)["paths"]
    assert b"test.x.v2.Task" in before.body
    changed = {"spec": {"versions": versions(**{part: value})}}
    patch(store, _crds(store), "", "tasks.x.test", changed, patch_kind=Patch.MERGE)
    after, paths = cache.answer(store.kinds, before.headers["ETag"]), index(store.kinds)["paths"]
    assert after.status == 200
    assert b"test.x.v2.Task" not in after.body
    assert (b"test.x.v3.Task" in after.body) == (part == "name")
    assert "apis/x.test/v2" not in paths
    # Each document is named by what is in it, its version as well.
    shown = [each["serverRelativeURL"].partition("hash=")[2] for each in (known | paths).values()]
    assert len(shown) == len(set(shown))


def test_a_deleted_definition_waits_for_objects_with_finalizers_and_takes_no_more(store):
    made = _define(store, _version(_object(a={"type": "string"})))
    create(store, _tasks(store), "", _task({}, "free"))
    held = {**_task({}, "held"), "metadata": {"name": "held", "finalizers": ["x.test/hold"]}}
    create(store, _tasks(store), "", held)
    going = delete(store, _crds(store), "", "tasks.x.test")
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert going["status"]["conditions"][-1]["reason"] == "InstanceDeletionPending"
    assert store.find(_tasks(store), "", "free") is None
    waiting = store.get(_crds(store), "", "tasks.x.test")
    assert waiting["status"]["conditions"][-1]["reason"] == "InstanceDeletionInProgress"
    with pytest.raises(ApiError, match="create not allowed while custom resource definition is terminating"):
        create(store, _tasks(store), "", _task({}, "late"))
    patch(store, _tasks(store), "", "held", {"metadata": {"finalizers": None}}, patch_kind=Patch.MERGE)
    assert store.find(_crds(store), "", made["metadata"]["name"]) is None
    assert store.kinds.find("x.test", "v1", "tasks") is None


def test_a_deleted_definition_without_objects_goes_at_once(store):
    _define(store, _version(_object()))
    delete(store, _crds(store), "", "tasks.x.test")
    assert store.find(_crds(store), "", "tasks.x.test") is None
