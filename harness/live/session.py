"""A live session: a cluster that stays up, its journal, and what is done to it by hand."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from pydantic import ValidationError

from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.harness.invariants.oracle import Oracle
from mews.harness.journal import Line
from mews.harness.live.claim_sight import claim_sight
from mews.harness.live.explanation import ExplainedSight, PodExplanation, explain
from mews.harness.live.judging import SessionVerdict, waiting
from mews.harness.live.packing import PackedObjects
from mews.harness.live.recording import BY_STEPS, ObjectRecording, RecordedAction
from mews.harness.live.restoring import Restoration
from mews.harness.live.scenario_file import as_yaml, checks_of, recorded_scenario
from mews.harness.live.snapshot import read_snapshot, snapshot_document
from mews.harness.live.standing import StandingFault, StandingTroubles
from mews.harness.live.step_answer import StepAnswer
from mews.harness.ports.cluster import DEFAULT_SCHEDULER, ReachableCluster
from mews.harness.scenario.accounts.sessions import STEP
from mews.harness.scenario.actions import Step
from mews.harness.scenario.complaints import first_complaint
from mews.harness.scenario.errors import CapabilityError, ScenarioError, StepFailedError
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.known import KnownNames
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.performing import perform
from mews.harness.scenario.reading import evidence_text
from mews.harness.scenario.references import of_steps
from mews.harness.scenario.runner import bounds_for
from mews.harness.scenario.step_context import StepContext
from mews.harness.scenario.yamlfile import dotted
from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, name_of, node_name_of
from mews.kube.api.resources import (
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
)
from mews.kube.deviceplugin.port import PluginError, PodDevices

_LOOKS_EVERY_S = 5.0
"""A session may have thousands of pods, whose laws are judged at every change of any."""

READING = ("get", "logs")
"""Steps that only read: answered, and no part of a recording."""

ALONE = ("chassis", "fault", "telemetry", "kill", "start", "restart")
"""Steps that change the chassis or the session's own components, one after another. Any other may last for minutes
until the cluster or a host has done what it waits for; those of other users need not stand in line behind it."""

OF_THE_SESSION = ("kind", "object", "component", "kill", "start", "restart", "since")
"""What only the session itself knows: kinds that users brought, its components, the steps before."""


class LiveSession:
    """What ``mews status``, ``fault``, ``explain`` and the live page ask. ``actor`` is what the journal calls it."""

    def __init__(self, name: str, scenario: Scenario, cluster: ReachableCluster) -> None:
        self.name = name
        self.scenario = scenario
        self.cluster = cluster
        self.measures = cluster.measures
        self.journal = cluster.journal
        self.standing = StandingTroubles()
        self._stage = StepContext(scenario, cluster, math.inf, first_line=len(cluster.journal), field_manager=BY_STEPS)
        self._steps = 0
        self._performing = asyncio.Lock()
        self._made: dict[str, float] = {}
        self._inserted: set[str] = set()
        self._recording = ObjectRecording(
            cluster.kube, lambda: self.journal.elapsed_s, ignored=tuple(self._own_namespaces())
        )
        self._watching: asyncio.Task[None] | None = None
        self._oracle = Oracle(
            cluster,
            bounds=bounds_for(scenario, cluster),
            named=scenario.invariants,
            looks_every_s=_LOOKS_EVERY_S,
            remember=PackedObjects,
        )
        self._began_s: float | None = None
        for line in self.journal.lines():
            self._take(line)
        self._stop = self.journal.listen(self._take)

    async def start(self) -> None:
        """Watch from now on what users do; what is there already is the cluster's own."""
        self._watching = asyncio.create_task(self._recording.run(), name="recording")
        await self._recording.synced()
        await self._oracle.start()

    async def watched(self) -> None:
        """Wait until what users do is watched."""
        await self._recording.synced()

    def announced(self) -> None:
        """The devices are there: a recording begins here."""
        self._began_s = self.journal.elapsed_s

    async def close(self) -> None:
        """Hear no more."""
        self._stop()
        await self._oracle.stop()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def _own_namespaces(self) -> Iterator[str]:
        for each in self.cluster.systems:
            name = each.system.namespace(each.configuration)
            if name:
                yield name

    def _take(self, line: Line) -> None:
        self.standing.take(line)
        if (line.layer, line.event) == ("chassis", "inserted"):
            self._inserted |= {str(line.fields["device"]), str(line.fields["gpuid"])}
        if line.layer == "api" and line.actor.startswith("pod/"):
            if line.event == "created":
                self._made[line.actor] = line.t
            elif line.event == "deleted":
                self._made.pop(line.actor, None)

    async def perform(self, given: Mapping[str, Any]) -> StepAnswer:
        """Do one step, as a scenario has them.

        Raises ValueError, in one line, for what is no step, or names something that there is not.
        """
        step = step_of(given)
        self._check_names(given)
        async with self._performing if _is_alone(step) else nullcontext():
            return await self._answered(given)

    def _check_names(self, given: Mapping[str, Any]) -> None:
        """Refuse at once what names something that the hardware lacks: nobody waits for it in vain."""
        known = KnownNames(self.scenario, hardware_of(self.scenario), {"steps": [given]})
        for place, value, wrong in of_steps(known):
            if place[-1] not in OF_THE_SESSION and not self._is_inserted(value):
                raise ValueError(f"{dotted(place[2:])}: {value!r}: {wrong}")

    def _is_inserted(self, value: Any) -> bool:
        """Return whether that is a device, or a fault of one, that was put into a slot since the hardware file was
        read."""
        device = value.get("device") if isinstance(value, Mapping) else value
        return isinstance(device, str) and device in self._inserted

    async def _do(self, given: Mapping[str, Any]) -> str:
        return (await self._answered(given)).reason

    async def _answered(self, given: Mapping[str, Any]) -> StepAnswer:
        step = step_of(given)
        self._steps += 1
        begun_s = self.journal.elapsed_s
        self._recording.asked(given)
        try:
            result = await perform(self._stage, step, number=self._steps, actor=self.name)
        except StepFailedError as error:
            return StepAnswer(error.failure.reason)
        except ScenarioError as error:
            self.journal.write("step", self.name, "failed", step=self._steps, do=step.action, reason=str(error))
            raise
        if step.action in READING:
            return StepAnswer(text=evidence_text(result))
        self._recording.actions.append(RecordedAction(begun_s, dict(given)))
        return StepAnswer()

    async def snapshot(self, name: str) -> dict[str, Any]:
        """Return the session now, as a file from which ``restore`` makes it again.

        Raises ValueError where that cannot be.
        """
        async with self._performing:
            hardware, missing = self.cluster.hardware, []
            hosts: dict[str, dict[str, Any]] = {}
            try:
                hosts = await hardware.hosts()
            except CapabilityError as error:
                missing.append(f"what operators changed on hosts: {error}")
            if self.standing.operations:
                missing.append(f"operations under way on the chassis: {len(self.standing.operations)}")
            return snapshot_document(
                name,
                self.cluster.name,
                self.scenario,
                objects=self._recording.objects(),
                nodes=self._recording.nodes(),
                table=await hardware.table(),
                hosts=hosts,
                telemetry=await hardware.telemetry(),
                faults=await self._listed(),
                down=[name for name, line in self.standing.down.items() if line.event == "killed"],
                left_out=missing,
            )

    async def restore(self, document: Any) -> list[str]:
        """Make the session as the snapshot has it: what of it is not as it was.

        Raises ValueError, in one line and before anything is done, for a snapshot that cannot be restored here.
        """
        snapshot = read_snapshot(document)
        async with self._performing:
            restoration = Restoration(snapshot, self.scenario, self.cluster, self._recording, self.standing, self._do)
            await restoration.check(step_of)
            return await restoration.run()

    def go_on(self) -> None:
        """Raise ValueError: it does not stand still."""
        raise ValueError("this session is not stopped; only `mews run --break-at` stops")

    async def explain(self, namespace: str, name: str) -> PodExplanation:
        """Return why that pod waits, or where its devices are.

        Raises ApiError, UnavailableError.
        """
        kube = self.cluster.kube
        pod: Object | None = None
        with suppress(NotFoundError):
            pod = await kube.get(PODS, name, namespace=namespace)
        nodes, pods = (await kube.list(NODES)).items, (await kube.list(PODS)).items
        events = (await kube.list(EVENTS, namespace=namespace)).items
        return explain(
            ExplainedSight(
                namespace=namespace,
                name=name,
                pod=pod,
                pods=pods,
                nodes=nodes,
                events=sorted(events, key=_latest),
                schedulers=self.schedulers(),
                extenders=self.extenders(),
                workers=dict(self._workers()),
                namespaces=[name_of(each) for each in (await kube.list(NAMESPACES)).items],
                faults=await self.faults(),
                pools=[pool for each in self.cluster.systems if (pool := each.pooled) is not None],
                table=await self.cluster.hardware.table(),
                held=None if pod is None else await self._held(pod),
                since_s=self._made.get(f"pod/{namespace}/{name}"),
                standing=self.standing,
                **await claim_sight(kube, self.scenario, pod),
            )
        )

    def record(self, name: str) -> str:
        """Return what was done so far as a scenario file of that name, which replays it.

        Raises ValueError where that cannot be.
        """
        pools = [pool for each in self.cluster.systems if (pool := each.pooled) is not None]
        now_s, actions = self.journal.elapsed_s, self._recording.actions
        document = recorded_scenario(
            name,
            self.scenario,
            actions,
            began_s=min([now_s if self._began_s is None else self._began_s, *(action.t for action in actions)]),
            ended_s=now_s,
            speed=self.cluster.pace.speed,
            ending=list(checks_of(self._recording.objects(), pools)),
        )
        return as_yaml(document, f"{len(actions)} actions in {now_s:.0f} s on --cluster {self.cluster.name}")

    async def judged(self) -> SessionVerdict:
        """Return what it has come to so far.

        Raises ApiError, UnavailableError.
        """
        kube = self.cluster.kube
        violations = [each.as_dict() for each in await self._oracle.conclude()]
        made = [obj for resource, obj in self._recording.objects() if resource.kind != "Pod"]
        nodes, pods = (await kube.list(NODES)).items, (await kube.list(PODS)).items
        others = [*({"kind": "Pod", **pod} for pod in pods), *made]
        down = (
            f"component {name} is down: {line.event} at {line.t:.1f} s" for name, line in self.standing.down.items()
        )
        found = (*sorted(down), *waiting(nodes, others, self.cluster.clock.now()))
        return SessionVerdict(tuple(violations), found, self.journal.elapsed_s)

    async def _held(self, pod: Object) -> PodDevices | None:
        node = node_name_of(pod)
        hosts = {self.cluster.node_of(host.name): host.name for host in self._hosts()} if node else {}
        if node not in hosts:
            return None
        with suppress(PluginError):
            for each in await self.cluster.pod_resources(hosts[node]):
                if (each.namespace, each.name) == (pod["metadata"]["namespace"], name_of(pod)):
                    return each
        return None

    def _hosts(self) -> Any:
        return hardware_of(self.scenario).hosts

    def schedulers(self) -> dict[str, str]:
        """SchedulerName -> the component that answers to it."""
        found = {DEFAULT_SCHEDULER: DEFAULT_SCHEDULER} if self.scenario.stack.default_scheduler is not None else {}
        for each in self.cluster.systems:
            for name, component in each.components():
                if component.scheduler is not None:
                    found[component.scheduler(each.configuration)] = name
        return found

    def extenders(self) -> dict[str, Sequence[str]]:
        """Components that the default scheduler asks -> the resources that it asks them about; none: about all pods."""
        found: dict[str, Sequence[str]] = {}
        for each in self.cluster.systems:
            asked = {
                one.service: one.config.get("managedResources") for one in each.system.extenders(each.configuration)
            }
            for name, component in each.components():
                if component.service in asked:
                    managed: Any = asked[component.service] or ()
                    found[name] = [str(one["name"]) for one in managed]
        return found

    def _workers(self) -> Iterator[tuple[str, str]]:
        for each in self.cluster.systems:
            resource = "" if each.pooled is None else each.pooled.resource
            for name, _ in each.components():
                yield name, resource

    async def hardware(self) -> dict[str, Any]:
        """``{"table", "hosts", "telemetry"}`` as ``HardwareControl`` has them."""
        hardware = self.cluster.hardware
        return {
            "table": await hardware.table(),
            "hosts": await hardware.hosts(),
            "telemetry": await hardware.telemetry(),
        }

    async def status(self) -> dict[str, Any]:
        """Return what is up, what is down, what is wrong: for ``mews status``."""
        kube, problem = self.cluster.kube, ""
        nodes: list[Object] = []
        pods: list[Object] = []
        try:
            nodes, pods = (await kube.list(NODES)).items, (await kube.list(PODS)).items
        except (ApiError, UnavailableError) as error:
            problem = str(error)
        phases: dict[str, int] = {}
        for pod in pods:
            phase = (pod.get("status") or {}).get("phase") or "Pending"
            phases[phase] = phases.get(phase, 0) + 1
        table = await self.cluster.hardware.table()
        return {
            **self.about(),
            "api": problem or "answers",
            "t": round(self.journal.elapsed_s, 3),
            "nodes": {name_of(node): _readiness(node) for node in nodes},
            "pods": phases,
            "devices": {chassis: _places(rows) for chassis, rows in table.items()},
            "down": {name: f"{line.event} at {line.t:.1f} s" for name, line in sorted(self.standing.down.items())},
            "active_faults": [fault.as_dict() for fault in await self.faults() if not fault.ended],
            "operations": len(self.standing.operations),
        }

    async def faults(self) -> list[StandingFault]:
        """Return those that were added and not cleared, as the hardware has them now; those that have ended say so."""
        listed: dict[tuple[str, str], Mapping[str, Any]] = {}
        with suppress(OSError, ValueError, RuntimeError):  # what is down cannot say how often it was struck
            for owner, found in (await self._listed()).items():
                listed |= {(owner, str(each["fault"])): each for each in found}
        return [fault.seen(listed.get(key, {})) for key, fault in self.standing.faults.items()]

    async def _listed(self) -> dict[str, list[dict[str, Any]]]:
        """Owner -> the faults in place there, as whoever has them lists them."""
        api_faults = self.cluster.api_faults
        return {**({} if api_faults is None else api_faults.listed()), **await self.cluster.hardware.faults()}

    def about(self) -> dict[str, Any]:
        """Return what it is, and what can be done to it."""
        from mews.emulator.host.faults.registry import HOST_FAULTS
        from mews.harness.api_faults.registry import API_FAULTS

        return {
            "name": self.name,
            "cluster": self.cluster.name,
            "seed": self.scenario.seed,
            "speed": self.cluster.pace.speed,
            "dialect": self.cluster.dialect,
            "systems": [each.system.name for each in self.cluster.systems],
            "components": list(self.cluster.components()),
            "chassis": sorted(
                name.partition("/")[2] for name in self.cluster.components() if name.startswith("chassis/")
            ),
            "hosts": [host.name for host in self._hosts()],
            "faults": {
                "chassis": sorted(CHASSIS_FAULTS.names()),
                "host": sorted(HOST_FAULTS.names()),
                "component": sorted(API_FAULTS.names()),
            },
        }


def step_of(given: Mapping[str, Any]) -> Step:
    """Return the step of a JSON object.

    Raises ValueError, in one line.
    """
    try:
        step = Step.model_validate(dict(given))
    except ValidationError as error:
        place, text = first_complaint(error)
        raise ValueError(f"{place or 'step'}: {text}") from None
    refused = STEP.refused(step)
    if refused:
        raise ValueError(refused[0].text)
    return step


def _latest(event: Object) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or "")


def _readiness(node: Object) -> str:
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return "Ready" if condition.get("status") == "True" else f"NotReady ({condition.get('reason', '')})"
    return "NotReady"


def _places(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Host (``free``) -> how many devices."""
    found: dict[str, int] = {}
    for row in rows.values():
        place = str(row.get("host") or ("free" if row.get("port") is None else f"port {row['port']}"))
        found[place] = found.get(place, 0) + 1
    return dict(sorted(found.items()))


def _is_alone(step: Step) -> bool:
    """Return whether the step goes one at a time; one that kills at a journal line waits for that line first."""
    component = step.kill or step.restart
    return step.action in ALONE and (component is None or component.at is None)
