"""``mews up``."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from mews.harness import terminal
from mews.harness.backends import DEFAULT_BACKEND, backend_of
from mews.harness.catalogue.files import existing_file, shipped
from mews.harness.commands.claims import claim, clean_up
from mews.harness.commands.instances import MARK, born, forget
from mews.harness.commands.kubernetes_options import KubernetesOptions, with_kubernetes
from mews.harness.commands.logs import to_stderr
from mews.harness.commands.serving import check_serves, warn_insecure, what_is_open
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.leftovers import sweep
from mews.harness.options import RunOptions, ServingOptions, check_choice
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.images import UNKNOWN, read_images
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.harness.scenario.requirements import check_images
from mews.harness.scenario.system_needs import lacking
from mews.harness.termination import PATIENCE_S, TerminationGuard
from mews.harness.up import run_up
from mews.registry import looking_in

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario

_IN_DOCKER_S = 120.0
"""How long a cluster of containers may take to be deleted."""
_MOST_CHASSIS = 2
"""So many are printed, so that what is printed fits in eight lines."""


class UpImages(Struct, frozen=True):
    """The file of the user's own images, and what becomes of those that nothing names."""

    file: Path | None = None
    unknown: str | None = None


class UpPrograms(Struct, frozen=True):
    """Whose the default scheduler and the controllers are: ``ours``, ``real``; None: as the scenario has it."""

    scheduler: str | None = None
    controllers: str | None = None


class UpArguments(Struct, frozen=True):
    """The options as given."""

    hardware: Path | None
    folder: Path | None
    cluster: str
    scenario: Path | None
    speed: float
    dialect: str | None
    name: str
    serving: ServingOptions = field(default_factory=ServingOptions)
    stack: str | None = None
    allow_outside: bool = False
    images: UpImages = field(default_factory=UpImages)
    wait: Literal["nodes", "devices"] = "nodes"
    web: bool = False
    snapshot: Path | None = None
    metrics: str | None = None
    programs: UpPrograms = field(default_factory=UpPrograms)
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)


def up(arguments: UpArguments, *, as_json: bool) -> int:
    """Bring it up, stay until told to end.

    Raises BadInputError, RequirementError.
    """
    gc.disable()  # Until it is up: an eighth of the time went into looking through what imports have made, and keep.
    try:
        return _up(arguments, as_json=as_json)
    finally:
        gc.enable()


def _up(arguments: UpArguments, *, as_json: bool) -> int:
    backend = backend_of(arguments.cluster)
    if as_json and arguments.web:
        raise BadInputError("--json --web: only one of the two: --json prints only ready.json")
    if arguments.serving.port and not backend.chooses_api_port:
        port = arguments.serving.port
        raise BadInputError(f"--api-port {port}: --cluster {arguments.cluster} chooses its port itself")
    check_serves(arguments.serving.insecure, served=backend.emulates_nodes, cluster=arguments.cluster, time="wall")
    scenario, restored = _what_to_bring_up(arguments)
    if arguments.stack is not None:
        scenario = with_stack(scenario, arguments.stack)
    scenario = with_metrics(with_images(scenario, arguments.images), arguments.metrics)
    scenario = with_programs(scenario, arguments.programs, arguments.cluster)
    scenario = with_storage(with_kubernetes(scenario, arguments.kubernetes), arguments.cluster)
    _name_left_out(arguments.scenario, scenario, arguments.cluster)
    try:
        check_images(scenario)
    except ScenarioError as error:
        raise BadInputError(str(error)) from error
    check_programs(arguments.programs)
    if reason := lacking(scenario.stack.systems):
        raise RequirementError(reason)
    backend.check_available()  # Last: what was given wrong is as wrong on a machine without Docker.
    instance = claim(arguments.name, arguments.folder)
    sweep()
    options = RunOptions(
        arguments.cluster,
        "wall",
        arguments.speed,
        arguments.dialect,
        serving=arguments.serving,
        wait=arguments.wait,
        monitored=True,
    )
    os.environ[MARK] = instance.folder
    to_stderr()
    warn_insecure(what_is_open(backend), arguments.serving)

    reported = False

    def notify(ready: Mapping[str, Any]) -> None:
        nonlocal reported
        if not reported:
            _report(ready, arguments.name, as_json=as_json, web=arguments.web)
            gc.freeze()
            gc.set_threshold(20_000)  # a fifth of a command's: it stays up for days, and its memory is looked at
            gc.enable()
        elif not as_json:
            terminal.out(f"  devices announced after {ready['devices_s']:g} s\n")
            sys.stdout.flush()
        reported = True

    patience_s = _IN_DOCKER_S if backend.needs_session else PATIENCE_S
    guard = TerminationGuard(f"mews up --name {instance.name}", lambda: clean_up(instance), patience_s)
    try:
        with looking_in(scenario.folder), guard:
            asyncio.run(
                run_up(
                    scenario,
                    options,
                    Path(instance.folder),
                    notify,
                    guard=guard,
                    age_s=age_s,
                    name=instance.name,
                    page=_page,
                    restored=restored,
                )
            )
    except ScenarioError as error:
        raise BadInputError(str(error)) from error
    finally:
        forget(instance.name)
    return 0


def _name_left_out(file: Path | None, scenario: Scenario, cluster: str) -> None:
    """Name in a line what of a scenario a session does not play."""
    if file is None:
        return
    from mews.harness.scenario.accounts.account import in_words
    from mews.harness.scenario.accounts.sessions import left_out_of_session

    found = left_out_of_session(scenario, cluster)
    if found:
        terminal.err(f"{file}: not played: {in_words(found)}\n")


def _what_to_bring_up(given: UpArguments) -> tuple[Scenario, Mapping[str, Any] | None]:
    """Return the scenario, and the snapshot that is restored when it is up.

    Raises BadInputError.
    """
    if given.snapshot is None:
        return scenario_of(given.hardware, given.scenario, allow_outside=given.allow_outside), None
    others = (("--hardware", given.hardware), ("--scenario", given.scenario), ("--stack", given.stack))
    for name, value in others:
        if value is not None:
            raise BadInputError(
                f"--snapshot {given.snapshot} {name} {value}: only one of the two; a snapshot has its own"
            )

    from mews.harness.live.snapshot import read_snapshot
    from mews.harness.live.snapshot_file import load_snapshot

    try:
        document = load_snapshot(given.snapshot)
        return read_snapshot(document).as_scenario(), document
    except ValueError as error:
        raise BadInputError(f"--snapshot {error}") from error


def scenario_of(hardware: Path | None, scenario: Path | None, *, allow_outside: bool = False) -> Scenario:
    """Return the scenario whose hardware and stack are brought up: the given one, or an empty one on the given
    hardware; both are files, or names of shipped ones; ``allow_outside`` as for ``load_scenario``.

    Raises BadInputError.
    """
    if hardware is None and scenario is None:
        hardware = shipped("hardware", "demo")
    if hardware is not None:
        hardware = existing_file("hardware", hardware, "--hardware")
    sets = {} if hardware is None else {"hardware": str(hardware.absolute())}
    text = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: up}\nhardware: demo\n"
    try:
        return (
            load_scenario(existing_file("scenario", scenario, "--scenario"), sets, allow_outside=allow_outside)
            if scenario is not None
            else parse_scenario(text, Path("up"), sets)
        )
    except ScenarioError as error:
        raise BadInputError(str(error)) from error


def waited_for(word: str) -> Literal["nodes", "devices"]:
    """Return that of ``--wait``.

    Raises BadInputError.
    """
    check_choice("--wait", word, ("nodes", "devices"))
    return "nodes" if word == "nodes" else "devices"


def with_stack(scenario: Scenario, given: str) -> Scenario:
    """Return the scenario with these systems alone: names with commas, or ``none``. Of those that it has, the options
    stay.

    Raises BadInputError.
    """
    names = [] if given.strip() == "none" else [name.strip() for name in given.split(",")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInputError(f"--stack {given}: {twice} is listed twice")
    try:
        stack = scenario.stack.of(names)
    except ValueError as error:
        raise BadInputError(f"--stack {given}: {error}") from error
    return scenario.model_copy(update={"stack": stack})


def with_metrics(scenario: Scenario, given: str | None) -> Scenario:
    """Return the scenario with the metrics API on or off; None leaves it as it is.

    Raises BadInputError.
    """
    if given is None:
        return scenario
    check_choice("--metrics", given, ("on", "off"))
    return scenario.model_copy(update={"stack": scenario.stack.model_copy(update={"metrics": given})})


def with_storage(scenario: Scenario, cluster: str) -> Scenario:
    """Return the scenario with volumes for claims, unless it says what becomes of those: charts expect a default
    class."""
    if scenario.stack.storage is not None or cluster != DEFAULT_BACKEND:
        return scenario
    return scenario.model_copy(update={"stack": scenario.stack.model_copy(update={"storage": "folder"})})


_REAL = {"scheduler": "kube-scheduler", "controllers": "kube-controller-manager"}


def with_programs(scenario: Scenario, given: UpPrograms, cluster: str) -> Scenario:
    """Return the scenario with Kubernetes' own programs, or ours, in the places of scheduler and controllers.

    Raises BadInputError.
    """
    stack = scenario.stack
    for option, word in (("scheduler", given.scheduler), ("controllers", given.controllers)):
        if word is None:
            continue
        check_choice(f"--{option}", word, ("ours", "real"))
        if not backend_of(cluster).emulates_nodes:
            raise BadInputError(f"--{option} {word}: --cluster {cluster} runs its own")
        program = _REAL[option] if word == "real" else "ours"
        try:
            stack = stack.with_program(option, program)
        except ValueError as error:
            raise BadInputError(f"--{option} {word}: {error}") from error
    return scenario.model_copy(update={"stack": stack})


def check_programs(given: UpPrograms) -> None:
    """Raise RequirementError for a program that is asked for and not on this machine."""
    from mews.harness.clusters.programs.finding import HOW_PROGRAMS, find

    for option, word in (("scheduler", given.scheduler), ("controllers", given.controllers)):
        if word == "real" and find(_REAL[option]) is None:
            where = f"{_REAL[option]} is neither in KUBEBUILDER_ASSETS nor on PATH"
            raise RequirementError(f"--{option} real: {where}; {HOW_PROGRAMS.format(_REAL[option])}")


def with_images(scenario: Scenario, given: UpImages) -> Scenario:
    """Return the scenario with the images of a file, which come before its own. What nothing names runs idle where
    neither says otherwise: what is tried on a cluster that is up is somebody's chart, whose images nobody has
    described.

    Raises BadInputError.
    """
    if given.unknown is not None:
        check_choice("--unknown-images", given.unknown, UNKNOWN)
    images = scenario.images if given.file is None else {**scenario.images, **read_images(given.file)}
    unknown = given.unknown or scenario.unknown_images or "idle"
    return scenario.model_copy(update={"images": images, "unknown_images": unknown})


def age_s() -> float:
    """Return for how many seconds this process has been running."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(born(os.getpid())) / os.sysconf("SC_CLK_TCK")


def _devices(ready: Mapping[str, Any]) -> str:
    after_s = ready["devices_s"]
    return "; their devices follow" if after_s is None else f", devices announced after {after_s:g} s"


def shell_lines(nodes: Mapping[str, Any], named: str) -> list[str]:
    """Return how a shell sees the GPUs of a node, where any shows them."""
    shown = [name for name, node in nodes.items() if node["env"]]
    return [f'  see the GPUs of a node: eval "$(mews env{named} {shown[0]})"'] if shown else []


def chassis_lines(urls: Mapping[str, Mapping[str, str]], most: int) -> list[str]:
    """Return a line a chassis; of more than that the first."""
    lines = [
        f"  chassis {name}: {', '.join(f'{url} ({dialect})' for dialect, url in faces.items())}"
        for name, faces in urls.items()
    ]
    rest = len(lines) - most
    return lines if rest <= 0 else [*lines[:most], f"  and {rest} more chassis: see ready.json"]


def _page(name: str) -> tuple[str, str, str] | None:
    from mews.harness.report.live_page import live_file  # when somebody asks for it

    return live_file(name)


def _report(ready: Mapping[str, Any], instance: str, *, as_json: bool, web: bool) -> None:
    if as_json:
        text = json.dumps(ready)
    else:
        ends = "" if instance == "mews" else f" --name {instance}"
        parts = [
            f"up: {ready['api']}",
            f"  nodes Ready after {ready['ready_s']:g} s{_devices(ready)}",
            f"  kubectl --kubeconfig {ready['kubeconfig']} get nodes",
            *([f"  page: {ready['session']['url']}/#token={ready['session']['token']}"] if web else []),
            *chassis_lines(ready["chassis"], _MOST_CHASSIS - web),
            *shell_lines(ready["nodes"], ends),
            f"  ends with Ctrl-C or: mews down{ends}",
        ]
        text = "\n".join(parts)
    terminal.out(text + "\n")
    sys.stdout.flush()
