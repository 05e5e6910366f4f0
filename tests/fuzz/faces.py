"""The faces of Mews as they are served, each with requests that it answers as they are."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.package import room
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.wire.server import ApiServer
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent

JSON = {"Content-Type": "application/json"}
PASSWORD = "fuzz-password"
TOKEN = "fuzz-token"


def _json(method: str, target: str, body: Any, headers: dict[str, str] | None = None) -> Sent:
    return Sent(method, target, {**JSON, **(headers or {})}, json.dumps(body).encode())


def h3api() -> list[Sent]:
    """Requests of the Falcon's own REST."""
    moved = {"dev_gid": "000100", "port_gid": "0100"}
    return [
        Sent("GET", "/h3api/v1/resources"),
        *(_json(verb, "/h3api/v1/allocation", moved) for verb in ("POST", "DELETE", "PUT")),
        Sent("GET", "/resources"),
        *(_json(verb, "/allocation", {"devid": "000100", "hostport": "0100"}) for verb in ("POST", "DELETE")),
    ]


def redfish(headers: dict[str, str]) -> list[Sent]:
    """Requests of Redfish, with those headers."""
    root = "/redfish/v1"
    reads = (
        "",
        "/",
        "/Chassis",
        "/Fabrics",
        "/Systems",
        "/SessionService/Sessions",
        "/AccountService/Accounts",
        "/EventService",
        "/EventService/Subscriptions",
        "/TaskService/Tasks",
        "/CompositionService",
        "/$metadata",
        "/odata",
        "/Registries",
        "/JsonSchemas",
    )
    return [
        *(Sent("GET", root + path, headers) for path in reads),
        _json("POST", f"{root}/SessionService/Sessions", {"UserName": "admin", "Password": PASSWORD}),
        _json(
            "POST",
            f"{root}/AccountService/Accounts",
            {"UserName": "a", "Password": "long-enough-1", "RoleId": "Operator"},
            headers,
        ),
        _json("PATCH", f"{root}/AccountService", {"MinPasswordLength": 8}, headers),
        _json("PATCH", f"{root}/SessionService", {"SessionTimeout": 300}, headers),
        _json(
            "POST",
            f"{root}/EventService/Subscriptions",
            {"Destination": "http://127.0.0.1:9/", "Protocol": "Redfish", "Context": "x", "EventTypes": ["Alert"]},
            headers,
        ),
        _json("POST", f"{root}/Fabrics/PCIe/Zones", {"Name": "z", "Links": {"Endpoints": []}}, headers),
        _json(
            "PATCH", f"{root}/Fabrics/PCIe/Zones/z", {"Links": {"Endpoints": [{"@odata.id": "/redfish/v1/x"}]}}, headers
        ),
        _json("POST", f"{root}/Fabrics/PCIe/Connections", {"Links": {"InitiatorEndpoints": []}}, headers),
    ]


def control(token: str) -> list[Sent]:
    """Requests of the engineers' back door."""
    headers = {"Authorization": f"Bearer {token}"}
    return [
        *(
            Sent("GET", f"/v1/{path}", headers)
            for path in ("table", "faults", "speed", "events", "inventory", "openapi")
        ),
        _json("POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": None}, headers),
        _json("POST", "/v1/faults", {"chassis": "A", "spec": {"kind": "slow", "factor": 2}}, headers),
        _json("PUT", "/v1/speed", {"speed": 1000}, headers),
        _json("POST", "/v1/devices", {"chassis": "A", "device": {"id": "000900", "uuid": "GPU-1"}}, headers),
        Sent("DELETE", "/v1/devices?chassis=A&device=000900", headers),
        Sent("DELETE", "/v1/faults", headers),
    ]


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "mews/train",
                "resources": {"limits": {"cpu": "1"}},
                "env": [{"name": "A", "value": "b"}],
                "ports": [{"containerPort": 80}],
            }
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]},
    },
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.x.io"},
    "spec": {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"plural": "foos", "singular": "foo", "kind": "Foo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"a": {"type": "string", "pattern": "^a"}},
                                "x-kubernetes-validations": [{"rule": "self.a != ''"}],
                            }
                        },
                    }
                },
            }
        ],
    },
}


def kubernetes(token: str | None) -> list[Sent]:
    """Requests of Kubernetes' API, as the administrator or as nobody."""
    auth = {} if token is None else {"Authorization": f"Bearer {token}"}
    ns = "/api/v1/namespaces/default"
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    patches = (
        ("application/merge-patch+json", {"data": {"a": "c"}}),
        ("application/strategic-merge-patch+json", {"metadata": {"labels": {"x": "y"}}}),
        ("application/json-patch+json", [{"op": "add", "path": "/metadata/labels", "value": {}}]),
        ("application/apply-patch+yaml", config),
    )
    return [
        *(
            Sent("GET", path, auth)
            for path in (
                "/api",
                "/apis",
                "/version",
                "/openapi/v2",
                "/openapi/v3",
                "/api/v1/nodes",
                f"{ns}/pods",
                f"{ns}/pods/p",
                "/apis/apps/v1/deployments",
                f"{ns}/pods/p/log",
                f"{ns}/configmaps/c",
                "/readyz",
                f"{ns}/events",
                f"{ns}/pods?watch=true&timeoutSeconds=1",
            )
        ),
        _json("POST", f"{ns}/pods", POD, auth),
        _json("PUT", f"{ns}/pods/p", POD, auth),
        _json("PUT", f"{ns}/pods/p/status", POD, auth),
        _json("POST", f"{ns}/pods/p/binding", {"target": {"name": "n"}}, auth),
        _json(
            "POST",
            f"{ns}/pods/p/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}},
            auth,
        ),
        _json("POST", f"{ns}/configmaps", config, auth),
        *(
            Sent(
                "PATCH", f"{ns}/configmaps/c?fieldManager=f", {**auth, "Content-Type": kind}, json.dumps(body).encode()
            )
            for kind, body in patches
        ),
        *(
            Sent(
                "PATCH",
                f"/apis/apps/v1/namespaces/default/deployments/d{sub}?fieldManager=f",
                {**auth, "Content-Type": kind},
                json.dumps({"spec": {"replicas": 2}}).encode(),
            )
            for sub in ("", "/scale", "/status")
            for kind in (patches[0][0], patches[1][0])
        ),
        _json("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT, auth),
        Sent("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", auth),
        _json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD, auth),
        _json(
            "POST",
            "/apis/x.io/v1/namespaces/default/foos",
            {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"a": "a"}},
            auth,
        ),
        _json(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "get"}},
            },
            auth,
        ),
        _json(
            "POST",
            f"{ns}/serviceaccounts/default/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            auth,
        ),
        _json(
            "DELETE",
            f"{ns}/configmaps/c",
            {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"},
            auth,
        ),
        Sent("DELETE", f"{ns}/pods?labelSelector=a%3Db", auth),
    ]


@contextmanager
def chassis() -> Iterator[list[Face]]:
    """A served chassis: each dialect, and the back door. In plain HTTP, as TLS has no half-closed connections, by which
    a request that lacks its end is told from one that is slow."""
    hardware = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    server = ChassisServer(hardware, speed=1000.0, token=TOKEN, password=PASSWORD, insecure=True)
    server.start()
    try:
        ready = server.ready()
        [first, *_] = ready["chassis"].values()
        admin = {"X-Auth-Token": _logged_in(first["redfish"]), "OData-Version": "4.0"}
        yield [
            Face("h3api and resource-pool", _address(first["h3api"]), h3api()),
            Face("redfish as administrator", _address(first["redfish"]), redfish(admin)),
            Face("redfish as nobody", _address(first["redfish"]), redfish({})),
            Face("control with the token", _address(ready["control"]["url"]), control(TOKEN)),
            Face("control without it", _address(ready["control"]["url"]), control("another")),
        ]
    finally:
        server.stop()


def _logged_in(url: str) -> str:
    """The token of a session that outlives the fuzzing, a thousand times as fast as time is."""
    service = f"{url}/redfish/v1/SessionService"
    login = json.dumps({"UserName": "admin", "Password": PASSWORD}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{service}/Sessions", login, headers)) as answer:
        token = str(answer.headers["X-Auth-Token"])
    lasting = json.dumps({"SessionTimeout": 86400}).encode()
    with urlopen(Request(service, lasting, {**headers, "X-Auth-Token": token}, method="PATCH")):
        return token


@contextmanager
def api() -> Iterator[list[Face]]:
    """A served API."""
    with _on_a_loop(lambda: _api_server(None)) as open_, _on_a_loop(lambda: _api_server(TOKEN)) as guarded:
        yield [
            Face("kubernetes as everybody", _address(open_.url), kubernetes(None)),
            Face("kubernetes with the token", _address(guarded.url), kubernetes(TOKEN)),
            Face("kubernetes without it", _address(guarded.url), kubernetes("another")),
        ]


async def _api_server(token: str | None) -> ApiServer:
    server = ApiServer(
        fresh_store(lambda: 1_767_225_600.0, random.Random("fuzz")), tokens={token: "admin"} if token else None
    )
    await server.start()
    return server


@contextmanager
def _on_a_loop(make: Callable[[], Awaitable[ApiServer]]) -> Iterator[ApiServer]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(_awaited(make), loop).result(30)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _awaited(make: Callable[[], Awaitable[ApiServer]]) -> ApiServer:
    return await make()


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.partition("://")[2].rpartition(":")
    return host, int(port)


GROUPS = (chassis, api)


def folder() -> Path:
    """Where this lies."""
    return Path(__file__).parent
