"""A stranger's page, open in the browser of somebody whose session runs, tries what pages can try (SECURITY.md)."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.browser.chromium import REBOUND, attacker, text_of

pytestmark = pytest.mark.wall

MEWS = [sys.executable, "-m", "mews.harness.cli"]
POSTS = ("untyped", "text", "form", "beacon")


class Session:
    """A running `mews up`: what ready.json says of it, and requests as its owner makes them."""

    def __init__(self, ready: dict[str, Any]) -> None:
        self.ready = ready
        self._context = ssl.create_default_context(cafile=ready.get("ca"))

    def kubectl(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask the API, with the kubeconfig's token where there is one."""
        user = json.loads(Path(self.ready["kubeconfig"]).read_text())["users"][0]["user"]
        headers = {"Content-Type": "application/json"}
        if "token" in user:
            headers["Authorization"] = f"Bearer {user['token']}"
        return self._ask(self.ready["api"] + path, headers, body)

    def table(self) -> Any:
        """The device lookup table."""
        return self._ask(self.ready["chassis"]["A"]["h3api"] + "/h3api/v1/resources", {})

    def faults(self) -> Any:
        """The faults of the chassis."""
        control = self.ready["control"]
        return self._ask(control["url"] + "/v1/faults", {"Authorization": f"Bearer {control['token']}"})

    def pods(self) -> list[str]:
        """The names of all pods."""
        return sorted(pod["metadata"]["name"] for pod in self.kubectl("/api/v1/pods")["items"])

    def _ask(self, url: str, headers: dict[str, str], body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data=data, headers=headers)
        context = self._context if url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return json.load(answer)


@pytest.fixture(scope="module", params=[()], ids=["default"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """`mews up` as a user types it, with a pod that runs and could be entered."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        argv = [*MEWS, "up", "--dir", f"{folder}/d", "--json", "--speed", "10", *request.param]
        process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            running = Session(json.loads(line))
            running.kubectl("/api/v1/namespaces/default/pods", pod("victim", ["sleep", "3600"]))
            yield running
        finally:
            process.terminate()
            process.communicate(timeout=60)
            subprocess.run([*MEWS, "down", "--all"], env=environment, capture_output=True, check=True)


def pod(name: str, command: list[str]) -> dict[str, Any]:
    """A pod whose command runs as the user."""
    container = {"name": "main", "image": "mews/gpu-hold", "command": command}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def targets(ready: dict[str, Any], mark: Path) -> list[dict[str, Any]]:
    """All that a session serves, with the means that could do harm there."""
    api, box, control = ready["api"], ready["chassis"]["A"], ready["control"]["url"]
    pods = f"{api}/api/v1/namespaces/default/pods"
    enter = f"{pods}/victim/exec?command=id&stdout=true&container=main"
    edit = {"chassis": "A", "device": "000100", "port": None}
    login = {"UserName": ready["accounts"]["redfish"]["user"], "Password": ready["accounts"]["redfish"]["password"]}
    tried = [
        ("pod", pods, pod("intruder", ["touch", str(mark)]), POSTS),
        ("pods", pods, None, ("read",)),
        ("secrets", f"{api}/api/v1/secrets", None, ("read",)),
        ("watch", f"{pods}?watch=true", None, ("read", "stream")),
        ("exec", enter, None, ("socket", "read")),
        ("exec of kubectl", enter, None, ("socket",)),
        ("api metrics", f"{api}/metrics", None, ("read",)),
        ("table", f"{box['h3api']}/h3api/v1/resources", None, ("read",)),
        ("allocation", f"{box['h3api']}/h3api/v1/allocation", {"dev_gid": "000100", "port_gid": "0300"}, POSTS),
        ("pool", f"{box['resource-pool']}/resources", None, ("read",)),
        ("pool's allocation", f"{box['resource-pool']}/allocation", {"devid": "000100", "hostport": "0300"}, POSTS),
        ("redfish", f"{box['redfish']}/redfish/v1", None, ("read",)),
        ("redfish's login", f"{box['redfish']}/redfish/v1/SessionService/Sessions", login, POSTS),
        ("redfish's events", f"{box['redfish']}/redfish/v1/EventService/SSE", None, ("read", "stream")),
        ("control's edit", f"{control}/v1/edit", edit, POSTS),
        ("control's faults", f"{control}/v1/faults", {"chassis": "A", "spec": {"kind": "slow", "factor": 2}}, POSTS),
        ("control's table", f"{control}/v1/table", None, ("read",)),
        ("control's events", f"{control}/v1/events", None, ("read", "stream")),
        ("hosts", f"{ready['hosts']['url']}/v1/hosts", None, ("read",)),
    ]
    protocols = {"exec of kubectl": ["v5.channel.k8s.io", "v4.channel.k8s.io"]}
    return [
        {"name": name, "url": url, "body": json.dumps(body), "means": means, "protocols": protocols.get(name)}
        for name, url, body, means in tried
    ]


def test_a_page_makes_no_pod_and_no_edit_and_reads_no_byte(session: Session, tmp_path: Path) -> None:
    mark = tmp_path / "was-here"
    before = (session.pods(), session.table(), session.faults())
    with attacker() as site:
        reports = site.attack(tmp_path / "profile", targets(session.ready, mark))
    assert len(reports) > 40
    assert [report for report in reports if report["read"] is not None] == []
    assert (session.pods(), session.table(), session.faults()) == before
    assert not mark.exists()


@pytest.mark.parametrize("face", ["api", "h3api", "redfish", "control", "hosts"])
def test_a_name_that_a_stranger_points_to_loopback_opens_nothing(session: Session, face: str, tmp_path: Path) -> None:
    ready = session.ready
    url = {
        "api": f"{ready['api']}/api/v1/nodes",
        "h3api": f"{ready['chassis']['A']['h3api']}/h3api/v1/resources",
        "redfish": f"{ready['chassis']['A']['redfish']}/redfish/v1",
        "control": f"{ready['control']['url']}/v1/table",
        "hosts": f"{ready['hosts']['url']}/v1/hosts",
    }[face]
    shown = text_of(url.replace("127.0.0.1", REBOUND), tmp_path)
    assert "is none of this server" in shown
    assert "000100" not in shown
    assert "host-1" not in shown


def test_the_page_does_harm_where_nobody_looks_at_its_headers(tmp_path: Path) -> None:
    """The page itself: against a server that answers everybody each of its means gets through."""
    seen: set[tuple[str, str]] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.add((request.path, (await request.text()).strip()))
        headers = {"Access-Control-Allow-Origin": request.headers.get("Origin", "*")}
        if request.path == "/stream":
            return web.Response(text="data: open\n\n", content_type="text/event-stream", headers=headers)
        if request.headers.get("Upgrade", "").lower() == "websocket":
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.send_str("uid=0")
            await socket.close()
            return socket
        return web.Response(text="secret", headers=headers)

    with permissive(answer) as url:
        tried = [
            *({"name": means, "url": f"{url}/{means}", "body": '{"a": 1}', "means": [means]} for means in POSTS),
            *({"name": means, "url": f"{url}/{means}", "means": [means]} for means in ("read", "stream", "socket")),
        ]
        with attacker() as site:
            reports = site.attack(tmp_path / "profile", [{"body": "", "protocols": None, **target} for target in tried])
    read = {report["means"]: report["read"] for report in reports if report["read"] is not None}
    assert read == {"read": "secret", "stream": "open", "socket": "uid=0"}
    assert {(f"/{means}", '{"a": 1}') for means in POSTS if means != "form"} <= seen
    assert any(path == "/form" and json.loads(body)["a"] == 1 for path, body in seen)


class permissive:
    """A server without a guard, in a thread of its own; entering it gives its URL."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> str:
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)

    async def _start(self) -> str:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port: int = self._runner.addresses[0][1]
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
