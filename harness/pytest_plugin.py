"""pytest plugin ``mews``: chassis, hosts, a cluster, scenarios as fixtures.

- ``mews_chassis``: chassis in a separate process (``.urls``, ``.requests``, ``.table()``, ``.fault(…)`` …).
- ``mews_hosts``: hosts with their files (sysfs, NVML) and chassis, without Kubernetes.
- ``mews_cluster``: a cluster with its chassis for unmodified clients (``.kubeconfig``, ``.apply(…)``, ``.wait(…)`` …).
- ``mews_run(path, seed=…, **overrides)``: runs a scenario and returns its result.
- ``mews_fuzz(path, budget=…, corpus=…, **overrides)``: searches a scenario for faults that break a law.

``@pytest.mark.mews(hardware=…, stack=…, dialect=…, tls=…, speed=…)`` chooses what they serve. Its defaults are the
options ``--mews-hardware`` and so on, then the ini options ``mews_hardware`` and so on
(``mews.harness.testkit.settings`` lists all). Hardware and scenarios are files, looked for next to the test first, or
names of included files. Of nested markers the nearest counts, word by word; ``scenario``, ``stack``, ``images`` and
``unknown_images`` belong together.

Servers are started once per session and choice (per worker under xdist, on free ports) and reset before each test.
What they had when a test failed is kept below ``--mews-artefacts``. All fixtures are synchronous and work where an
event loop runs already. Importing this module imports nothing but pytest.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.testkit.chassis import Chassis
    from mews.harness.testkit.cluster import ServedCluster
    from mews.harness.testkit.fuzzing import Fuzzer
    from mews.harness.testkit.hosts import RunningHosts
    from mews.harness.testkit.runs import Runner
    from mews.harness.testkit.settings import Settings


class KeptService(Protocol):
    """What a fixture served, and can be kept."""

    def keep(self, folder: Path) -> None:
        """Write what there is into a folder. Raises OSError, ValueError."""
        ...


_RUNS = pytest.StashKey["Runner"]()
_SERVED = pytest.StashKey[dict[str, KeptService]]()
_SETTINGS = pytest.StashKey["Settings"]()

_TOGETHER = ("scenario", "stack", "images", "unknown_images")
"""Words of the marker of which one alone says little: the nearest marker that has any of them has them all."""
_OPTIONS = ("hardware", "stack", "kubernetes", "dialect", "tls", "speed")
_TAKEN = {
    "mews_chassis": ("hardware", "dialect", "tls", "speed"),
    "mews_hosts": ("hardware", "dialect", "tls", "speed"),
    "mews_cluster": (*_TOGETHER, "hardware", "kubernetes", "dialect", "tls", "speed"),
    "mews_run": ("hardware", "kubernetes", "dialect", "tls", "speed", "images", "unknown_images"),
}
"""What of the marker each fixture takes."""


def pytest_configure(config: pytest.Config) -> None:
    """The marker of the plugin, and whether options and ini options make sense."""
    config.addinivalue_line(
        "markers",
        "mews(hardware=None, scenario=None, stack=None, kubernetes=None, dialect=None, tls=None, speed=None, "
        "images=None, unknown_images=None): choose what the fixtures of mews serve. Hardware is a file or an included "
        "name, scenario gives the software, stack names systems, kubernetes a release. "
        "Others: dialect: that of the chassis; tls: False for plain HTTP; speed: emulated seconds per second. "
        "Images: a file of images; unknown_images: how other images run.",
    )
    given = {f"--mews-{name}": config.getoption(f"--mews-{name}") for name in _OPTIONS}
    ini = {f"mews_{name}": str(config.getini(f"mews_{name}") or "") or None for name in _OPTIONS}
    if not any(value is not None for value in (*given.values(), *ini.values())):
        return
    from mews.harness.errors import BadInputError
    from mews.harness.testkit.settings import Settings, merged, settings_of

    chosen = [Settings()]
    for source, folders in ((given, [config.invocation_params.dir]), (ini, [config.rootpath])):
        for option, value in source.items():
            name = option.replace("--mews-", "").removeprefix("mews_")
            try:
                chosen.append(settings_of({name: value}, folders))
            except BadInputError as error:
                equals = "" if option.startswith("--") else " ="
                raise pytest.UsageError(f"{option}{equals} {value}: {str(error).partition(': ')[2]}") from None
    config.stash[_SETTINGS] = merged(*chosen)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the plugin."""
    from mews.harness.backends import BACKENDS, DEFAULT_BACKEND

    group = parser.getgroup("mews", "mews: emulated GPU pools and clusters")
    group.addoption(
        "--mews-cluster", choices=tuple(BACKENDS), default=DEFAULT_BACKEND, help="run scenarios on this cluster"
    )
    chosen = {
        "hardware": ("FILE|NAME", "serve this hardware: a file, or the name of an included one"),
        "stack": ("NAME[,NAME]|none", "run these systems in mews_cluster"),
        "kubernetes": ("RELEASE", "run this release of Kubernetes, such as 1.36 (default: 1.34)"),
        "dialect": ("NAME", "speak this dialect to the chassis"),
        "tls": ("yes|no", "use TLS and require a token (default: yes)"),
        "speed": ("N", "pass this many emulated seconds per second (default: 1; mews_cluster: 10)"),
    }
    for name, (shown, text) in chosen.items():
        group.addoption(f"--mews-{name}", metavar=shown, default=None, help=text)
        parser.addini(f"mews_{name}", f"{text}; --mews-{name} takes precedence")
    group.addoption(
        "--mews-artefacts",
        metavar="DIR",
        default="mews-artefacts",
        help="keep artefacts of failed tests in this folder",
    )
    outside = "let scenarios name files outside their folders"
    group.addoption("--mews-allow-outside", action="store_true", help=outside)
    parser.addini("mews_allow_outside", outside, type="bool", default=False)
    parser.addini(
        "mews_images", "read your images from this file, relative to rootdir, in the format of a scenario's images"
    )
    parser.addini(
        "mews_unknown_images", "what other images do: fail, idle or container (mews_cluster: idle; mews_run: fail)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that no fixture can make sense of fails its test before anything is started for it."""
    used = [name for name in _TAKEN if name in getattr(item, "fixturenames", ())]
    if used:
        _check_marker(item, used)


def _check_marker(item: pytest.Item, used: Sequence[str]) -> None:
    from mews.harness.errors import BadInputError
    from mews.harness.testkit.settings import settings_of

    taken = tuple(dict.fromkeys(word for name in used for word in _TAKEN[name]))
    for marker in item.iter_markers("mews"):
        if marker.args:
            _refuse(item, f"@pytest.mark.mews({marker.args[0]!r}): takes words with values alone, such as stack='none'")
        wrong = ""
        try:
            settings_of(marker.kwargs, [item.path.parent])
        except BadInputError as error:
            wrong = str(error)
        if wrong:  # not while it is handled: pytest would show the one as the cause of the other
            name, _, rest = wrong.partition(": ")
            _refuse(item, f"@pytest.mark.mews({name}): {rest}")
    for marker in item.own_markers:
        for word in [word for word in marker.kwargs if marker.name == "mews" and word not in taken]:
            text = f"no fixture of this test takes it: {', '.join(used)} {'take' if used[1:] else 'takes'} "
            _refuse(item, f"@pytest.mark.mews({word}={marker.kwargs[word]!r}): {text}{', '.join(taken)}")


def _refuse(item: pytest.Item, text: str) -> None:
    __tracebackhide__ = True
    pytest.fail(f"{item.nodeid}: {text}", pytrace=False)


def _settings(request: pytest.FixtureRequest, fixture: str) -> Settings:
    """What the test's markers, the options and the ini file have chosen for a fixture.

    Raises pytest.UsageError for ini options that make no sense.
    """
    from mews.harness.testkit.settings import Settings, merged, settings_of

    item, config, taken = request.node, request.config, _TAKEN[fixture]
    marked: dict[str, Any] = {}
    for marker in item.iter_markers("mews"):
        group_open = not any(word in marked for word in _TOGETHER)
        for word, value in marker.kwargs.items():
            if word in taken and word not in marked and (word not in _TOGETHER or group_open):
                marked[word] = value
    file, unknown = _images(config)
    ini = {"images": file, "unknown_images": unknown} if "images" in taken else {}
    folders = [request.path.parent]
    chosen = [settings_of(marked, folders), settings_of(ini)]
    given = config.stash.get(_SETTINGS, Settings())
    # A scenario has its own hardware and stack, which the test's marker alone may replace.
    own = ("hardware", "stack") if chosen[0].scenario is not None else ()
    chosen.append(settings_of({word: getattr(given, word) for word in taken if word not in own}))
    return merged(*chosen, Settings(allow_outside=_allow_outside(config) and fixture == "mews_cluster"))


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


def _kept(request: pytest.FixtureRequest, name: str, served: KeptService) -> None:
    """Have it kept if the test fails."""
    request.node.stash.setdefault(_SERVED, {})[name] = served


@pytest.fixture(scope="session")
def _mews_chassis_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Settings], Chassis]]:
    """Each is started when it is first asked for."""
    from mews.harness.testkit.chassis import serve_chassis

    running: dict[Settings, Chassis] = {}
    with contextlib.ExitStack() as ending:

        def server(settings: Settings) -> Chassis:
            __tracebackhide__ = True
            if settings not in running:
                child, running[settings] = serve_chassis(settings, tmp_path_factory.mktemp("mews-chassis"))
                ending.callback(child.end)
            return running[settings]

        yield server


@pytest.fixture
def mews_chassis(request: pytest.FixtureRequest, _mews_chassis_servers: Callable[[Settings], Chassis]) -> Chassis:
    """Running chassis, their table, faults and operations as at the start, and no requests yet."""
    __tracebackhide__ = True
    chassis = _mews_chassis_servers(_settings(request, "mews_chassis"))
    chassis.reset()
    _kept(request, "chassis", chassis)
    return chassis


@pytest.fixture(scope="session")
def _mews_hosts_servers() -> Iterator[Callable[[Settings], RunningHosts]]:
    """Each is started when it is first asked for."""
    from mews.harness.testkit.hosts import serve_hosts

    running: dict[Settings, RunningHosts] = {}
    with contextlib.ExitStack() as ending:

        def server(settings: Settings) -> RunningHosts:
            __tracebackhide__ = True
            if settings not in running:
                running[settings] = ending.enter_context(serve_hosts(settings))
            return running[settings]

        yield server


@pytest.fixture
def mews_hosts(request: pytest.FixtureRequest, _mews_hosts_servers: Callable[[Settings], RunningHosts]) -> RunningHosts:
    """Running hosts by their names, with their chassis, all as at the start."""
    __tracebackhide__ = True
    hosts = _mews_hosts_servers(_settings(request, "mews_hosts"))
    hosts.reset()
    _kept(request, "hosts", hosts)
    return hosts


@pytest.fixture(scope="session")
def _mews_cluster_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Settings], ServedCluster]]:
    """Each is started when it is first asked for."""
    name = _available(request.config, served=True)
    from mews.harness.testkit.cluster import bring_up

    running: dict[Settings, ServedCluster] = {}
    with contextlib.ExitStack() as ending:

        def server(settings: Settings) -> ServedCluster:
            __tracebackhide__ = True
            if settings not in running:
                child, running[settings] = bring_up(name, settings, tmp_path_factory.mktemp("mews"))
                ending.callback(child.end)
            return running[settings]

        yield server


@pytest.fixture
def mews_cluster(
    request: pytest.FixtureRequest, _mews_cluster_servers: Callable[[Settings], ServedCluster]
) -> ServedCluster:
    """A running cluster without pods, its chassis and nodes as at the start."""
    __tracebackhide__ = True
    cluster = _mews_cluster_servers(_settings(request, "mews_cluster"))
    cluster.reset()
    _kept(request, "cluster", cluster)
    return cluster


def _read_images(file: Path) -> Mapping[str, Any]:
    from mews.harness.errors import BadInputError
    from mews.harness.scenario.images import read_images

    try:
        return read_images(file)
    except BadInputError as error:
        raise pytest.UsageError(str(error)) from error


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

    chosen = _settings(request, "mews_run")
    runner = Runner(
        name,
        request.path.parent,
        _artefacts(request.node),
        _mews_session,
        chosen.speed or 1.0,
        _allow_outside(request.config),
        hardware=chosen.hardware,
        dialect=chosen.dialect,
        insecure=chosen.tls is False,
    )
    runner.unknown_images = chosen.unknown_images
    runner.kubernetes = chosen.kubernetes
    runner.images = {} if chosen.images is None else _read_images(Path(chosen.images))
    request.node.stash[_RUNS] = runner
    return runner


@pytest.fixture
def mews_fuzz(request: pytest.FixtureRequest) -> Fuzzer:
    """Searches scenarios in virtual time; see ``mews.harness.testkit.fuzzing.Fuzzer``."""
    from mews.harness.testkit.fuzzing import Fuzzer

    return Fuzzer(request.path.parent, _artefacts(request.node) / "fuzz", _allow_outside(request.config))


def _artefacts(item: pytest.Item) -> Path:
    folder = Path(item.config.getoption("--mews-artefacts")) / re.sub(r"[^\w.-]+", "-", item.nodeid)
    return folder.absolute()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failed test tells how its scenarios went and where its artefacts are."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.when == "teardown" or not report.failed:
        return
    lines, reports = [], []
    runner = item.stash.get(_RUNS, None)
    if runner is not None and runner.runs:
        lines += runner.keep()
        reports += runner.reports
    for name, served in item.stash.get(_SERVED, {}).items():
        folder = _artefacts(item) / name
        try:
            served.keep(folder)
        except Exception as error:  # noqa: BLE001 - whatever it was that broke the server, the test's own failure is shown
            lines.append(f"artefacts of {name}: {type(error).__name__}: {error}")
            continue
        lines.append(f"artefacts of {name}: {folder}")
        reports.append(folder / "report.html")
    if lines:
        report.sections.append(("mews", "\n".join(lines)))
        # What pytest-html makes a link of in its own report; without it nobody reads this.
        links = [_link(path, item.config) for path in reports]
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
    from mews.harness.errors import RequirementError
    from mews.harness.extras import check_installed
    from mews.harness.options import check_available

    name = str(config.getoption("--mews-cluster"))
    try:
        if served or name != "embedded":
            check_installed("cluster")
        check_available(name)
    except RequirementError as error:
        pytest.skip(str(error))
    return name
