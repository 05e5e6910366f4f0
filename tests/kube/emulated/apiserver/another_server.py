"""Another API server behind an APIService, and a client's tour of it: the same on any API server before it."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp import web

from mews.certificates import Certificates

GROUP, VERSION = "other.example.com", "v1"
BASE = f"/apis/{GROUP}/{VERSION}"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"{VERSION}.{GROUP}"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_THING = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get", "list"]}
_SCALE = {"name": "things/scale", "singularName": "", "namespaced": True, "kind": "Scale", "verbs": ["get"],
          "group": "autoscaling", "version": "v1"}  # fmt: skip
_SHOWN = ("x-remote-", "x-forwarded-", "authorization", "host", "impersonate", "x-own", "content-type", "user-agent")


class AnotherServer:
    """Tells what it was asked; ``aggregated``: it has aggregated discovery, too."""

    def __init__(self, certificates: Certificates, *, aggregated: bool = False) -> None:
        self._context = certificates.server_context()
        self._aggregated = aggregated
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.asked: list[str] = []
        self.seen: list[Any] = []

    def require(self, authority: str) -> None:
        """Let in only whom that authority has signed."""
        self._context.load_verify_locations(cadata=authority)
        self._context.verify_mode = ssl.CERT_REQUIRED

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=self._context).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if request.transport is not None:
            self.seen.append(request.transport.get_extra_info("peercert"))
        shown = sorted((name.lower(), value) for name, value in request.headers.items())
        told = {"line": f"{request.method} {request.raw_path}", "body": await request.text()}
        told["headers"] = [[name, value] for name, value in shown if name.startswith(_SHOWN)]
        match request.path.removeprefix(BASE):
            case "":
                body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
                return web.json_response({**body, "resources": [_THING, _SCALE]})
            case "/apis" if self._aggregated:
                return web.json_response(_document(), content_type=None, headers={"Content-Type": AGGREGATED})
            case "/openapi/v3":
                url = f"/openapi/v3{BASE}?hash=ABC"
                return web.json_response({"paths": {BASE[1:]: {"serverRelativeURL": url}}})
            case "/moved":
                raise web.HTTPFound("/elsewhere")
            case "/fails":
                return web.Response(status=418, text="no", headers={"X-Own": "yes"})
            case "/watched":
                return await _watched(request)
            case "/upgraded":
                return await _upgraded(request)
            case "/apis" | "/openapi/v2":
                return web.Response(status=404)
        return web.json_response(told)


def _document() -> Any:
    kind = {"group": GROUP, "version": VERSION, "kind": "Thing"}
    resource = {"resource": "things", "responseKind": kind, "scope": "Namespaced", "singularResource": "thing"}
    version = {"version": VERSION, "resources": [{**resource, "verbs": ["get", "list"]}], "freshness": "Current"}
    items = [{"metadata": {"name": GROUP}, "versions": [version]}]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


async def _watched(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"type":"ADDED"}\n')
    with suppress(ConnectionError, asyncio.CancelledError):
        await asyncio.sleep(20)
    return response


async def _upgraded(request: web.Request) -> web.StreamResponse:
    if request.query.get("no"):
        return web.Response(status=int(request.query["no"]), text="refused")
    socket = web.WebSocketResponse(protocols=("echo",))
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(f"{request.headers['X-Remote-User']}: {message.data}")
    return socket


class Tour:
    """What a client with an administrator's token sees, but for numbers of ports; ``bundle`` is of whoever has signed
    the server's certificate, ``foreign`` of somebody else."""

    def __init__(self, url: str, token: str, other: AnotherServer, *, bundle: str, foreign: str) -> None:
        self._url = url
        self._other = other
        self._bundle = bundle
        self._foreign = foreign
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.found: list[Any] = []

    async def run(self) -> list[Any]:
        async with aiohttp.ClientSession(headers=self._headers) as self._session:
            await self._note("absent", BASE)
            await self._register()
            await self._note_condition("available", "True")
            await self._pages()
            await self._streams()
            await self._faults()
        return self.found

    async def _ask(self, path: str, method: str = "GET", **options: Any) -> tuple[int, str, Any]:
        async with self._session.request(
            method, self._url + path, ssl=False, allow_redirects=False,
            skip_auto_headers=("Content-Type", "User-Agent"), **options
        ) as response:  # fmt: skip
            return response.status, response.headers.get("Content-Type", ""), await response.text()

    async def _note(self, name: str, path: str, method: str = "GET", **options: Any) -> None:
        status, media, body = await self._ask(path, method, **options)
        self.found.append((name, status, media, self._same(body)))

    def _same(self, body: str) -> Any:
        body = re.sub(r" \(possibly because of .*\)", "", re.sub(rf"\b{self._other.port}\b", "PORT", body))
        try:
            return json.loads(body)
        except ValueError:
            return body

    async def _register(self) -> None:
        space = "/api/v1/namespaces/default/services"
        service = {"metadata": {"name": "other"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
        assert (await self._ask(space, "POST", json=service))[0] == 201
        spec = {
            "group": GROUP, "version": VERSION, "groupPriorityMinimum": 50, "versionPriority": 10,
            "service": {"namespace": "default", "name": "other", "port": self._other.port}, "caBundle": self._bundle,
        }  # fmt: skip
        status, _, text = await self._ask(APISERVICES, "POST", json={"metadata": {"name": NAME}, "spec": spec})
        assert status == 201, text

    async def _change(self, spec: dict[str, Any]) -> None:
        options = {"json": {"spec": spec}, "headers": {"Content-Type": "application/merge-patch+json"}}
        assert (await self._ask(f"{APISERVICES}/{NAME}", "PATCH", **options))[0] == 200

    async def _note_condition(self, name: str, status: str, reason: str = "") -> None:
        def holds(condition: dict[str, str]) -> bool:
            return condition["status"] == status and reason in ("", condition["reason"])

        condition = await self._condition(holds)
        text = re.sub(rf"\b{self._other.port}\b", "PORT", condition["message"])
        self.found.append((name, condition["status"], condition["reason"], text))

    async def _condition(self, holds: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        condition: dict[str, str] = {}
        for _ in range(400):
            text = (await self._ask(f"{APISERVICES}/{NAME}"))[2]
            condition = ((json.loads(text).get("status") or {}).get("conditions") or [{"status": "", "reason": ""}])[0]
            if holds(condition):
                return condition
            await asyncio.sleep(0.1)
        raise AssertionError(condition)

    async def _pages(self) -> None:
        await self._note("version", BASE)
        await self._note("group", f"/apis/{GROUP}")
        played = {"Impersonate-User": "me", "Impersonate-Group": "ours", "Impersonate-Extra-Scopes%2fA": "b",
                  "X-Remote-User": "root", "X-Remote-Group": "system:masters", "X-Remote-Uid": "0",
                  "X-Remote-Extra-Old": "x", "X-Own": "1"}  # fmt: skip
        role = {"metadata": {"name": "others"}, "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]}
        bound = {"metadata": {"name": "others"}, "subjects": [{"kind": "User", "name": "me", "apiGroup": _RBAC}],
                 "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "others"}}  # fmt: skip
        await self._note("not allowed", f"{BASE}/namespaces/n/things", headers=played)
        for plural, body in (("clusterroles", role), ("clusterrolebindings", bound)):
            assert (await self._ask(f"/apis/{_RBAC}/v1/{plural}", "POST", json=body))[0] == 201
        await asyncio.sleep(0.5)  # the authoriser of the real one watches
        await self._note("as another", f"{BASE}/namespaces/n/things?labelSelector=a%3Db&x=1", headers=played)
        await self._note("posted", f"{BASE}/namespaces/n/things", "POST", data=b"body")
        await self._note("slash", f"{BASE}/namespaces/n/things/")
        await self._note("moved", f"{BASE}/moved")
        await self._note("fails", f"{BASE}/fails")
        for _ in range(100):  # discovery is read aside
            listed = json.loads((await self._ask("/apis", headers={"Accept": AGGREGATED}))[2])["items"]
            mine = next((item for item in listed if item["metadata"]["name"] == GROUP), None)
            if mine is not None and mine["versions"][0]["freshness"] == "Current":
                break
            await asyncio.sleep(0.1)
        self.found.append(("discovered", mine["versions"], listed.index(mine) == len(listed) - 1))
        groups = [group["name"] for group in json.loads((await self._ask("/apis"))[2])["groups"]]
        self.found.append(("listed", groups[-1]))
        for _ in range(100):
            paths = json.loads((await self._ask("/openapi/v3"))[2])["paths"]
            if BASE[1:] in paths:
                break
            await asyncio.sleep(0.1)
        self.found.append(("index", paths.get(BASE[1:])))
        await self._note("openapi", f"/openapi/v3{BASE}?hash=ABC")

    async def _streams(self) -> None:
        options = {"ssl": False, "timeout": aiohttp.ClientTimeout(total=10)}
        async with self._session.get(f"{self._url}{BASE}/watched?watch=true", **options) as response:
            self.found.append(("watch", await response.content.readline()))
        async with self._session.ws_connect(f"{self._url}{BASE}/upgraded", protocols=("echo",), ssl=False) as socket:
            await socket.send_str("hello")
            answer = (await socket.receive(10)).data
            self.found.append(("upgrade", socket.protocol, answer.partition(": ")[2]))
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        for status in ("403", "200"):
            await self._note(f"upgrade {status}", f"{BASE}/upgraded?no={status}", headers=upgrade)

    async def _faults(self) -> None:
        await self._change({"caBundle": self._foreign})
        await self._condition(lambda condition: condition["status"] == "True")
        await asyncio.sleep(1.0)
        await self._note("untrusted", f"{BASE}/namespaces/n/things")
        upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
        await self._note("upgrade untrusted", f"{BASE}/upgraded?no=403", headers=upgrade)
        await self._change({"caBundle": "Z2FyYmFnZQ=="})
        await asyncio.sleep(1.0)
        await self._note("no certificates", f"{BASE}/namespaces/n/things")
        await self._change({"caBundle": self._bundle})
        await asyncio.sleep(1.0)
        port = self._other.port
        await self._other.stop()
        await self._note("down", f"{BASE}/namespaces/n/things")
        await self._note("upgrade down", f"{BASE}/upgraded?no=403", headers=upgrade)
        await self._change({"versionPriority": 11})
        await self._note_condition("not answering", "False", "FailedDiscoveryCheck")
        await self._note("unavailable", f"{BASE}/namespaces/n/things")
        await self._other.start(port)
        await self._note_condition("answers again", "True")
        assert (await self._ask("/api/v1/namespaces/default/services/other", "DELETE"))[0] == 200
        await self._note_condition("no service", "False", "ServiceNotFound")
        await self._note("without a service", f"{BASE}/namespaces/n/things")
        assert (await self._ask(f"{APISERVICES}/{NAME}", "DELETE"))[0] == 200
        await asyncio.sleep(0.5)
        await self._note("gone", BASE)


_RBAC = "rbac.authorization.k8s.io"
