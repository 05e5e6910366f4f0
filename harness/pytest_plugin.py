"""pytest plugin ``mews``: a chassis, a cluster, a scenario as fixtures.

- ``mews_chassis``: chassis in a process of their own (``.urls``, ``.table()``, ``.fault(…)`` …).
- ``mews_cluster``: a cluster with its chassis for unmodified clients (``.kubeconfig``, ``.chassis`` …). What it runs is
  said by ``@pytest.mark.mews(scenario="file.yaml")`` or ``@pytest.mark.mews(stack="none")``: hardware and stack of a
  scenario (beside the test's file, or a shipped one's name), or systems by their names. ``images="file.yaml"`` and
  ``unknown_images="fail"`` are for one test; the ini options ``mews_images`` and ``mews_unknown_images`` for all.
- ``mews_run(path, seed=…, **overrides)``: runs a scenario and returns its result.

Servers are started once per session (per worker under xdist, on free ports) and reset before each test. All fixtures
are synchronous and work where an event loop runs already. Importing this module imports nothing but pytest.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.testkit.chassis import Chassis
    from mews.harness.testkit.cluster import ServedCluster, Software
    from mews.harness.testkit.runs import Runner

_RUNS = pytest.StashKey["Runner"]()


def pytest_configure(config: pytest.Config) -> None:
    """The marker of the plugin."""
    config.addinivalue_line(
        "markers",
        "mews(scenario=None, stack=None, images=None, unknown_images=None): what mews_cluster runs: a scenario's "
        "software, or systems by name; a file of images, and what other images do: fail or idle",
    )


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
    outside = "scenarios may name files outside their own folders"
    group.addoption("--mews-allow-outside", action="store_true", help=outside)
    parser.addini("mews_allow_outside", outside, type="bool", default=False)
    parser.addini("mews_images", "a file with images of yours, as images: of a scenario has them; from rootdir")
    parser.addini(
        "mews_unknown_images", "what other images do: fail, idle or container (mews_cluster: idle; mews_run: fail)"
    )


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
def _mews_cluster_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Software], ServedCluster]]:
    """Each is started when it is first asked for."""
    name = _available(request.config, served=True)
    from mews.harness.testkit.cluster import bring_up

    running: dict[Software, ServedCluster] = {}
    with contextlib.ExitStack() as ending:

        def server(software: Software) -> ServedCluster:
            if software not in running:
                # A scenario has its own hardware.
                hardware = _hardware(request.config) if software.scenario is None else None
                child, running[software] = bring_up(name, hardware, tmp_path_factory.mktemp("mews"), software=software)
                ending.callback(child.end)
            return running[software]

        yield server


@pytest.fixture
def mews_cluster(
    request: pytest.FixtureRequest, _mews_cluster_servers: Callable[[Software], ServedCluster]
) -> ServedCluster:
    """A running cluster without pods, its chassis and nodes as at the start."""
    cluster = _mews_cluster_servers(_software(request))
    cluster.reset()
    return cluster


def _read_images(file: Path) -> dict[str, Any]:
    from mews.harness.errors import BadInput
    from mews.harness.scenario.images import read_images

    try:
        return read_images(file)
    except BadInput as error:
        raise pytest.UsageError(str(error)) from error


def _software(request: pytest.FixtureRequest) -> Software:
    """What the test's marker says that the cluster runs.

    Raises pytest.UsageError for what no marker takes.
    """
    from mews.harness.testkit.cluster import Software

    marker = request.node.get_closest_marker("mews")
    given = {} if marker is None else dict(marker.kwargs)
    if (marker is not None and marker.args) or set(given) - {"scenario", "stack", "images", "unknown_images"}:
        raise pytest.UsageError("@pytest.mark.mews takes scenario=, stack=, images= and unknown_images= alone")
    if given.get("scenario") is not None:
        beside = request.path.parent / str(given["scenario"])
        given["scenario"] = str(beside if beside.exists() else given["scenario"])
    file, unknown = _images(request.config)
    if given.get("images") is not None:
        file = request.path.parent / str(given["images"])
    given["images"] = None if file is None else str(file)
    given["unknown_images"] = given.get("unknown_images") or unknown
    stack = given.get("stack")
    given["stack"] = stack if stack is None or isinstance(stack, str) else ",".join(stack) or "none"
    return Software(**given, allow_outside=_allow_outside(request.config))


def _images(config: pytest.Config) -> tuple[Path | None, str | None]:
    """What the ini file says of images.

    Raises pytest.UsageError.
    """
    file, unknown = str(config.getini("mews_images") or ""), str(config.getini("mews_unknown_images") or "")
    if unknown not in ("", "fail", "idle", "container"):
        raise pytest.UsageError(f"mews_unknown_images = {unknown}: must be fail, idle or container")
    if file and not (config.rootpath / file).is_file():
        raise pytest.UsageError(f"mews_images = {file}: no such file in {config.rootpath}")
    return config.rootpath / file if file else None, unknown or None


def _allow_outside(config: pytest.Config) -> bool:
    return bool(config.getoption("--mews-allow-outside") or config.getini("mews_allow_outside"))


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
    outside = _allow_outside(request.config)
    runner = Runner(name, request.path.parent, folder.absolute(), _mews_session, speed, outside)
    file, runner.unknown_images = _images(request.config)
    runner.images = {} if file is None else _read_images(file)
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
        # What pytest-html makes a link of in its own report; without it nobody reads this.
        links = [_link(path, item.config) for path in runner.reports]
        report.extras = [*getattr(report, "extras", ()), *links]


def _link(file: Path, config: pytest.Config) -> dict[str, Any]:
    """A file as ``pytest_html.extras.url`` has it: relative to the folder of pytest-html's report, so that both can be
    moved together."""
    report = getattr(config.option, "htmlpath", None)
    target = os.path.relpath(file, Path(str(report)).absolute().parent) if report else str(file)
    return {
        "name": f"mews: {file.parent.name}",
        "format_type": "url",
        "content": target,
        "mime_type": None,
        "extension": None,
    }


def _available(config: pytest.Config, *, served: bool = False) -> str:
    """The cluster that is asked for. Where it cannot be had the test is skipped; one that is served, or not embedded,
    needs the distribution's extra."""
    from mews.harness.errors import Lacks
    from mews.harness.extras import check_installed
    from mews.harness.options import check_available

    name = str(config.getoption("--mews-cluster"))
    try:
        if served or name != "embedded":
            check_installed("cluster")
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
