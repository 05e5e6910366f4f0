"""pytest plugin ``mews``: a chassis, a cluster, a scenario as fixtures.

- ``mews_chassis``: chassis in a process of their own (``.urls``, ``.table()``, ``.fault(…)`` …).
- ``mews_cluster``: a cluster with its chassis for unmodified clients (``.kubeconfig``, ``.chassis`` …).
- ``mews_run(path, seed=…, **overrides)``: runs a scenario and returns its result.

Servers are started once per session (per worker under xdist, on free ports) and reset before each test. All fixtures
are synchronous and work where an event loop runs already. Importing this module imports nothing but pytest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.testkit.chassis import Chassis
    from mews.harness.testkit.cluster import ServedCluster
    from mews.harness.testkit.runs import Runner

_RUNS = pytest.StashKey["Runner"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    from mews.harness.backends import BACKENDS, DEFAULT_BACKEND

    group = parser.getgroup("mews", "mews: emulated GPU pools and clusters")
    group.addoption(
        "--mews-cluster", choices=tuple(BACKENDS), default=DEFAULT_BACKEND, help="the cluster that scenarios run on"
    )
    group.addoption("--mews-speed", default="1", type=_speed, help="emulated seconds per second, outside virtual time")
    group.addoption("--mews-hardware", metavar="FILE", help="inventory of mews_chassis and mews_cluster")
    group.addoption("--mews-artefacts", metavar="DIR", default="mews-artefacts", help="where failed tests leave theirs")


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 < speed < float("inf"):
        raise ValueError(text)
    return speed


@pytest.fixture(scope="session")
def _mews_chassis_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chassis]:
    from mews.harness.testkit.chassis import serve_chassis

    child, chassis = serve_chassis(_hardware(request.config), tmp_path_factory.mktemp("mews-chassis"))
    yield chassis
    child.end()


@pytest.fixture
def mews_chassis(_mews_chassis_server: Chassis) -> Chassis:
    """Running chassis, their table, faults and operations as at the start."""
    _mews_chassis_server.reset()
    return _mews_chassis_server


@pytest.fixture(scope="session")
def _mews_cluster_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedCluster]:
    name = _available(request.config)
    from mews.harness.testkit.cluster import bring_up

    child, cluster = bring_up(name, _hardware(request.config), tmp_path_factory.mktemp("mews"))
    yield cluster
    child.end()


@pytest.fixture
def mews_cluster(_mews_cluster_server: ServedCluster) -> ServedCluster:
    """A running cluster without pods, its chassis and nodes as at the start."""
    _mews_cluster_server.reset()
    return _mews_cluster_server


@pytest.fixture(scope="session")
def _mews_session() -> Iterator[ClusterSession]:
    from mews.harness.clusters.session import ClusterSession

    with ClusterSession() as session:
        yield session


@pytest.fixture
def mews_run(request: pytest.FixtureRequest, _mews_session: ClusterSession) -> Runner:
    """Runs scenarios; see ``mews.harness.testkit.runs.Runner``."""
    name = _available(request.config)
    from mews.harness.testkit.runs import Runner

    folder = Path(request.config.getoption("--mews-artefacts")) / re.sub(r"[^\w.-]+", "-", request.node.nodeid)
    speed = request.config.getoption("--mews-speed")
    runner = Runner(name, request.path.parent, folder.absolute(), _mews_session, speed)
    request.node.stash[_RUNS] = runner
    return runner


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test tells how its scenarios went and where their artefacts are."""
    outcome: Any = yield
    report = outcome.get_result()
    runner = item.stash.get(_RUNS, None)
    if report.when == "call" and report.failed and runner is not None and runner.runs:
        report.sections.append(("mews", "\n".join(runner.keep())))


def _available(config: pytest.Config) -> str:
    from mews.harness.errors import Lacks
    from mews.harness.options import check_available

    name = str(config.getoption("--mews-cluster"))
    try:
        check_available(name)
    except Lacks as error:
        pytest.skip(str(error))
    return name


def _hardware(config: pytest.Config) -> Path | None:
    given = config.getoption("--mews-hardware")
    if given is None:
        return None
    file = Path(str(given)).absolute()
    if not file.is_file():
        raise pytest.UsageError(f"--mews-hardware {given}: no such file")
    return file
