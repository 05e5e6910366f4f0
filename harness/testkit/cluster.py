"""A cluster with its chassis that unmodified clients can use, put back to its start before each test."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mews.harness.engine import in_own_loop
from mews.harness.errors import RequirementError
from mews.harness.live.client import SessionClient, line_of
from mews.harness.scenario.artefacts import objects_of
from mews.harness.testkit.chassis import Chassis
from mews.harness.testkit.keeping import keep_journal, keep_texts
from mews.harness.testkit.process import Child, start, started
from mews.harness.testkit.settings import Settings
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, is_deleting, name_of, namespace_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import DeleteOptions, KubeApi

T = TypeVar("T")

_PATIENCE_S = 60.0
SPEED = 10.0
"""Emulated seconds per second, where nobody says."""


class ServedCluster:
    """``api`` and ``kubeconfig`` for any client; ``chassis`` for the hardware; ``nodes`` with their folders; ``ready``
    is all of ready.json. What a test does by ``step`` and its relatives stands in the journal."""

    def __init__(self, ready: Mapping[str, Any], child: Child | None = None) -> None:
        self.ready = dict(ready)
        self.api: str = ready["api"]
        self.kubeconfig = Path(ready["kubeconfig"])
        self.nodes: dict[str, dict[str, Any]] = dict(ready["nodes"])
        self.chassis = Chassis(ready)
        self._child = child
        self._session = SessionClient(ready["session"])
        self._applied: list[Object] = []
        self._first_line = 0
        self._start = self._with_kube(_allocatable)

    def __repr__(self) -> str:
        return f"ServedCluster({self.api}, {self.kubeconfig})"

    def step(self, step: Mapping[str, Any]) -> None:
        """Do what a step of a scenario does (scenarios/README.md), for example ``{"kill": "scheduler"}``.

        Raises AssertionError with what was awaited and seen where it fails, ValueError for what is no step.
        """
        __tracebackhide__ = True
        try:
            reason = self._session.perform(step).reason
        except ValueError as error:
            raise ValueError(str(error)) from None  # its line says all: the client's frames do not
        if reason:
            raise AssertionError(reason)

    def apply(self, *what: Mapping[str, Any] | str | Path) -> None:
        """Create objects, or merge them into existing objects: dicts, or YAML files of one or several. They are deleted
        again before the next test.

        Raises ValueError for what the API refuses, or for a file that holds no objects.
        """
        __tracebackhide__ = True
        objects = [each for given in what for each in _objects_in(given)]
        self._applied += objects
        self.step({"apply": objects})

    def wait(self, timeout: float | str = 60.0, *, timeout_s: float | None = None, **checks: Any) -> None:
        """Wait until all of it holds: checks as scenarios have them, such as ``pod={"name": "a", "phase": "Running"}``
        or ``gpus={"pod": "a", "count": 2}``. ``timeout`` is as in a file, in real time: seconds, or text such as
        ``"2m"``. ``timeout_s`` is its earlier name.

        Raises AssertionError with what was awaited, how long, and what was seen, ValueError for what is no check.
        """
        __tracebackhide__ = True
        given = timeout if timeout_s is None else timeout_s
        self.step({"wait": checks, "timeout": given if isinstance(given, str) else f"{given:g}s"})

    def fault(
        self, kind: str, *, chassis: str = "*", host: str | None = None, component: str | None = None, **spec: Any
    ) -> None:
        """Add a fault to one chassis (default: to all), to a host, or between a component and the API:
        ``fault("lying-result", count=1)``, ``fault("lagging-watch", component="scheduler", by_s=5)``.

        Raises ValueError naming what is allowed.
        """
        __tracebackhide__ = True
        named = {"host": host, "component": component}
        place = {owner: name for owner, name in named.items() if name is not None} or {"chassis": chassis}
        self.step({"fault": {**place, "add": {"kind": kind, **spec}}})

    def move(self, device: str, host: str | None) -> None:
        """Put a device on a host's port (None: on none), behind every client's back.

        Raises ValueError naming those there are.
        """
        __tracebackhide__ = True
        self.chassis.move(device, host)

    def logs(self, pod: str, *, namespace: str = "default", container: str | None = None) -> str:
        """Return what a pod's container has printed.

        Raises ValueError with the API's refusal.
        """
        __tracebackhide__ = True

        async def read(kube: KubeApi) -> str:
            return b"".join([each async for each in kube.log(namespace, pod, container=container)]).decode(
                "utf-8", "replace"
            )

        try:
            return self._with_kube(read)
        except (ApiError, UnavailableError) as error:
            raise ValueError(f"pod {namespace}/{pod}: {error}") from None

    def component_logs(self) -> dict[str, str]:
        """Component -> the output of the user's process that replaces it."""
        folder = self.ready.get("logs")
        files = [] if folder is None else sorted(Path(folder).glob("yours-*.log"))
        return {each.stem.removeprefix("yours-"): each.read_text("utf-8", "replace") for each in files}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what ``kubectl ARGUMENTS`` prints on this cluster.

        Raises AssertionError with its errors where it fails, RequirementError where there is no kubectl.
        """
        __tracebackhide__ = True
        program = shutil.which("kubectl") or shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", ""))
        if program is None:
            raise RequirementError(
                "kubectl: neither on PATH nor in KUBEBUILDER_ASSETS; https://kubernetes.io/docs/tasks/tools"
            )
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: exit {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def reset(self) -> None:
        """No pods, nothing that was applied, no faults, and the chassis and the nodes as they were at the start.

        Raises TimeoutError saying what did not come back.
        """
        self._undo()
        self._with_kube(self._reset)
        self._first_line = int(self._session.get(f"/v1/journal?since={sys.maxsize}")["next"])

    def keep(self, folder: Path) -> None:
        """Write what there is since the last reset: journal, report, objects, logs, the chassis' table and requests.

        Raises OSError, ValueError.
        """
        rows = self._session.get(f"/v1/journal?since={self._first_line}")["lines"]
        keep_journal(
            folder, "cluster", str(self._session.get("/v1/session")["cluster"]), [line_of(row) for row in rows]
        )
        theirs = {f"logs/{name}.log": text for name, text in self.component_logs().items()}
        own = {} if self._child is None else {"up.log": self._child.log()}
        keep_texts(folder, {**self.chassis.texts(), **self._with_kube(objects_of), **theirs, **own})

    def _undo(self) -> None:
        """What tests did beside pods and the chassis."""
        applied, self._applied = self._applied, []
        for each in reversed(applied):
            target = {"kind": each["kind"], "apiVersion": each.get("apiVersion", ""), "name": name_of(each)}
            namespace = {"namespace": namespace_of(each)} if namespace_of(each) else {}
            self._session.perform({"delete": {**target, **namespace, "gracePeriod": 0, "missingOk": True}})
        status = self._session.get("/v1/status")
        if self._session.get("/v1/faults")["faults"]:  # what one that has ended did may still show
            self._session.perform({"fault": {"clear": "all"}})
        for component, state in status["down"].items():
            if state.startswith("killed"):
                self._session.perform({"start": component})

    def _with_kube(self, work: Callable[[KubeApi], Coroutine[Any, Any, T]]) -> T:
        __tracebackhide__ = True

        async def main() -> T:
            from mews.kube.client.http import HttpKube

            kube = HttpKube.from_kubeconfig(str(self.kubeconfig), None)
            try:
                return await work(kube)
            finally:
                await kube.close()

        return in_own_loop(main, virtual=False)

    async def _reset(self, kube: KubeApi) -> None:
        for namespace in sorted({namespace_of(pod) for pod in (await kube.list(PODS)).items}):
            await kube.delete_collection(PODS, namespace=namespace, options=DeleteOptions(grace_period_s=0))
        await asyncio.to_thread(self.chassis.reset)
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        while True:
            pods = [pod for pod in (await kube.list(PODS)).items if not is_deleting(pod)]
            now = await _allocatable(kube)
            if not pods and _without_gone(now, self._start) == self._start:
                return
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"after a reset: {len(pods)} pods, allocatable {now}; at the start {self._start}")
            await asyncio.sleep(0.1)


async def _allocatable(kube: KubeApi) -> dict[str, Any]:
    def of(node: Object) -> Any:
        return (node.get("status") or {}).get("allocatable")

    return {name_of(node): of(node) for node in (await kube.list(NODES)).items}


def _without_gone(now: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """Return them without the resources of device plugins that have gone since: a kubelet shows none of them for a
    while."""
    return {
        node: {
            name: amount for name, amount in (there or {}).items() if name in (start.get(node) or {}) or amount != "0"
        }
        for node, there in now.items()
    }


def _objects_in(given: Mapping[str, Any] | str | Path) -> Iterator[Object]:
    __tracebackhide__ = True
    if isinstance(given, Mapping):
        yield dict(given)
        return
    path = Path(given)
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    for each in filter(None, documents):
        if not isinstance(each, dict) or "kind" not in each:
            raise ValueError(f"{path}: each document must be an object with kind")
        yield each


def bring_up(cluster: str, settings: Settings, folder: Path) -> tuple[Child, ServedCluster]:
    """Start ``mews up`` and wait until it is ready.

    Raises RuntimeError with what it said when it does not come up.
    """
    __tracebackhide__ = True
    name = f"pytest-{os.getpid()}-{folder.name}"[:63]
    words = ["--cluster", cluster, "--dir", str(folder), "--name", name, "--wait", "devices"]
    speed = [] if settings.speed is not None else ["--speed", f"{SPEED:g}"]
    child = start([sys.executable, "-m", "mews.harness.cli", "up", *words, *speed, *settings.options()])
    ready = started(child, folder / "ready.json")
    return child, ServedCluster(ready, child)
