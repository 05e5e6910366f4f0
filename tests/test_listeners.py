"""Nothing listens that was not made by a factory of ``mews.listening``, and nothing listens unknown."""

import ast
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mews.harness.commands.manifests import ManifestsOptions, stack_objects
from mews.harness.manifests.chassis import CHASSIS_PORT, CONTROL_PORT
from mews.harness.manifests.nodes import AGENT_PORT, HOST_PORT
from tests.fuzz.groups import GROUPS, SOCKETS

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("src/mews", "emulator", "kube", "systems", "harness")
SOURCES = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
FACTORIES = {
    *(str(path.relative_to(ROOT)) for path in (ROOT / "src/mews/listening").glob("*.py")),
    "emulator/http_server.py",
    "emulator/http_request.py",
    "emulator/http_connection.py",
    "emulator/tls_adapter.py",
    "emulator/wrongs/front.py",
}
OPENING = {
    "start_server", "start_unix_server", "create_server", "create_unix_server", "run_app", "run_simple", "make_server",
    "AppRunner", "ServerRunner", "TCPSite", "UnixSite", "SockSite", "add_insecure_port", "add_secure_port",
    "HTTPServer", "ThreadingHTTPServer", "TCPServer", "ThreadingTCPServer", "UnixStreamServer", "WSGIServer",
    "ThreadingUnixStreamServer", "UDPServer", "guarded_server", "start_http_server", "start_wsgi_server",
}  # fmt: skip
"""Names by which libraries open a port or a socket, whatever they are called on."""
SERVERS = ("http.server", "wsgiref", "cheroot", "werkzeug.serving", "waitress", "uvicorn", "hypercorn", "tornado")
"""Modules that are servers; nobody but a factory has any use for them."""


def made_by_hand(source):
    """The places of a module that open a port or a socket by themselves: (line, what)."""
    tree, found = ast.parse(source), []
    imports = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            found += [(node.lineno, name) for name in names if name.startswith(SERVERS)]
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in OPENING or ("socket" in imports and name in ("bind", "listen") and _is_of_a_socket(node)):
            found.append((node.lineno, name))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("grpc.server", "grpc.aio.server", "web.Server"):
            found.append((node.lineno, ast.unparse(node.func)))
    return found


def _is_of_a_socket(node):
    """Not ``self._services.listen``, ``pool.bind``, which are of ours."""
    named = r"(sock|socket|probe|held|listening|server)\w*$"
    return isinstance(node, ast.Attribute) and re.search(named, ast.unparse(node.value), re.IGNORECASE) is not None


def test_every_listener_is_made_by_a_factory():
    found = {
        str(path.relative_to(ROOT)): places
        for path in SOURCES
        if str(path.relative_to(ROOT)) not in FACTORIES and (places := made_by_hand(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "use a factory of mews.listening"


@pytest.mark.parametrize(
    "planted",
    [
        "from aiohttp import web\nasync def f(h): await web.TCPSite(web.AppRunner(web.Application())).start()",
        "import asyncio\nasync def f(t): await asyncio.start_server(t, '127.0.0.1', 0)",
        "import socket\ndef f():\n    s = socket.socket()\n    wire_socket = s\n    wire_socket.bind(('', 0))",
        "import socket\nlistening = socket.create_server(('', 0))",
        "import grpc\nserver = grpc.aio.server()",
        "from http.server import BaseHTTPRequestHandler",
        "from prometheus_client import start_http_server\nstart_http_server(0)",
        "import socketserver\nclass S(socketserver.ThreadingTCPServer): ...",
    ],
)
def test_a_new_face_without_the_factory_is_found(planted):
    assert made_by_hand(planted)


# What is open while commands run


def listeners_table():
    """The rows of SECURITY.md's table of listeners: name -> fuzz groups."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Every listener\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$", text, re.MULTILINE)
    return {name: [part.strip("` ") for part in groups.split(",") if "`" in part] for name, groups in rows}


def test_the_table_of_listeners_names_groups_of_the_fuzzer_and_all_of_them():
    known = {group.__name__ for group in (*GROUPS, *SOCKETS)}
    named = {group for groups in listeners_table().values() for group in groups}
    assert named == known


def descendants(pid):
    """The process and all that it started."""
    children, found = {}, [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text().partition(" (")
        except OSError:
            continue
        children.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(number))
    for each in found:
        found += children.get(each, [])
    return found


def open_files(pid):
    """What a process has open. A file that it closes meanwhile hides none of the others."""
    with contextlib.suppress(OSError):
        for path in list(Path(f"/proc/{pid}/fd").iterdir()):
            with contextlib.suppress(OSError):
                yield os.readlink(path)


def open_sockets(pid):
    """Where the processes listen: ``127.0.0.1:PORT``, or the path of a unix socket."""
    inodes = {link[8:-1] for each in descendants(pid) for link in open_files(each) if link.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = row.split()
            if words[3] == "0A" and words[9] in inodes:
                address, _, port = words[1].partition(":")
                host = "127.0.0.1" if address == "0100007F" else f"{table} {address}"
                found.add(f"{host}:{int(port, 16)}")
    for row in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = row.split()
        if words[3] == "00010000" and words[6] in inodes:
            found.add(words[7] if len(words) > 7 else "abstract")
    return found


def known_listeners(ready):
    """Address or pattern -> the name in SECURITY.md's table, as ready.json has it."""

    def at(url):
        return re.escape(url.partition("://")[2].rstrip("/"))

    found = {}
    for faces in ready.get("chassis", {}).values():
        found |= {at(url): "redfish" if dialect in ("redfish", "fm") else "h3api" for dialect, url in faces.items()}
    for field in ("control", "hosts", "session"):
        if field in ready:
            found[at(ready[field]["url"])] = field
    found |= {at(url): "proxy" for url in ready.get("proxies", {}).values()}
    found |= {at(url): "services" for url in ready.get("services", {}).values()}
    if "api" in ready:
        found[at(ready["api"])] = "api"
        found[re.escape(ready["logs"]) + r"/api\.sock"] = "api"
        found[re.escape(ready["logs"]) + r"/h/[^/]+/nvml\.state\.sock"] = "nvml"
    for node in ready.get("nodes", {}).values():
        if node["kubelet"]:
            found[at(node["kubelet"])] = "kubelet"
        found[re.escape(node["device_plugins"]) + r"/[^/]+"] = "device-plugins"
        found[re.escape(node["pod_resources"]) + r"/[^/]+"] = "pod-resources"
        found[re.escape(os.path.dirname(node["pod_resources"])) + r"/\.[^/]+"] = "runtime-hooks"
    return found


def names_of(pid, ready):
    """The listeners of a process by name; an unknown one is its address."""
    known = known_listeners(ready)
    return {
        next((name for pattern, name in known.items() if re.fullmatch(pattern, address)), address)
        for address in open_sockets(pid)
    }


RUNS = {
    "up --web": ["up", "--web"],
    "up kubecomp": ["up", "--stack", "kubecomp"],
    "up kod2": ["up", "--stack", "kod2"],
    "up gpushare": ["up", "--stack", "gpushare"],
    "up koordinator": ["up", "--stack", "koordinator"],
    "up insecure": ["up", "--insecure", "--stack", "none"],
}
IN_TESTS = ("up --web", "up koordinator")
"""The others run nightly: each takes six seconds of a processor."""


def run_of(command, folder):
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        argv = [sys.executable, "-m", "mews.harness.cli", *command]
        process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            process.first_line = process.stdout.readline()
            assert process.first_line, process.stderr.read()
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


@pytest.mark.wall
@pytest.mark.parametrize(
    "run", [name if name in IN_TESTS else pytest.param(name, marks=pytest.mark.nightly) for name in RUNS]
)
def test_whatever_mews_up_opens_is_known(run, tmp_path):
    folder = tmp_path / "dir"
    for process in run_of([*RUNS[run], "--dir", str(folder), "--name", "listeners", "--wait", "devices"], folder):
        ready = json.loads((folder / "ready.json").read_text())
        seen = names_of(process.pid, ready)
    assert seen <= set(listeners_table()), "SECURITY.md's table of listeners does not have it"
    assert {"api", "redfish", "control", "session"} <= seen, "the test does not see what is there"


@pytest.mark.wall
def test_whatever_mews_serve_opens_is_known(tmp_path):
    ready = tmp_path / "ready.json"
    hardware = str(ROOT / "fixtures/hardware/demo.yaml")
    for process in run_of(["serve", "--hardware", hardware, "--ready", str(ready)], tmp_path):
        seen = names_of(process.pid, json.loads(ready.read_text()))
    assert seen == {"h3api", "redfish", "control"}


@pytest.mark.wall
def test_whatever_mews_proxy_opens_is_known(tmp_path):
    """The API server behind need not be there."""
    server = {"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}]}
    context = {"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "current-context": "a"}
    kubeconfig = tmp_path / "upstream"
    kubeconfig.write_text(json.dumps({**server, **context, "users": [{"name": "a", "user": {}}]}))
    for process in run_of(["proxy", "--kubeconfig", str(kubeconfig), "--json"], tmp_path):
        ready = json.loads(process.first_line)
        seen = names_of(process.pid, {"proxies": {"program": ready["api"]}, "session": ready["session"]})
    assert seen == {"proxy", "session"}


@pytest.mark.wall
def test_whatever_mews_envtest_opens_is_known(tmp_path):
    """CMD gets a kubeconfig; beside it lies the ready.json of the `mews up` that serves it."""
    command = "import os, time; print(os.environ['KUBECONFIG'], flush=True); time.sleep(600)"
    for process in run_of(["envtest", "--", sys.executable, "-c", command], tmp_path):
        ready = json.loads((Path(process.first_line.strip()).parent / "ready.json").read_text())
        seen = names_of(process.pid, ready)
    assert seen <= set(listeners_table()), "SECURITY.md's table of listeners does not have it"
    assert {"api", "redfish", "control", "session"} <= seen, "the test does not see what is there"


PORTS_IN_PODS = {
    CHASSIS_PORT: "h3api",
    CONTROL_PORT: "control",
    AGENT_PORT: "agent",
    HOST_PORT: "hosts",
    "metrics": "metrics",
    "service": "services",
}
"""What pods on a real cluster listen on, by number or by the port's name in their manifests."""


def ports_of(objects):
    """Every port that the manifests give a container or a Service: its name in SECURITY.md's table, or what it is."""
    found = set()
    for obj in objects:
        spec = obj.get("spec") or {}
        named = {}
        for container in ((spec.get("template") or {}).get("spec") or {}).get("containers") or ():
            named |= {port["containerPort"]: port.get("name") for port in container.get("ports") or ()}
        found |= {PORTS_IN_PODS.get(number) or PORTS_IN_PODS.get(name) or f"{number}" for number, name in named.items()}
    return found


def test_whatever_pods_of_a_real_cluster_open_is_known():
    """By their manifests: what listens without a factory is found by its source, on whatever cluster it runs."""
    seen = set()
    for file in ("koordinator/25-webhook.yaml", "gpushare", "elastic", "mixed"):
        path = ROOT / "scenarios" / file
        path = path if path.is_file() else sorted(path.glob("*.yaml"))[0]
        options = ManifestsOptions(None, path, None, None, "mews.local/components:latest", (), None)
        seen |= ports_of(stack_objects(options))
    assert seen <= set(listeners_table()), "SECURITY.md's table of listeners does not have it"
    assert {"h3api", "control", "agent", "metrics", "services"} <= seen, "the test does not see what is there"


def test_a_port_of_a_pod_that_nobody_knows_is_found():
    container = {"name": "new", "ports": [{"name": "new", "containerPort": 4242}]}
    assert ports_of([{"spec": {"template": {"spec": {"containers": [container]}}}}]) == {"4242"}


@pytest.mark.wall
def test_a_port_that_nobody_knows_is_found(tmp_path):
    program = "import socket, time\ns = socket.create_server(('127.0.0.1', 0))\nprint(1, flush=True)\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        [seen] = names_of(process.pid, {})
    finally:
        process.kill()
        process.communicate()
    assert re.fullmatch(r"127\.0\.0\.1:\d+", seen)
    assert seen not in listeners_table()
