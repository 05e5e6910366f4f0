"""The published documents of CDIM, patched: each patch is needed, and schemathesis finds the face as they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from jsonschema import ValidationError
from msgspec.structs import replace
from schemathesis.core.failures import FailureGroup

from mews.emulator.dialects.cdim.service import API
from mews.emulator.dialects.openapi.cdim import DOCUMENTS, apply, patched, patches, published
from mews.emulator.serve import ChassisServer
from tests.contract.cdim import check, node
from tests.contract.wire import OverHttp
from tests.emulator.test_openapi import operations, send
from tests.harness.conformance.judging import served

PATCHES = [(number, each) for number, each in enumerate(patches().patches)]
CASES = [case for name in DOCUMENTS for case in operations("cdim", patched(name))]


@pytest.fixture(scope="module")
def server() -> Iterator[ChassisServer]:
    with served() as server:
        yield server


def broken(document: dict[str, Any]) -> bool:
    """Whether it is no OpenAPI document, or has references or parameters that lead nowhere."""
    try:
        schemathesis.openapi.from_dict(document).validate()
    except jsonschema_rs.ValidationError:
        return True
    for path, verbs in document["paths"].items():
        named = set(re.findall(r"\{([^}]+)\}", path))
        for verb in verbs.values():
            if named != {each["name"] for each in verb.get("parameters", ()) if each["in"] == "path"}:
                return True
    return any(not _leads(document, where) for where in _references(document))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _leads(document: Any, where: str) -> bool:
    for part in where.removeprefix("#/").split("/"):
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return where.startswith("#/")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_cannot_be_kept_as_published_and_can_as_patched(name):
    assert broken(published(name))
    assert not broken(patched(name))


@pytest.mark.parametrize(("number", "patch"), PATCHES, ids=[str(number) for number, _ in PATCHES])
def test_each_patch_changes_what_the_ones_before_it_left(number, patch):
    value = published(patch.document)
    for _, before in PATCHES[:number]:
        if before.document == patch.document:
            apply(before, value)
    for at in patch.at or ("",):
        was = deepcopy(value)
        apply(replace(patch, at=(at,) if at else ()), value)
        assert value != was, at
    assert patch.reason


def test_a_patch_of_something_that_is_not_there_is_an_error():
    with pytest.raises(KeyError):
        apply(replace(patches().patches[1], at=("/paths/~1nothing/get/name",)), published(DOCUMENTS[0]))


def test_each_choice_is_about_a_document():
    assert {each.document for each in patches().choices} <= set(DOCUMENTS)
    assert all(each.about and each.served and each.reason for each in patches().choices)


@pytest.mark.wall
@pytest.mark.parametrize(("dialect", "operation", "mode"), CASES)
def test_whatever_is_sent_the_answer_is_as_the_patched_documents_say(dialect, operation, mode, server):
    send(server, dialect, operation, mode, API)


@pytest.mark.wall
def test_a_face_that_is_not_as_patched_would_be_found(server):
    described = patched("layout-apply")
    del described["paths"]["/layout-apply"]["post"]["responses"]["400"]
    [case] = [case for case in operations("cdim", described) if "POST /layout-apply negative" in case.id]
    with pytest.raises(FailureGroup, match="Undocumented"):
        send(server, *case.values, API)


@pytest.mark.wall
def test_every_path_and_verb_of_the_documents_is_there_and_no_more(server):
    client = OverHttp(server)
    for name in DOCUMENTS:
        for path, verbs in patched(name)["paths"].items():
            for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                status, _, _ = client.send(verb, f"{API}{path}")
                assert (status == 405) == (verb.lower() not in verbs), (path, verb, status)


def test_the_contract_suite_sees_what_a_document_forbids():
    """Its client holds each reply to the documents: a lacking member, another type and another status are found."""
    path = f"{API}/nodes/{node('1')}"
    check("GET", path, 200, {"id": "x", "resources": []})
    for status, body in ((200, {"id": "x"}), (200, {"id": 1, "resources": []}), (202, {"id": "x", "resources": []})):
        with pytest.raises((AssertionError, ValidationError)):
            check("GET", path, status, body)
