"""The table of types: every type can be decoded, described and found again from a kind."""

import random

from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.types.bodies import shape_of
from mews.kube.emulated.apiserver.types.decoding import decoder
from mews.kube.emulated.apiserver.types.gotypes import struct, table
from mews.kube.emulated.apiserver.wire import openapi

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
