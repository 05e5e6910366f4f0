"""The table of types: every type can be decoded, described and found again from a kind."""

import random

import pytest

from mews.kube.api.patches import merge_patch
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core.wire import openapi
from mews.kube.emulated.types.bodies import shape_of
from mews.kube.emulated.types.decoding import decode_patched, decoder
from mews.kube.emulated.types.gotypes import struct, table

GROUPS = (
    *("admissionregistration", "apiextensions", "apiregistration", "apps", "authentication", "authorization"),
    *("autoscaling", "batch", "certificates", "coordination", "core", "discovery", "events", "flowcontrol", "meta"),
    *("networking", "node", "policy", "rbac", "resource", "scheduling", "storage"),
)


def test_every_type_decodes_an_empty_object_and_drops_what_it_does_not_know():
    for group in GROUPS:
        for name in table(group):
            unknown: list[str] = []
            decoder(f"{group}/{name}")({"frobnicated": 1}, unknown)
            if struct(f"{group}/{name}").fields:
                assert unknown == ["frobnicated"], f"{group}/{name}"


SAMPLES = {
    "string": "text",
    "bool": True,
    "int32": 3,
    "int64": 3,
    "float64": 1.5,
    "bytes": "YQ==",
    "time": "2026-01-01T00:00:00.25Z",
    "microtime": "2026-01-01T00:00:00.250000Z",
    "quantity": "0.5",
    "intstr": 8080,
    "fields": {"f:spec": {}},
    "raw": {"a": [None, {}]},
    "any": {"a": [None, {}]},
    "schemaorlist": {"type": "string"},
    "schemaorbool": False,
}


def sample(type_, depth=4):
    """A value of a type, down to some depth."""
    if type_ in SAMPLES:
        return SAMPLES[type_]
    if type_[:2] == "[]":
        return [sample(type_[2:], depth), None]
    if type_[:2] == "{}":
        return {"a": sample(type_[2:], depth), "b": None}
    fields = struct(type_).fields.items() if depth else ()
    return {name: sample(field.type, depth - 1) for name, field in fields}


def test_what_is_decoded_is_decoded_again_to_the_same():
    for group in GROUPS:
        for name in table(group):
            for value in ({}, sample(f"{group}/{name}"), sample(f"{group}/{name}", 1)):
                once = decoder(f"{group}/{name}")(value, [])
                assert decoder(f"{group}/{name}")(once, []) == once, f"{group}/{name}"


def test_what_a_patch_made_is_decoded_as_if_it_were_new():
    for kind in fresh_store(lambda: 0.0, random.Random(1)).kinds:
        ref = shape_of(kind).ref
        stored = decoder(ref)(sample(ref), [])
        for part in stored:
            for change in (None, {"frobnicated": 1, "name": "a"}, sample(struct(ref).fields[part].type)):
                patched, unknown, unknown_anew = merge_patch(stored, {part: change}), [], []
                try:
                    anew = decoder(ref)(patched, unknown_anew)
                except ValueError:
                    with pytest.raises(ValueError):
                        decode_patched(ref, patched, stored, unknown)
                    continue
                assert decode_patched(ref, patched, stored, unknown) == anew, (ref, part)
                assert unknown == unknown_anew


def test_nothing_of_what_is_stored_is_shared_with_what_a_patch_made():
    stored = decoder("core/v1.Pod")(sample("core/v1.Pod"), [])
    made = decode_patched("core/v1.Pod", merge_patch(stored, {"status": {"phase": "Running"}}), stored, [])
    assert not {id(part) for part in parts(stored)} & {id(part) for part in parts(made)}


def parts(value):
    if isinstance(value, (dict, list)):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from parts(item)


def test_every_built_in_kind_has_a_type_with_metadata():
    kinds = fresh_store(lambda: 0.0, random.Random(1)).kinds
    for kind in kinds:
        if not kind.custom:
            assert shape_of(kind).ref.partition("/")[2] in table(shape_of(kind).ref.partition("/")[0]), kind.plural


def test_openapi_refers_only_to_schemas_that_it_holds():
    kinds = fresh_store(lambda: 0.0, random.Random(1)).kinds
    for path in openapi.index(kinds)["paths"]:
        document = openapi.document(kinds, path)
        assert document is not None
        names = set(document["components"]["schemas"])
        assert {ref.removeprefix("#/components/schemas/") for ref in references(document)} <= names, path
    swagger = openapi.swagger(kinds)
    assert {ref.removeprefix("#/definitions/") for ref in references(swagger)} <= set(swagger["definitions"])


def references(value):
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item
            else:
                yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)
