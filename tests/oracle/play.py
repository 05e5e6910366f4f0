"""Plays a scenario to its end whatever its checks say, with actions beside it, and keeps what the oracle found."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.invariants import Oracle, Violation
from mews.harness.journal import Line
from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.actions import Step
from mews.harness.scenario.driver import Driver
from mews.harness.scenario.errors import ScenarioError, StepFailedError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.runner import bounds_for
from mews.harness.scenario.step_context import StepContext
from mews.harness.scenario.steps import apply_objects, do
from mews.harness.scenario.trace import read_trace
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.resources import PODS
from mews.registry import looking_in
from tests.oracle.actions import Action

REFUSED = "refused"
"""The actor of lines that say what hardware refused."""
Draw = Callable[[Cluster], Sequence[Action]]
"""The actions of a run, once its cluster is there."""
Tamper = Callable[[Cluster], None]
"""Puts a wrong component in place of a right one: what the oracle must find."""
UP_WITHIN_S = 300.0
ENDED = "the run had ended"
"""Why an action was not done that was to come later."""
NOTHING = "it met no operation that it could strike"
"""Why a fault that was added did nothing."""
DOWN = "is down"
"""In the words of a refusal that a world may give: a fault is added to a chassis that would forget it."""
OF_HARDWARE = ("fault", "host-fault", "clear")
"""What hardware takes, whatever the state of the world, unless it is down."""


@dataclass(slots=True)
class Outcome:
    """What a run came to. ``unstruck``: the actions that were never done, each with why: the world refused them, or it
    had ended."""

    violations: list[Violation]
    crashes: list[Line]
    actions: Sequence[Action]
    lines: list[Line] = field(repr=False, default_factory=list)
    unstruck: list[tuple[Action, str]] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """How many actions could not be done in that world."""
        return sum(why not in (ENDED, NOTHING) for _, why in self.unstruck)

    @property
    def wrongly_refused(self) -> list[Line]:
        """The lines of refusals that no world may give: each fault is drawn for its hardware, which must take it."""
        return [line for line in self.lines if line.layer == "step" and line.actor == REFUSED]


def disturbed(scenario: Scenario) -> Scenario:
    """The scenario without the bounds that it sets: they hold for what it does itself, and those that follow from the
    configuration hold whatever else is done to it."""
    return scenario.model_copy(update={"bounds": {name: None for name, s in scenario.bounds.items() if s is None}})


def play(scenario: Scenario, seed: int, draw: Draw, *, tail_s: float, tamper: Tamper | None = None) -> Outcome:
    """Play it once in virtual time."""

    async def main() -> Outcome:
        with looking_in(scenario.folder):
            cluster = await open_cluster(scenario, seed=seed)
            try:
                return await _Play(scenario, cluster, draw(cluster), tail_s).to_the_end(tamper)
            finally:
                await cluster.close()

    log = logging.getLogger("mews")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        return run_virtual(main)
    finally:
        log.setLevel(level)  # other tests of this process read what is logged


class _Play:
    def __init__(self, scenario: Scenario, cluster: Cluster, actions: Sequence[Action], tail_s: float) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._actions = actions
        self._tail_s = tail_s
        self._tasks: list[asyncio.Task[None]] = []
        self._unstruck: dict[int, tuple[Action, str]] = {}
        loop = asyncio.get_running_loop()
        self._stage = StepContext(scenario, cluster, loop.time() + scenario.timeout, first_line=len(cluster.journal))

    async def to_the_end(self, tamper: Tamper | None) -> Outcome:
        scenario, cluster = self._scenario, self._cluster
        oracle = Oracle(cluster, bounds=bounds_for(disturbed(scenario), cluster), named=scenario.invariants)
        await oracle.start()
        if tamper is not None:
            tamper(cluster)
        try:
            await self._steps()
            await asyncio.sleep(self._tail_s)
            for step in scenario.finally_:
                with contextlib.suppress(StepFailedError, ScenarioError):
                    await do(self._stage, step)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._stage.driver is not None:
                await self._stage.driver.close()
            found = await oracle.finish()
        expected = [violation for violation in found if violation.invariant not in scenario.expects]
        crashes = list(cluster.journal.find("component", "crashed"))
        return Outcome(expected, crashes, self._actions, cluster.journal.lines(), self._not_done())

    def _not_done(self) -> list[tuple[Action, str]]:
        """The actions that were not done, and those faults that were there and had nothing to strike."""
        found = [self._unstruck[number] for number in sorted(self._unstruck)]
        fired = {(line.actor, line.fields["fault"]) for line in self._cluster.journal.find("fault", "fired")}
        added = self._cluster.journal.find("fault", "added", since=self._stage.first_line)
        left = [line for line in added if (line.actor, line.fields["fault"]) not in fired]
        for line in left:
            named = (
                one for one in self._actions if one.on in line.actor and one.given.get("kind") == line.fields["kind"]
            )
            found += [(action, NOTHING) for action in itertools.islice(named, 1)]
        return found

    async def _steps(self) -> None:
        scenario, workload = self._scenario, self._scenario.workload
        if workload is not None:
            jobs = read_trace(workload, str(scenario.path or scenario.name))
            template = workload.pod.pooling(scenario.stack.pooled)
            self._stage.driver = Driver(self._cluster, workload, jobs, scenario.name, template=template)
        await apply_objects(self._stage, scenario.objects)
        for number, step in enumerate(scenario.steps):
            self._begin(number)
            if step.name:
                self._stage.marks[step.name] = len(self._cluster.journal)
            with contextlib.suppress(StepFailedError, ScenarioError):
                await do(self._stage, step)

    def _begin(self, number: int) -> None:
        for place, action in enumerate(self._actions):
            if action.step == number:
                self._tasks.append(asyncio.create_task(self._later(place, action)))

    async def _later(self, place: int, action: Action) -> None:
        self._unstruck[place] = action, ENDED
        await asyncio.sleep(action.after_s)
        del self._unstruck[place]
        try:
            await self._do(action)
        except (ValueError, LookupError, ApiError, UnavailableError, StepFailedError, ScenarioError) as error:
            self._unstruck[place] = action, f"{type(error).__name__}: {error}"
            if action.do in OF_HARDWARE and DOWN not in str(error):
                self._refused(place, action, str(error))
        except Exception as error:  # noqa: BLE001 - any other exception is a bug of the component that raised it
            self._unstruck[place] = action, f"{type(error).__name__}: {error}"
            self._refused(place, action, self._unstruck[place][1])

    def _refused(self, place: int, action: Action, reason: str) -> None:
        self._cluster.journal.write("step", REFUSED, "failed", step=place, do=action.do, reason=reason)

    async def _until_up(self, component: str) -> None:
        """Whoever is down already is killed once it is back.

        Raises ValueError for one that stays down.
        """
        for _ in range(int(UP_WITHIN_S)):
            if component not in down(self._cluster):
                return
            await asyncio.sleep(1)
        raise ValueError(f"{component} stays down")

    async def _do(self, action: Action) -> None:
        cluster, given = self._cluster, action.given
        match action.do:
            case "fault":
                await cluster.hardware.fault(action.on, given)
            case "host-fault":
                await cluster.hardware.host_fault(action.on, given)
            case "clear":
                await cluster.hardware.clear()
            case "edit":
                await cluster.hardware.edit(action.on, given["device"], given["port"])
            case "kill":
                await self._until_up(action.on)
                await cluster.kill(action.on)
                await asyncio.sleep(given["down_s"])
                await cluster.start(action.on)
            case "create":
                await cluster.kube.create(PODS, a_pod(action.on, **given), namespace="default")
            case "apply":
                await apply_objects(self._stage, (given,))
            case "remove":
                version = "kubeflow.org/v1" if given["kind"] == "TFJob" else "v1"
                target = {"apiVersion": version, "kind": given["kind"], "name": action.on}
                await do(self._stage, Step.model_validate({"delete": target}))
            case "delete":
                await cluster.kube.delete(PODS, action.on, namespace="default")


def down(cluster: Cluster) -> set[str]:
    """The components that were killed and have not been started again."""
    dead: set[str] = set()
    for line in cluster.journal.find("component"):
        (dead.discard if line.event == "started" else dead.add)(line.actor)
    return dead


def a_pod(name: str, gpus: int, duration_s: float = 100000, node: str = "") -> dict[str, object]:
    """A pod of that many pooled GPUs."""
    limits = {"falcon.com/gpu": str(gpus)}
    spec = {
        "schedulerName": "kubecomp-scheduler",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": "mews/train", "resources": {"limits": limits}}],
        **({"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}),
    }
    return {"metadata": {"name": name, "annotations": {"mews.dev/duration-s": str(duration_s)}}, "spec": spec}
