"""Whatever is sent to the operations that the served OpenAPI describes, the server answers, and never with a 5xx."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from tests.kube.emulated.apiserver.faces import Face, face

pytestmark = pytest.mark.wall

BUDGET_S = 12.0
"""Operations that are not reached in this time are left to other seeds; the first ones always are."""

AT_LEAST = 8
GROUPS = ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/coordination.k8s.io/v1", "apis/rbac.authorization.k8s.io/v1")
KNOWN = {"namespace": "default", "name": "known"}
GIVEN_UP = (
    "etcdserver: request is too large",
    "resourceVersion should not be set on objects to be created",
    "couldn't get version/kind",  # of a deletion's options; so are the next three
    "error converting YAML to JSON",
    "into Go struct field DeleteOptions",
    "no kind \\",
    "Too large resource version",
)
"""What the real API server, too, answers with a 5xx."""

QUICK = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Face]:
    with face(tmp_path_factory.mktemp("openapi"), tls=False) as opened:
        yield opened


def described(served: Face) -> dict[str, Any]:
    """One document of all groups that are tried."""
    whole: dict[str, Any] = {}
    for group in GROUPS:
        with urllib.request.urlopen(f"{served.url}/openapi/v3/{group}", timeout=60) as answer:
            document = json.load(answer)
        whole = whole or document
        whole["paths"] |= document["paths"]
        whole["components"]["schemas"] |= document["components"]["schemas"]
    return whole


def send(served: Face, case: Any) -> tuple[int, bytes]:
    """Send a case as it was made, but to a place that is there, and none that goes on for ever."""
    path = case.path
    for name, value in (case.path_parameters or {}).items():
        path = path.replace(f"{{{name}}}", KNOWN.get(name) or quote(str(value), safe="") or "x")
    query = {key: value for key, value in (case.query or {}).items() if key not in ("watch", "follow")}
    sent = isinstance(case.body, dict | list | str | int | float | bool | None)
    body = json.dumps(case.body, default=str).encode() if sent else b""
    url = urlsplit(served.url)
    connection = HTTPConnection(str(url.hostname), url.port, timeout=60)
    try:
        media = {"Content-Type": case.media_type or "application/json"}
        text = urlencode(query, doseq=True, errors="replace")
        connection.request(case.method.upper(), f"{path}?{text}", body=body or None, headers=media)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_no_described_operation_ends_in_an_error_of_the_server(served: Face) -> None:
    schema = schemathesis.openapi.from_dict(described(served))
    operations = [found.ok() for found in schema.get_all_operations()]
    random.Random(1).shuffle(operations)
    begin, tried, faults = time.monotonic(), 0, []
    modes = schemathesis.GenerationMode
    for operation in operations:
        if time.monotonic() > begin + BUDGET_S and tried >= AT_LEAST:
            break
        tried += 1
        for mode in (modes.POSITIVE, modes.NEGATIVE) if operation.body else (modes.POSITIVE,):

            @QUICK
            @hypothesis.given(operation.as_strategy(generation_mode=mode))
            def attempt(case: Any) -> None:
                status, answer = send(served, case)
                if status >= 500 and not any(text.encode() in answer for text in GIVEN_UP):
                    faults.append((case.method, case.path, case.body, answer))

            attempt()
    assert tried >= AT_LEAST
    assert faults == []
