"""The embedded Kubernetes could leave the house: a wheel of it and of what it stands on serves kubectl and kopf."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.harness.package import sources
from tests.kube.emulated.apiserver.serving import KUBECONFIG, find_kubectl
from tests.kube.emulated.apiserver.test_kopf import OPERATOR, PEERINGS, WIDGETS, definition

pytestmark = pytest.mark.wall

DEADLINE_S = 30.0
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "embedded-kubernetes"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["mews"]
"""
SERVE = """
import asyncio, importlib.util, json, random, sys, time
import mews
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer

async def main():
    server = ApiServer(fresh_store(time.time, random.Random(1)))
    await server.start()
    others = [name for name in ("harness", "systems", "emulator") if importlib.util.find_spec(f"mews.{name}")]
    print(json.dumps({"url": server.url, "from": mews.__file__, "others": others}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop()

asyncio.run(main())
"""


def modules(files: dict[str, Path]) -> dict[str, Path]:
    """Return the modules of the package, by their dotted names below ``mews``."""
    names = {inside: inside.removesuffix(".py").removesuffix("/__init__") for inside in files if inside.endswith(".py")}
    return {name.replace("/", "."): files[inside] for inside, name in names.items()}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield what of the package a module imports, at its head or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and f"{node.module}.".startswith("mews."):
            module = node.module.removeprefix("mews").removeprefix(".")
            inside = [".".join(filter(None, (module, alias.name))) for alias in node.names]
            yield from (name for name in (module, *inside) if name in known)


def stood_on(known: dict[str, Path]) -> set[str]:
    """Return the embedded Kubernetes and all that it stands on, packages included."""
    found: set[str] = set()
    waiting = [name for name in known if name.startswith("kube.emulated")]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [*imported(known[name], known), *filter(None, [name.rpartition(".")[0]])]
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which nothing but that wheel is installed."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "project").mkdir()
    (folder / "project" / "pyproject.toml").write_text(PROJECT)
    files = dict(sources())
    kept = stood_on(modules(files))
    assert {name.partition(".")[0] for name in kept} & {"emulator", "harness", "systems"} == set()
    for inside, path in files.items():
        name = inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        data = not inside.endswith(".py") and inside.startswith(("kube/emulated/", "kube/releases/"))
        if name in kept or data or inside == "__init__.py":
            target = folder / "project" / "mews" / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel"],
        cwd=folder / "project", capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (folder / "project" / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def served(site: Path, tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a server that runs from there."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    serving = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVE)],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, text=True,
    )  # fmt: skip
    try:
        assert serving.stdout is not None
        told = json.loads(serving.stdout.readline())
        assert Path(told["from"]).is_relative_to(site)
        assert told["others"] == []
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=told["url"], token="secret"))
        yield kubeconfig
    finally:
        serving.communicate("", timeout=DEADLINE_S)


def ask(kubeconfig: Path, path: str, body: Any = None) -> Any:
    url = next(part.strip('"}]') for part in kubeconfig.read_text().split() if "http" in part)
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
        return json.load(response)


def test_kubectl_is_served(served: Path, tmp_path: Path) -> None:
    kubectl = find_kubectl()

    def run(*words: str, given: str = "") -> str:
        done = subprocess.run(
            [kubectl, "--kubeconfig", str(served), *words], input=given, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    deployment = run("create", "deployment", "web", "--image=web", "--replicas=2", "--dry-run=server", "-o", "yaml")
    run("apply", "-f", "-", given=deployment)
    assert run("get", "deployments").split()[:6] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "web"]
    assert "progressDeadlineSeconds: 600" in run("get", "deployment", "web", "-o", "yaml")
    assert "FIELD: replicas <integer>" in run("explain", "deployment.spec.replicas")


def test_kopf_is_served(served: Path) -> None:
    for resource in (WIDGETS, PEERINGS):
        ask(served, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(resource, status=True))
    ask(served, "/apis/kopf.dev/v1/namespaces/default/kopfpeerings", {
        "apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "default"}
    })  # fmt: skip
    command = [sys.executable, "-m", "kopf", "run", "--peering=default", "--namespace=default", str(OPERATOR)]
    log = served.with_name("operator.log")
    with log.open("wb") as output:
        operator = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, "KUBECONFIG": str(served)}
        )
    try:
        place = "/apis/mews.test/v1/namespaces/default/widgets"
        widget = {"apiVersion": "mews.test/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
        ask(served, place, widget)
        deadline = time.monotonic() + DEADLINE_S
        while (ask(served, f"{place}/w").get("status") or {}).get("created") != {"said": "size 3"}:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
    finally:
        operator.terminate()
        operator.wait(DEADLINE_S)
