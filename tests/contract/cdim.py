"""A client of configuration manager and layout-apply; every reply is held to the patched documents."""

from __future__ import annotations

import json
import re
import time
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from mews.emulator.dialects.cdim.service import API
from mews.emulator.dialects.identities import identity, machine_uuid, resource_uuid
from mews.emulator.dialects.openapi.cdim import DOCUMENTS, patched

JSON = {"Content-Type": "application/json"}
ENDED = ("COMPLETED", "FAILED", "SUSPENDED", "CANCELED")


def node(port: str) -> str:
    """The node on that host port of the demo, which is its CPU, too."""
    return machine_uuid(f"host-{port}")


def resource(device: str) -> str:
    """What a device of chassis A is called."""
    return resource_uuid("A", device)


def adapter(port: str, side: str = "destinationFabricAdapter") -> str:
    """An adapter of chassis A."""
    return identity(side, "A", f"host-{port}")


def procedure(operation: str, port: str, device: str, number: int = 1, after: tuple[int, ...] = ()) -> dict[str, Any]:
    """One of the published document."""
    return {
        "operationID": number, "operation": operation, "targetCPUID": node(port), "targetDeviceID": resource(device),
        "dependencies": list(after),
    }  # fmt: skip


def of_operator(operation: str, port: str, device: str) -> dict[str, Any]:
    """The one of composable-resource-operator."""
    return {
        "operationID": 1, "operation": operation, "sourceDeviceID": adapter(port),
        "destinationDeviceID": resource(device), "dependencies": [],
    }  # fmt: skip


@cache
def schemas() -> list[tuple[re.Pattern[str], dict[str, Any], dict[str, Any]]]:
    """Path, operations and components of both documents."""
    found = []
    for name in DOCUMENTS:
        document = patched(name)
        for path, verbs in document["paths"].items():
            pattern = re.compile(API + re.sub(r"\{[^}]+\}", "[^/]+", path))
            found.append((pattern, verbs, document["components"]))
    return sorted(found, key=lambda each: each[0].pattern.count("[^/]+"))


def check(method: str, path: str, status: int, body: Any) -> None:
    """Hold a reply to the document: the status is one of the operation's, and the body of that status's form."""
    for pattern, verbs, components in schemas():
        if pattern.fullmatch(path.partition("?")[0]) and method.lower() in verbs:
            responses = verbs[method.lower()]["responses"]
            assert str(status) in responses, (method, path, status, body)
            content = responses[str(status)].get("content")
            if content is None:
                assert body is None
                return
            schema = {**content["application/json"]["schema"], "components": components}
            Draft202012Validator(schema).validate(body)
            return


class Client:
    """Every call returns status and JSON (None without a body)."""

    def __init__(self, box: Any) -> None:
        self.box = box

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        status, text, headers = self.box.send(method, f"{API}{path}", content, JSON if content else {})
        value = json.loads(text) if text else None
        if value is not None:
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-type"] == "application/json; charset=utf-8"
        check(method, f"{API}{path}", status, value)
        return status, value

    def get(self, path: str) -> Any:
        """The body of a 200."""
        status, value = self.call("GET", path)
        assert status == 200, value
        return value

    def device(self, device: str) -> dict[str, Any]:
        """A GPU in full."""
        found: dict[str, Any] = self.get(f"/resources/{resource(device)}")
        return found

    def apply(self, *procedures: dict[str, Any]) -> dict[str, Any]:
        """A layout, once it has ended."""
        status, value = self.call("POST", "/layout-apply", {"procedures": list(procedures)})
        assert status == 202, value
        return self.ended(value["applyID"])

    def ended(self, layout: str) -> dict[str, Any]:
        deadline_s = time.monotonic() + 10
        while True:
            shown: dict[str, Any] = self.get(f"/layout-apply/{layout}")
            if shown["status"] in ENDED or time.monotonic() > deadline_s:
                return shown
            time.sleep(0.01)
