"""Custom kinds: definitions, structural schemas, subresources, columns, versions."""

# One case a line.
# ruff: noqa: E501

from typing import Any

from tests.differential.areas.bodies import opened
from tests.differential.model import APPLY, JSON_PATCH, MERGE, PARTIALS, STRATEGIC, TABLE, Case, Sent

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/diff.mews.test"
JOBS = f"{GROUP}/v1/namespaces/crds/jobs"
PLAIN = f"{GROUP}/v1/pools"
_SETTLED_S = 1.5


def _version(schema: dict[str, Any], /, name: str = "v1", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema}},
        **more,
    }


def _crd(plural: str, kind: str, *versions: dict[str, Any], scope: str = "Namespaced", **names: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.diff.mews.test"},
        "spec": {
            "group": "diff.mews.test",
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions),
        },
    }


_SPEC = {
    "type": "object",
    "required": ["replicas"],
    "x-kubernetes-validations": [{"rule": "!has(self.cap) || self.replicas <= self.cap", "message": "too many"}],
    "properties": {
        "replicas": {"type": "integer", "minimum": 1, "maximum": 100},
        "cap": {"type": "integer"},
        "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "minLength": 2},
        "list": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
            },
        },
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nothing": {"type": "string", "nullable": True},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}],
        },
    },
}
_STATUS = {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}}
DEFINITION = _crd(
    "jobs",
    "DiffJob",
    _version(
        {"properties": {"spec": _SPEC, "status": _STATUS}},
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        additionalPrinterColumns=[
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1, "description": "the phase"},
            {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        selectableFields=[{"jsonPath": ".spec.mode"}],
    ),
    shortNames=["dj"],
    categories=["all"],
)
POOL = _crd(
    "pools",
    "Pool",
    _version({"x-kubernetes-preserve-unknown-fields": True}),
    _version({"x-kubernetes-preserve-unknown-fields": True}, "v1beta1", storage=False, deprecated=True),
    scope="Cluster",
)


def job(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "diff.mews.test/v1", "kind": "DiffJob", "metadata": {"name": name}, "spec": spec}


def _refused(name: str, /, **spec: Any) -> Sent:
    return Sent(f"job {name}", "POST", f"{JOBS}?dryRun=All", job("k", **{"replicas": 1, **spec}))


def _bad(name: str, /, **changed: Any) -> Sent:
    return Sent(
        f"bad crd {name}", "POST", f"{CRDS}?dryRun=All", {**DEFINITION, "spec": {**DEFINITION["spec"], **changed}}
    )


def _bad_schema(name: str, schema: dict[str, Any]) -> Sent:
    return Sent(
        f"bad schema {name}",
        "POST",
        f"{CRDS}?dryRun=All",
        _crd("wrongs", "Wrong", _version({"properties": {"spec": schema}})),
    )


CHANGING = "/apis/diff.mews.test/v1/changes"


def _schema(spec: dict[str, Any]) -> dict[str, Any]:
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}


def _changing(spec: dict[str, Any]) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": _schema(spec)}
    names = {"plural": "changes", "kind": "Change"}
    given = {"group": "diff.mews.test", "scope": "Cluster", "names": names, "versions": [version]}
    return {"metadata": {"name": "changes.diff.mews.test"}, "spec": given}


CASES: tuple[Case, ...] = (
    opened("crds"),
    Sent("bad crd name", "POST", CRDS, {**DEFINITION, "metadata": {"name": "wrong"}}),
    _bad("scope", scope="Wild"),
    _bad("versions", versions=[]),
    _bad("kind", names={"plural": "jobs"}),
    _bad("group", group=""),
    _bad("no storage", versions=[{**DEFINITION["spec"]["versions"][0], "storage": False}]),
    _bad("no schema", versions=[{"name": "v1", "served": True, "storage": True}]),
    _bad_schema("without type", {"properties": {"a": {"type": "string"}}}),
    _bad_schema("with a wrong type", {"type": "frob"}),
    _bad_schema("with a wrong default", {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
    _bad_schema("without items", {"type": "array"}),
    _bad_schema("with a bad rule", {"type": "object", "x-kubernetes-validations": [{"rule": "self.nothing"}]}),
    Sent("create crd", "POST", CRDS, DEFINITION),
    Sent("created crd", "GET", f"{CRDS}/jobs.diff.mews.test", after_s=_SETTLED_S),
    Sent("create crd again", "POST", CRDS, DEFINITION),
    Sent("create plain crd", "POST", CRDS, POOL),
    Sent("crd table", "GET", CRDS, accept=TABLE, after_s=_SETTLED_S),
    Sent("group", "GET", GROUP),
    Sent("resources", "GET", f"{GROUP}/v1"),
    Sent("resources of the old version", "GET", f"{GROUP}/v1beta1"),
    Sent("anything", "POST", f"{GROUP}/v1/pools", {"apiVersion": "diff.mews.test/v1", "kind": "Pool", "metadata": {"name": "p"}, "any": {"thing": [1, 2.5, "x", None]}}),
    Sent("anything in the old version", "GET", f"{GROUP}/v1beta1/pools/p"),
    Sent("anything listed", "GET", PLAIN),
    Sent("anything as a table", "GET", PLAIN, accept=TABLE),
    Sent("anything put", "PUT", f"{PLAIN}/p", {"apiVersion": "diff.mews.test/v1", "kind": "Pool", "metadata": {"name": "p"}}),
    Sent("anything has no status", "GET", f"{PLAIN}/p/status"),
    Sent("delete anything", "DELETE", f"{PLAIN}/p"),
    Sent("create job", "POST", JOBS, job("j", replicas=2, what="else")),
    Sent("create job again", "POST", JOBS, job("j", replicas=2)),
    Sent("job unknown field strict", "POST", f"{JOBS}?fieldValidation=Strict", job("k", replicas=2, what="else")),
    Sent("job without kind", "POST", JOBS, {"metadata": {"name": "k"}, "spec": {"replicas": 1}}),
    Sent("job of another kind", "POST", JOBS, {**job("k", replicas=1), "kind": "Frob"}),
    Sent("job of another version", "POST", JOBS, {**job("k", replicas=1), "apiVersion": "diff.mews.test/v2"}),
    Sent("job without a name", "POST", JOBS, {**job("k", replicas=1), "metadata": {}}),
    Sent("job bad name", "POST", JOBS, job("K_", replicas=1)),
    Sent("job elsewhere", "POST", JOBS, {**job("k", replicas=1), "metadata": {"name": "k", "namespace": "other"}}),
    Sent("job without spec", "POST", JOBS, {"apiVersion": "diff.mews.test/v1", "kind": "DiffJob", "metadata": {"name": "bare"}}),
    Sent("job spec is text", "POST", JOBS, {**job("k"), "spec": "x"}),
    Sent("job metadata", "POST", JOBS, {**job("k", replicas=1), "metadata": {"name": "k", "labels": {"a": 1}}}),
    Sent("job strange metadata", "POST", f"{JOBS}?dryRun=All", {**job("k", replicas=1), "metadata": {"name": "k", "frob": 1}}),
    _refused("wrong type", replicas="two"),
    Sent("job not required", "POST", f"{JOBS}?dryRun=All", job("k")),
    _refused("minimum", replicas=0),
    _refused("maximum", replicas=101),
    _refused("fraction", replicas=1.5),
    _refused("enum", mode="c"),
    _refused("pattern", name="A"),
    _refused("long", name="abcdefgh"),
    _refused("items", list=["a", "b", "c"]),
    _refused("item type", list=["a", 1]),
    _refused("set twice", set=["a", "a"]),
    _refused("map twice", map=[{"name": "a"}, {"name": "a"}]),
    _refused("map without key", map=[{"size": 1}]),
    _refused("rule", replicas=5, cap=3),
    _refused("port", port=1.5),
    _refused("null", name=None, on=None),
    _refused("boolean", on="yes"),
    _refused("tags", tags={"a": 1}),
    _refused("short", name="A", mode="b"),
    Sent("job defaults", "POST", JOBS, job("full", replicas=1, map=[{"name": "a"}], port="http", free={"x": {"y": 1}}, nothing=None, ratio=1, fixed="x", tags={"a": "b"}, mode=None)),
    Sent("job is immutable", "PATCH", f"{JOBS}/full", {"spec": {"fixed": "y"}}, MERGE),
    Sent("job put without version", "PUT", f"{JOBS}/j", job("j", replicas=3)),
    Sent("job put missing", "PUT", f"{JOBS}/nobody", job("nobody", replicas=3)),
    Sent("job status", "PATCH", f"{JOBS}/j/status", {"status": {"phase": "Running", "replicas": 2}, "spec": {"replicas": 9}}, MERGE),
    Sent("job spec", "PATCH", f"{JOBS}/j", {"status": {"phase": "Other"}, "spec": {"replicas": 4}}, MERGE),
    Sent("job json patch", "PATCH", f"{JOBS}/j", [{"op": "replace", "path": "/spec/replicas", "value": 5}], JSON_PATCH),
    Sent("job bad patch", "PATCH", f"{JOBS}/j", {"spec": {"replicas": 0}}, MERGE),
    Sent("job unknown in a patch", "PATCH", f"{JOBS}/j", {"spec": {"what": 0}}, MERGE),
    Sent("job unknown in a strict patch", "PATCH", f"{JOBS}/j?fieldValidation=Strict", {"spec": {"what": 0}}, MERGE),
    Sent("job strategic", "PATCH", f"{JOBS}/j", {}, STRATEGIC),
    Sent("job scale", "GET", f"{JOBS}/j/scale"),
    Sent("job scaled", "PATCH", f"{JOBS}/j/scale", {"spec": {"replicas": 7}}, MERGE),
    Sent("job scaled too far", "PATCH", f"{JOBS}/j/scale", {"spec": {"replicas": 1000}}, MERGE),
    Sent("job apply", "PATCH", f"{JOBS}/applied?fieldManager=one", job("applied", replicas=2, set=["a"], map=[{"name": "a"}]), APPLY, owned=True),
    Sent("job apply another", "PATCH", f"{JOBS}/applied?fieldManager=two", job("applied", set=["b"], map=[{"name": "b"}]), APPLY, owned=True),
    Sent("job apply a conflict", "PATCH", f"{JOBS}/applied?fieldManager=two", job("applied", replicas=3), APPLY),
    Sent("job apply unknown", "PATCH", f"{JOBS}/applied?fieldManager=one", job("applied", replicas=2, what=1), APPLY),
    Sent("job table", "GET", JOBS, accept=TABLE),
    Sent("job list", "GET", JOBS),
    Sent("job page", "GET", f"{JOBS}?limit=1"),
    Sent("job metadata list", "GET", JOBS, accept=PARTIALS),
    Sent("job across namespaces", "GET", f"{GROUP}/v1/jobs"),
    Sent("job missing", "GET", f"{JOBS}/nobody"),
    Sent("job by name", "GET", f"{JOBS}?fieldSelector=metadata.name%3Dj"),
    Sent("job by mode", "GET", f"{JOBS}?fieldSelector=spec.mode%3Da"),
    Sent("job unknown selector", "GET", f"{JOBS}?fieldSelector=spec.replicas%3D4"),
    Sent("job watch", "GET", f"{JOBS}?watch=true&timeoutSeconds=1"),
    Sent("job watch too old", "GET", f"{JOBS}?watch=true&timeoutSeconds=1&resourceVersion=1"),
    Sent("unknown subresource", "GET", f"{JOBS}/j/frob"),
    Sent("unknown version", "GET", f"{GROUP}/v2/namespaces/crds/jobs"),
    Sent("openapi", "GET", "/openapi/v3/apis/diff.mews.test/v1"),
    Sent("delete job", "DELETE", f"{JOBS}/j"),
    Sent("delete jobs", "DELETE", JOBS),
    Sent("drop a version", "PATCH", f"{CRDS}/pools.diff.mews.test", [{"op": "remove", "path": "/spec/versions/1"}], JSON_PATCH),
    Sent("crd scope is fixed", "PATCH", f"{CRDS}/pools.diff.mews.test", {"spec": {"scope": "Namespaced"}}, MERGE),
    Sent("changing crd", "POST", CRDS, _changing({"a": {"type": "string"}, "gone": {"type": "string"}})),
    Sent("an early one", "POST", CHANGING, {"apiVersion": "diff.mews.test/v1", "kind": "Change", "metadata": {"name": "c"}, "spec": {"gone": "x"}}, after_s=_SETTLED_S),
    Sent("change the crd", "PATCH", f"{CRDS}/changes.diff.mews.test", [{"op": "replace", "path": "/spec/versions/0/schema", "value": _schema({"a": {"type": "string", "default": "A"}})}], JSON_PATCH),
    Sent("the early one defaulted", "GET", f"{CHANGING}/c", after_s=_SETTLED_S),
    Sent("the early ones defaulted", "GET", CHANGING),
    Sent("a change of an early one", "PATCH", f"{CHANGING}/c", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Sent("delete the changing crd", "DELETE", f"{CRDS}/changes.diff.mews.test"),
    Sent("delete crd", "DELETE", f"{CRDS}/jobs.diff.mews.test"),
    Sent("delete plain crd", "DELETE", f"{CRDS}/pools.diff.mews.test"),
    Sent("gone crd", "GET", f"{CRDS}/jobs.diff.mews.test", after_s=_SETTLED_S),
    Sent("gone jobs", "GET", JOBS),
)  # fmt: skip
