"""Mews in tests and notebooks: chassis, hosts, clusters and scenarios as context managers and functions.

pytest users have the same as fixtures (``mews_chassis``, ``mews_hosts``, ``mews_cluster``, ``mews_run``), which need no
import. With unittest::

    class TestMyClient(unittest.TestCase):
        def setUp(self):
            self.pool = self.enterContext(mews.testing.chassis(in_process=True))

        def test_it_reads_the_table_once(self):
            my_client(self.pool.urls["A"]["h3api"]).read()
            self.pool.requests.assert_requested("GET", "/api/*", status=200, times=1)

and in a notebook::

    pool = mews.testing.cluster(hardware="two-pools", stack="none")
    with pool as cluster:
        cluster.apply("pod.yaml")
        cluster.wait(pod={"name": "a", "phase": "Running"})
        print(cluster.kubectl("get", "pods", "-o", "wide"))

Words mean the same everywhere:

- ``hardware``: an inventory, a file or the name of a shipped one (default: demo)
- ``stack``: systems by their names, or ``none``; ``scenario``: hardware and stack of a scenario file or shipped name
- ``dialect``: the only one that the chassis speak; of a cluster: the one that its components use
- ``tls``: False for plain HTTP everywhere; ``speed``: emulated seconds per second

A word that is none, or a value that is not there, raises ``BadInputError``, one line with what is allowed; what this
machine lacks raises ``RequirementError``, one line with how to get it. Nothing heavy is imported before something is
served.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mews.harness.errors import BadInputError, RequirementError
    from mews.harness.scenario.result import Result
    from mews.harness.testkit.chassis import Chassis
    from mews.harness.testkit.cluster import ServedCluster
    from mews.harness.testkit.hosts import HostFiles, RunningHosts
    from mews.harness.testkit.requests import SentRequest, SentRequests

__all__ = [
    "BadInputError",
    "Chassis",
    "HostFiles",
    "RequirementError",
    "Result",
    "RunningHosts",
    "SentRequest",
    "SentRequests",
    "ServedCluster",
    "chassis",
    "cluster",
    "hosts",
    "run",
]

_FROM = {
    "BadInputError": "mews.harness.errors",
    "Chassis": "mews.harness.testkit.chassis",
    "HostFiles": "mews.harness.testkit.hosts",
    "RunningHosts": "mews.harness.testkit.hosts",
    "RequirementError": "mews.harness.errors",
    "Result": "mews.harness.scenario.result",
    "SentRequest": "mews.harness.testkit.requests",
    "SentRequests": "mews.harness.testkit.requests",
    "ServedCluster": "mews.harness.testkit.cluster",
}


def __getattr__(name: str) -> Any:
    """Return the types, loaded when they are first named."""
    from importlib import import_module

    if name in ("BadInput", "Lacks"):
        return getattr(import_module("mews.harness.errors"), name)
    if name not in _FROM:
        raise AttributeError(f"module 'mews.testing' has no attribute {name!r}; it has {', '.join(__all__)}")

    return getattr(import_module(_FROM[name]), name)


@contextlib.contextmanager
def chassis(
    *,
    hardware: str | Path | None = None,
    dialect: str | None = None,
    tls: bool | None = None,
    speed: float | None = None,
    in_process: bool = False,
) -> Iterator[Chassis]:
    """Chassis that serve until the end of the block: ``.urls``, ``.requests``, ``.table()``, ``.move(…)``,
    ``.fault(…)``.

    ``in_process``: by threads of this process, up in a tenth of a second; else by a process of their own, which goes on
    while this one is stopped in a debugger. Raises BadInputError, RuntimeError with what the process printed where it
    does not come up.
    """
    from mews.harness.testkit.chassis import chassis_in_process, serve_chassis
    from mews.harness.testkit.settings import CHASSIS, settings_of

    given = {"hardware": hardware, "dialect": dialect, "tls": tls, "speed": speed}
    settings = settings_of(given, allowed=CHASSIS)
    if in_process:
        with chassis_in_process(settings) as served:
            yield served
        return
    with tempfile.TemporaryDirectory(prefix="mews-testing-") as folder:
        child, served = serve_chassis(settings, Path(folder))
        try:
            yield served
        finally:
            child.end()


@contextlib.contextmanager
def hosts(
    *,
    hardware: str | Path | None = None,
    dialect: str | None = None,
    tls: bool | None = None,
    speed: float | None = None,
) -> Iterator[RunningHosts]:
    """Hosts by their names until the end of the block, with their files, and ``.chassis``: no Kubernetes.

    Raises BadInputError, RuntimeError with what a process printed where it does not come up.
    """
    from mews.harness.testkit.hosts import serve_hosts
    from mews.harness.testkit.settings import CHASSIS, settings_of

    given = {"hardware": hardware, "dialect": dialect, "tls": tls, "speed": speed}
    with serve_hosts(settings_of(given, allowed=CHASSIS)) as served:
        yield served


@contextlib.contextmanager
def cluster(
    backend: str = "embedded",
    *,
    hardware: str | Path | None = None,
    scenario: str | Path | None = None,
    stack: str | Sequence[str] | None = None,
    dialect: str | None = None,
    tls: bool | None = None,
    speed: float | None = None,
    images: str | Path | None = None,
    unknown_images: str | None = None,
    kubernetes: str | None = None,
) -> Iterator[ServedCluster]:
    """Provide a cluster with its chassis until the end of the block, its devices announced: ``.kubeconfig``,
    ``.apply(…)``, ``.wait(…)``, ``.kubectl(…)``, ``.logs(…)``, ``.fault(…)``, ``.move(…)``, ``.chassis``.

    ``backend`` is one that ``mews up --cluster`` takes, ``kubernetes`` a release such as ``1.36``. Raises
    BadInputError, RequirementError, RuntimeError with what the process printed where it does not come up.
    """
    from mews.harness.backends import backends_that
    from mews.harness.extras import check_installed
    from mews.harness.options import check_available, check_choice

    check_choice("backend", backend, backends_that(lambda each: each.stays_up))
    check_installed("cluster")
    check_available(backend)

    from mews.harness.testkit.cluster import bring_up
    from mews.harness.testkit.settings import settings_of

    given = {"hardware": hardware, "scenario": scenario, "stack": stack, "dialect": dialect, "tls": tls}
    further = {"speed": speed, "images": images, "unknown_images": unknown_images, "kubernetes": kubernetes}
    settings = settings_of({**given, **further})
    with tempfile.TemporaryDirectory(prefix="mews-testing-", ignore_cleanup_errors=True) as folder:
        child, served = bring_up(backend, settings, Path(folder))
        try:
            yield served
        finally:
            child.end()


def run(
    path: str | Path,
    seed: int | None = None,
    *,
    time: str | None = None,
    backend: str = "embedded",
    speed: float = 1.0,
    dialect: str | None = None,
    hardware: str | Path | None = None,
    artefacts: str | Path = "mews-artefacts",
    **overrides: Any,
) -> Result:
    """Run a scenario, a file or a shipped one's name, and return its result; a failed run's artefacts are in
    ``artefacts``. ``overrides`` are those of ``mews run --set``, dots written as ``__``.

    Raises ScenarioError, BadInputError, RequirementError, each in one line.
    """
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.testkit.runs import Runner
    from mews.harness.testkit.settings import settings_of

    chosen = settings_of({"hardware": hardware, "dialect": dialect, "speed": speed})
    with ClusterSession() as session:
        runner = Runner(
            backend,
            Path.cwd(),
            Path(artefacts).absolute(),
            session,
            chosen.speed or 1.0,
            hardware=chosen.hardware,
            dialect=chosen.dialect,
        )
        return runner(path, seed, time=time, **overrides)
