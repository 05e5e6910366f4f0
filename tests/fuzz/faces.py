"""The faces of Mews as they are served, each with requests that it answers as they are."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.package import room
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent

T = TypeVar("T")
U = TypeVar("U")
JSON = {"Content-Type": "application/json"}
PASSWORD = "fuzz-password"
TOKEN = "fuzz-token"
REPORT = {"loads": {"p": {"utilization": 50}}, "counts": ["session", 1, 2]}


def as_json(method: str, target: str, body: Any, headers: dict[str, str] | None = None) -> Sent:
    """A request with a body in JSON."""
    return Sent(method, target, {**JSON, **(headers or {})}, json.dumps(body).encode())


def h3api() -> list[Sent]:
    """Requests of the Falcon's own REST."""
    moved = {"dev_gid": "000100", "port_gid": "0100"}
    return [
        Sent("GET", "/h3api/v1/resources"),
        *(as_json(verb, "/h3api/v1/allocation", moved) for verb in ("POST", "DELETE", "PUT")),
        Sent("GET", "/resources"),
        *(as_json(verb, "/allocation", {"devid": "000100", "hostport": "0100"}) for verb in ("POST", "DELETE")),
    ]


def redfish(headers: dict[str, str], found: Sequence[str] = ()) -> list[Sent]:
    """Requests of Redfish, with those headers; ``found``: further resources that there are."""
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
        *(Sent("GET", path, headers) for path in found),
        *(as_json("PATCH", path, {"AssetTag": "a", "LocationIndicatorActive": True}, headers) for path in found[::4]),
        *(
            as_json("POST", f"{path}/Actions/{kind}.Reset", {"ResetType": "On"}, headers)
            for path in found
            for kind in ("Chassis", "Manager", "Switch", "Port")
            if f"/{kind}" in path
        ),
        as_json("POST", f"{root}/SessionService/Sessions", {"UserName": "admin", "Password": PASSWORD}),
        as_json(
            "POST",
            f"{root}/AccountService/Accounts",
            {"UserName": "a", "Password": "long-enough-1", "RoleId": "Operator"},
            headers,
        ),
        as_json("PATCH", f"{root}/AccountService", {"MinPasswordLength": 8}, headers),
        as_json("PATCH", f"{root}/SessionService", {"SessionTimeout": 86400}, headers),
        as_json(
            "POST",
            f"{root}/EventService/Subscriptions",
            {"Destination": "http://127.0.0.1:9/", "Protocol": "Redfish", "Context": "x", "EventTypes": ["Alert"]},
            headers,
        ),
        as_json("POST", f"{root}/Fabrics/PCIe/Zones", {"Name": "z", "Links": {"Endpoints": []}}, headers),
        as_json(
            "PATCH", f"{root}/Fabrics/PCIe/Zones/z", {"Links": {"Endpoints": [{"@odata.id": "/redfish/v1/x"}]}}, headers
        ),
        as_json("POST", f"{root}/Fabrics/PCIe/Connections", {"Links": {"InitiatorEndpoints": []}}, headers),
    ]


def control(token: str) -> list[Sent]:
    """Requests of the engineers' back door."""
    headers = {"Authorization": f"Bearer {token}"}
    return [
        *(
            Sent("GET", f"/v1/{path}", headers)
            for path in (
                "table",
                "faults",
                "speed",
                "events",
                "inventory",
                "openapi",
                "telemetry",
                "telemetry/records?since=a&wait_s=0.01",
            )
        ),
        Sent("GET", "/metrics", headers),
        as_json("POST", "/v1/telemetry", {"chassis": "A", "device": "000100", "set": {"power": 100}}, headers),
        as_json("PUT", "/v1/telemetry/reports", {"host": "host-1", "reports": {"GPU-1": REPORT}}, headers),
        as_json("POST", "/v1/reset", {}, headers),
        as_json("POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": None}, headers),
        as_json("POST", "/v1/faults", {"chassis": "A", "spec": {"kind": "slow", "factor": 2}}, headers),
        as_json("PUT", "/v1/speed", {"speed": 1000}, headers),
        as_json("POST", "/v1/devices", {"chassis": "A", "device": {"id": "000900", "uuid": "GPU-1"}}, headers),
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
        as_json("POST", f"{ns}/pods", POD, auth),
        as_json("PUT", f"{ns}/pods/p", POD, auth),
        as_json("PUT", f"{ns}/pods/p/status", POD, auth),
        as_json("POST", f"{ns}/pods/p/binding", {"target": {"name": "n"}}, auth),
        as_json(
            "POST",
            f"{ns}/pods/p/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}},
            auth,
        ),
        as_json("POST", f"{ns}/configmaps", config, auth),
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
        as_json("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT, auth),
        Sent("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", auth),
        as_json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD, auth),
        as_json(
            "POST",
            "/apis/x.io/v1/namespaces/default/foos",
            {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"a": "a"}},
            auth,
        ),
        as_json(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "get"}},
            },
            auth,
        ),
        as_json(
            "POST",
            f"{ns}/serviceaccounts/default/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
            auth,
        ),
        as_json(
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
    server = ChassisServer(
        hardware, context=EmulationContext(speed=1000.0), token=TOKEN, password=PASSWORD, insecure=True
    )
    server.start()
    try:
        ready = server.ready()
        [first, *_] = ready["chassis"].values()
        admin = {"X-Auth-Token": logged_in(first["redfish"]), "OData-Version": "4.0"}
        found = crawled(first["redfish"], admin)

        def renewed() -> list[Sent]:
            return redfish({**admin, "X-Auth-Token": logged_in(first["redfish"])}, found)

        yield [
            Face("h3api and resource-pool", address_of(first["h3api"]), h3api()),
            Face("redfish as administrator", address_of(first["redfish"]), redfish(admin, found), renewed=renewed),
            Face("redfish as nobody", address_of(first["redfish"]), redfish({})),
            Face("control with the token", address_of(ready["control"]["url"]), control(TOKEN)),
            Face("control without it", address_of(ready["control"]["url"]), control("another")),
        ]
    finally:
        server.stop()


BASIC = f"Basic {b64encode(f'admin:{PASSWORD}'.encode()).decode()}"
"""Under TLS; it outlives whatever the requests do to sessions."""


def logged_in(url: str) -> str:
    """The token of a session that outlives the fuzzing, a thousand times as fast as time is."""
    service = f"{url}/redfish/v1/SessionService"
    login = json.dumps({"UserName": "admin", "Password": PASSWORD}).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(f"{service}/Sessions", login, headers)) as answer:
        token = str(answer.headers["X-Auth-Token"])
    lasting = json.dumps({"SessionTimeout": 86400}).encode()
    with urlopen(Request(service, lasting, {**headers, "X-Auth-Token": token}, method="PATCH")):
        return token


def crawled(url: str, headers: dict[str, str], trust: ssl.SSLContext | None = None) -> list[str]:
    """One resource of each form that a Redfish service links to: its path, one ID standing for all of its kind."""
    found, waiting = dict[str, str](), ["/redfish/v1"]
    while waiting:
        path = waiting.pop(0)
        form = _form(path)
        if form in found or form.endswith(("/Accounts/*", "/Sessions/*")) or len(found) == 150:
            continue
        try:
            with urlopen(Request(url + path, headers=headers), context=trust) as answer:
                document = json.loads(answer.read())
        except (HTTPError, ValueError):
            continue
        found[form] = path
        waiting += _links(document)
    return list(found.values())


def _form(path: str) -> str:
    """The path with every member's ID left out: what follows a collection."""
    parts = path.split("/")
    return "/".join("*" if at >= 4 and at % 2 == 0 else part for at, part in enumerate(parts))


def _links(document: Any) -> list[str]:
    if isinstance(document, dict):
        found = [text for key, text in document.items() if key == "@odata.id" and isinstance(text, str)]
        return [text for text in found if "#" not in text] + _links(list(document.values()))
    return [text for item in document for text in _links(item)] if isinstance(document, list) else []


@contextmanager
def api() -> Iterator[list[Face]]:
    """A served API."""
    with (
        on_a_loop(lambda: api_server(None), ApiServer.stop) as open_,
        on_a_loop(lambda: api_server(TOKEN), ApiServer.stop) as guarded,
    ):
        yield [
            Face("kubernetes as everybody", address_of(open_.url), kubernetes(None)),
            Face("kubernetes with the token", address_of(guarded.url), kubernetes(TOKEN)),
            Face("kubernetes without it", address_of(guarded.url), kubernetes("another")),
        ]


async def api_server(token: str | None, context: ssl.SSLContext | None = None) -> ApiServer:
    """One that serves a store of its own."""
    store = fresh_store(lambda: 1_767_225_600.0, random.Random("fuzz"))
    server = ApiServer(store, tokens={token: "admin"} if token else None, ssl_context=context)
    await server.start()
    return server


@contextmanager
def on_a_loop(make: Callable[[], Awaitable[T]], end: Callable[[T], Awaitable[Any]]) -> Iterator[T]:
    """What is made, and ended, on a loop of a thread's own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    served = asyncio.run_coroutine_threadsafe(_awaited(make()), loop).result(30)
    try:
        yield served
    finally:
        asyncio.run_coroutine_threadsafe(_awaited(end(served)), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _awaited(what: Awaitable[U]) -> U:
    return await what


def address_of(url: str) -> tuple[str, int]:
    """Host and port."""
    host, _, port = url.partition("://")[2].rpartition(":")
    return host, int(port)
