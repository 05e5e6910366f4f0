"""The faces of the chassis are as their OpenAPI descriptions say, whatever is sent: tried by schemathesis."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from jsonschema import Draft202012Validator
from schemathesis import checks
from schemathesis.core.failures import FailureGroup

from mews.emulator.chassis.faults.registry import OURS as FAULTS
from mews.emulator.dialects.openapi import DESCRIBED, description, document
from mews.emulator.serve import ChassisServer
from mews.harness.cli import exit_code
from tests.harness.conformance.judging import served, url_of

pytestmark = pytest.mark.wall

QUICK = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def server() -> Iterator[ChassisServer]:
    with served() as server:
        yield server


POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


def operations(dialect: str, described: dict[str, Any]) -> list[Any]:
    """Every operation with what is right, and where something can be sent at all, with what is wrong."""
    schema = schemathesis.openapi.from_dict(described)
    found = [operation.ok() for operation in schema.get_all_operations()]
    return [
        pytest.param(dialect, operation, mode, id=f"{dialect} {operation.label} {mode.value}")
        for operation in found
        for mode in (POSITIVE, NEGATIVE)
        if mode is POSITIVE or operation.body or operation.query
    ]


def send(server: ChassisServer, dialect: str, operation: Any, mode: Any, above: str = "") -> None:
    """Try an operation; ``above`` is what its paths are below."""
    base = server.ready()["control"]["url"] if dialect == "control" else url_of(server, dialect)
    headers = {"Authorization": f"Bearer {server.token}"} if dialect == "control" else {}

    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    @QUICK
    def each(case: Any) -> None:
        case.call_and_validate(base_url=base + above, headers=headers, checks=CHECKS, timeout=60)

    each()


@pytest.mark.parametrize(
    ("dialect", "operation", "mode"), [case for dialect in DESCRIBED for case in operations(dialect, document(dialect))]
)
def test_whatever_is_sent_the_answer_is_as_described(dialect, operation, mode, server):
    send(server, dialect, operation, mode)


def test_a_face_that_is_not_as_described_would_be_found(server):
    described = document("resource-pool")
    del described["paths"]["/allocation"]["post"]["responses"]["404"]
    [case] = [case for case in operations("resource-pool", described) if "POST /allocation positive" in case.id]
    with pytest.raises(FailureGroup, match="Undocumented"):
        send(server, *case.values)


@pytest.mark.parametrize("dialect", DESCRIBED)
def test_every_path_and_verb_of_the_description_is_there_and_no_more(dialect, server, capsys):
    """What a face answers 404 or 405 to is not described, and what is described is neither."""
    described = document(dialect)["paths"]
    assert described
    base = server.ready()["control"]["url"] if dialect == "control" else url_of(server, dialect)
    for path, verbs in described.items():
        for verb in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            status, _ = ask(base, verb, path, server.token)
            assert (status == 405) == (verb.lower() not in verbs), (path, verb, status)


@pytest.mark.parametrize("dialect", DESCRIBED)
def test_it_is_served_by_control_and_printed_by_serve(dialect, server, capsys):
    status, served = ask(server.ready()["control"]["url"], "GET", f"/v1/openapi?dialect={dialect}", server.token)
    assert (status, json.loads(served)) == (200, document(dialect))
    assert exit_code(["serve", "--openapi", dialect]) == 0
    assert capsys.readouterr().out == description(dialect)
    assert served.decode().startswith('{"openapi":"3.1.0"')


def test_an_unknown_dialect_has_none(server, capsys):
    status, text = ask(server.ready()["control"]["url"], "GET", "/v1/openapi?dialect=morse", server.token)
    assert (status, json.loads(text)) == (
        400,
        {"error": "dialect 'morse': must be one of h3api, resource-pool, control"},
    )
    assert exit_code(["serve", "--openapi", "morse"]) == 2
    assert "--openapi morse: must be one of h3api, resource-pool, control" in capsys.readouterr().err


def test_every_kind_of_fault_is_added_as_described(server):
    """The examples of the description are real: one of each kind goes in."""
    schema = document("control")["components"]["schemas"]["Fault"]
    for kind in FAULTS:
        spec = {"kind": kind, **({"device": "000100"} if kind in ("link-down", "lost-uuid") else {})}
        if kind == "concurrent-editor":
            spec["operation"] = "attach"
        body = {"chassis": "A", "spec": spec}
        Draft202012Validator(schema).validate(body)
        status, text = ask(server.ready()["control"]["url"], "POST", "/v1/faults", server.token, body)
        assert status == 201, text
    assert ask(server.ready()["control"]["url"], "DELETE", "/v1/faults", server.token)[0] == 200


def ask(base: str, method: str, path: str, token: str, body: Any = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=60)
    try:
        sent = None if body is None else json.dumps(body)
        connection.request(method, path, sent, {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
