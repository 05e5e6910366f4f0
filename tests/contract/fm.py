"""A client of fabric and cluster manager that says what the public ones say (contract cohdi.md 2.1 to 2.3)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from mews.emulator.dialects.identities import CLUSTER, TENANT, machine_uuid, resource_uuid

FABRIC = "/fabric_manager/api/v1"
AUTOSCALER = f"/cluster_manager/cluster_autoscaler/v3/tenants/{TENANT}/clusters/{CLUSTER}"
GROUPS = f"/cluster_manager/cluster_autoscaler/v2/tenants/{TENANT}/clusters/{CLUSTER}/nodegroups"
TOKEN = "/id_manager/realms/cdi/protocol/openid-connect/token"
MODEL = "V100"


def machine(port: str) -> str:
    """The machine on that host port of the demo."""
    return machine_uuid(f"host-{port}")


def resource(device: str) -> str:
    """What a device of chassis A is called."""
    return resource_uuid("A", device)


def encoded(password: str, **changed: str) -> bytes:
    """The login of composable-resource-operator."""
    form = {
        "client_id": "c", "client_secret": "s", "username": "admin", "password": password, "scope": "openid",
        "response_type": "id_token token", "grant_type": "password",
    }  # fmt: skip
    return urlencode({**form, **changed}).encode()


def raw(password: str) -> bytes:
    """The login of composable-dra-driver: by hand, with a raw space and the key ``response``."""
    return (
        f"client_id=c&client_secret=s&username=admin&password={password}"
        "&scope=openid&response=id_token token&grant_type=password"
    ).encode()


def attach_body(port: str, model: str = MODEL, *, kind: str = "gpu", column: str = "model") -> dict[str, Any]:
    condition = [{"column": column, "operator": "eq", "value": model}]
    return shell(port, {"res_type": kind, "res_spec": {"condition": condition}, "res_num": 1})


def detach_body(port: str, device: str) -> dict[str, Any]:
    return shell(port, {"res_type": "gpu", "res_uuid": resource(device), "res_num": 1})


def shell(port: str, spec: dict[str, Any]) -> dict[str, Any]:
    item = {"mach_uuid": machine(port), "resources": [{"res_specs": [spec]}]}
    return {"tenants": {"tenant_uuid": TENANT, "machines": [item]}}


class Client:
    """Logs in at once; every call returns status and JSON (None without a body)."""

    def __init__(self, box: Any) -> None:
        self.box = box
        status, text, _ = box.send("POST", TOKEN, encoded(box.password), FORM)
        assert status == 200, text
        self.token = json.loads(text)["access_token"]

    def call(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> tuple[int, Any]:
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if content:
            headers["Content-Type"] = "application/json"
        status, text, _ = self.box.send(method, path, content, headers)
        return status, json.loads(text) if text else None

    def get(self, path: str, **query: str) -> tuple[int, Any]:
        asked = "&".join(f"{name}={quote(value)}" for name, value in {"tenant_uuid": TENANT, **query}.items())
        return self.call("GET", f"{FABRIC}{path}?{asked}")

    def update(self, method: str, port: str, body: Any) -> tuple[int, Any]:
        return self.call(method, f"{FABRIC}/machines/{machine(port)}/update?tenant_uuid={TENANT}", body)

    def attach(self, port: str, model: str = MODEL, column: str = "model") -> tuple[int, Any]:
        return self.update("PATCH", port, attach_body(port, model, column=column))

    def detach(self, port: str, device: str) -> tuple[int, Any]:
        return self.update("DELETE", port, detach_body(port, device))

    def cluster(self, port: str) -> dict[str, Any]:
        """The specification of the GPUs of a machine, as the cluster manager shows it."""
        status, shown = self.call("GET", f"{AUTOSCALER}/machines/{machine(port)}")
        assert status == 200, shown
        specs = shown["data"]["cluster"]["machine"]["resspecs"]
        found: dict[str, Any] = next(each for each in specs if each["type"] == "gpu")
        return found

    def resize(self, port: str, body: Any) -> tuple[int, Any]:
        return self.call("POST", f"{AUTOSCALER}/machines/{machine(port)}/actions/resize", body)


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
