"""Doing a step: a function per action, over the Cluster protocol only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import groupby
from typing import Any

from mews.harness.journal import Line
from mews.harness.ports.telemetry import set_values
from mews.harness.scenario.actions import ComponentAction, Step
from mews.harness.scenario.checks import look
from mews.harness.scenario.errors import Failure, ScenarioError, StepFailedError
from mews.harness.scenario.fault_action import FaultAction
from mews.harness.scenario.kinds import complete, resource_of
from mews.harness.scenario.match import match, show
from mews.harness.scenario.reading import get, logs, looked_at
from mews.harness.scenario.script import run_script
from mews.harness.scenario.step_context import Finding, StepContext
from mews.harness.scenario.waiting import hold, now, until
from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.client.port import DeleteOptions, KubeApi, Patch
from mews.names import must_be

_PATCHES = {"merge": Patch.MERGE, "strategic": Patch.STRATEGIC, "json": Patch.JSON}


async def do(stage: StepContext, step: Step) -> Any:
    """Do one step; what it came to, None for most.

    Raises StepFailedError, or ScenarioError where the step names something that there is not.
    """
    try:
        if step.given is not None:
            await step.given.kind.run(stage, step.given.options, _timeout_s(stage, step))
            return None
        return await _STEPS[step.action](stage, step)
    except (ApiError, UnavailableError) as error:
        raise StepFailedError(Failure(f"{step.action} to be accepted", str(error))) from error


async def apply_objects(stage: StepContext, objects: Any) -> list[Object]:
    """Create objects, or merge them into what is there; as they are then. Those of one kind in a row are looked up
    first, so that they come as close upon each other as the API lets them."""
    kube, made = stage.cluster.kube, list[Object]()
    for (kind, version), group in groupby(objects, lambda given: (given["kind"], given.get("apiVersion", ""))):
        resource = await resource_of(kube, kind, version)
        found = [(obj, await _is_there(kube, resource, obj)) for obj in (complete(given, resource) for given in group)]
        for obj, there in found:
            name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
            manager = stage.field_manager
            if there:
                new = await kube.patch(
                    resource, name, obj, kind=Patch.MERGE, namespace=namespace, field_manager=manager
                )
            else:
                new = await kube.create(resource, obj, namespace=namespace, field_manager=manager)
            made.append(new)
    return made


async def _is_there(kube: KubeApi, resource: Resource, obj: Object) -> bool:
    try:
        await kube.get(resource, obj["metadata"]["name"], namespace=obj["metadata"].get("namespace"))
    except NotFoundError:
        return False
    return True


def _timeout_s(stage: StepContext, step: Step) -> float:
    return step.timeout if step.timeout is not None else stage.scenario.step_timeout


def _one_or_all(objects: list[Object]) -> Any:
    return objects[0] if len(objects) == 1 else {"items": objects}


async def _apply(stage: StepContext, step: Step) -> Any:
    return _one_or_all(await apply_objects(stage, step.apply))


async def _create(stage: StepContext, step: Step) -> Any:
    made: list[Object] = []
    for given in step.create or ():
        resource = await resource_of(stage.cluster.kube, given["kind"], given.get("apiVersion", ""))
        obj = complete(given, resource)
        namespace = obj["metadata"].get("namespace")
        made.append(
            await stage.cluster.kube.create(resource, obj, namespace=namespace, field_manager=stage.field_manager)
        )
    return _one_or_all(made)


async def _delete(stage: StepContext, step: Step) -> None:
    action = step.delete
    assert action is not None
    kube = stage.cluster.kube
    resource = await resource_of(kube, action.kind, action.api_version)
    namespace = action.namespace if resource.namespaced else None
    about = "/".join(filter(None, (resource.kind.lower(), namespace, action.name)))
    try:
        options = DeleteOptions(grace_period_s=action.grace_period)
        uid = (await kube.get(resource, action.name, namespace=namespace))["metadata"]["uid"]
        await kube.delete(resource, action.name, namespace=namespace, options=options)
    except NotFoundError:
        if action.missing_ok:
            return
        raise

    async def gone() -> Finding:
        try:
            obj = await kube.get(resource, action.name, namespace=namespace)
        except NotFoundError:
            return Finding(True, f"{about} to be gone", about=(about,))
        still = obj["metadata"]["uid"] == uid
        return Finding(not still, f"{about} to be gone", "it is still there, being deleted", (about,))

    if action.wait:
        await until(stage, gone, _timeout_s(stage, step))


async def _evict(stage: StepContext, step: Step) -> None:
    action = step.evict
    assert action is not None
    options = DeleteOptions(grace_period_s=action.grace_period)
    await stage.cluster.kube.evict(action.namespace, action.pod, options=options)


async def _patch(stage: StepContext, step: Step) -> None:
    action = step.patch
    assert action is not None
    resource = await resource_of(stage.cluster.kube, action.kind, action.api_version)
    await stage.cluster.kube.patch(
        resource,
        action.name,
        action.body,
        kind=_PATCHES[action.type],
        namespace=action.namespace if resource.namespaced else None,
        subresource=action.subresource,
        field_manager=stage.field_manager,
    )


async def _wait(stage: StepContext, step: Step) -> Any:
    checks = step.wait or ()
    await until(stage, lambda: look(stage, checks), _timeout_s(stage, step))
    return await looked_at(stage, step) if step.outputs else None


async def _assert(stage: StepContext, step: Step) -> Any:
    checks = step.assert_ or ()
    await now(stage, lambda: look(stage, checks))
    return await looked_at(stage, step) if step.outputs else None


async def _hold(stage: StepContext, step: Step) -> None:
    action = step.hold
    assert action is not None
    pace = stage.cluster.kubelet_pace if action.clock == "kubelet" else stage.cluster.pace
    await hold(stage, lambda: look(stage, action.check), pace.loop_s(action.for_))


async def _chassis(stage: StepContext, step: Step) -> None:
    action = step.chassis
    assert action is not None
    hardware = stage.cluster.hardware
    if action.edit is None:
        await hardware.reset()
        return
    table = await hardware.table()
    edit = action.edit
    if edit.chassis not in table or edit.device not in table[edit.chassis]:
        known = {name: sorted(devices) for name, devices in table.items()}
        raise ScenarioError(f"chassis.edit: {edit.chassis}/{edit.device}: no such device; devices: {show(known, 400)}")
    port = edit.port if edit.host is None else _port_of(table[edit.chassis], edit.host)
    await hardware.edit(edit.chassis, edit.device, port)


def _port_of(devices: dict[str, dict[str, Any]], host: str) -> str:
    """Return the port of a host, told by a device on it."""
    ports = sorted({str(row["port"]) for row in devices.values() if row.get("host") == host})
    if len(ports) != 1:
        raise ScenarioError(
            f"chassis.edit.host {host!r}: no device of that chassis is on it now: name its port instead"
        )
    return ports[0]


async def _fault(stage: StepContext, step: Step) -> None:
    action = step.fault
    assert action is not None
    if action.clear is not None:
        await _clear(stage, action.clear)
        return
    if action.component is not None:
        await _api_fault(stage, action.component, action.add or {})
        return
    if action.host is not None:
        try:
            await stage.cluster.hardware.host_fault(action.host, action.add or {})
        except ValueError as error:
            raise ScenarioError(f"fault.add on host {action.host}: {error}") from error
        return
    for chassis in await _chassis_named(stage, action):
        try:
            await stage.cluster.hardware.fault(chassis, action.add or {})
        except ValueError as error:
            raise ScenarioError(f"fault.add on chassis {chassis}: {error}") from error


async def _clear(stage: StepContext, name: str) -> None:
    """Undo all faults, or those of one chassis, host or component."""
    api_faults = stage.cluster.api_faults
    if name == "all" or name not in stage.cluster.components():
        await stage.cluster.hardware.clear(None if name == "all" else name)
    if api_faults is not None and (name == "all" or name in api_faults.clients()):
        clearing = api_faults.clear(None if name == "all" else name)
        if clearing is not None:
            await clearing


async def _api_fault(stage: StepContext, component: str, spec: Mapping[str, Any]) -> None:
    api_faults = stage.cluster.api_faults
    if api_faults is None:
        raise ScenarioError(f"fault.component: --cluster {stage.cluster.name} cannot stand between it and the API")
    try:
        await api_faults.add(component, spec)
    except ValueError as error:
        raise ScenarioError(f"fault.add on component {component}: {error}") from error


async def _chassis_named(stage: StepContext, action: FaultAction) -> list[str]:
    there = sorted(await stage.cluster.hardware.table())
    if action.chassis == "*":
        return there
    if action.chassis not in there:
        raise ScenarioError(f"fault.chassis {action.chassis!r}: {must_be(action.chassis, (*there, '*'))}")
    return [action.chassis]


async def _host(stage: StepContext, step: Step) -> None:
    action = step.host
    assert action is not None
    fields: dict[str, Any] = {"do": action.do}
    if action.do in ("power", "machine-power", "drain", "persistence", "persistence-daemon"):
        fields["on"] = action.on
    if action.do == "write":
        fields |= {"path": action.path or "", "text": action.text}
    if action.do in ("hold", "release"):
        fields["key"] = action.key
    if action.do == "set-gpu":
        fields |= {"setting": action.setting, "values": action.values}
    if action.do == "mig":
        fields |= {"change": action.change, "values": action.values}
    fields |= {name: value for name in ("device", "driver") if (value := getattr(action, name)) is not None}
    try:
        since = len(stage.cluster.journal)
        result = await stage.cluster.hardware.operate(action.host, fields, action.within)
    except ValueError as error:
        raise ScenarioError(f"host {action.host}: {action.do}: {error}") from error
    if result != action.result:
        done = [line for line in stage.cluster.journal.lines(since) if line.actor == f"host/{action.host}"]
        awaited = f"{action.do} on {action.host} to end with {action.result}"
        raise StepFailedError(Failure(awaited, result, line=done[0] if done else None))


async def _telemetry(stage: StepContext, step: Step) -> None:
    action = step.telemetry
    assert action is not None
    try:
        await set_values(stage.cluster.hardware, action.device, action.set)
    except ValueError as error:
        raise ScenarioError(f"telemetry: {error}") from error


def _component(stage: StepContext, action: ComponentAction | None) -> ComponentAction:
    assert action is not None
    allowed = stage.cluster.components()
    if action.component not in allowed:
        raise ScenarioError(f"component {action.component!r}: {must_be(action.component, allowed)}")
    return action


async def _kill(stage: StepContext, step: Step) -> None:
    action = _component(stage, step.kill)
    if action.at is not None:
        await _cut_at(stage, action, _timeout_s(stage, step))
    await stage.cluster.kill(action.component)


async def _cut_at(stage: StepContext, action: ComponentAction, timeout_s: float) -> None:
    """Crash the component at the next journal line like ``at``, while that line is being written."""
    at: list[Line] = []

    def on_line(line: Line) -> None:
        if not at and match(action.at, line.as_dict()) is None:
            at.append(line)
            stage.cluster.cut(action.component)

    async def happened() -> Finding:
        return Finding(bool(at), f"a journal line {show(action.at)} to kill {action.component} at", "none yet")

    stop = stage.cluster.journal.listen(on_line)
    try:
        await until(stage, happened, timeout_s)
    finally:
        stop()


async def _start(stage: StepContext, step: Step) -> None:
    await _started(stage, _component(stage, step.start).component)


async def _restart(stage: StepContext, step: Step) -> None:
    action = _component(stage, step.restart)
    if action.at is not None:
        await _cut_at(stage, action, _timeout_s(stage, step))
    await stage.cluster.kill(action.component)
    await _started(stage, action.component)


async def _started(stage: StepContext, component: str) -> None:
    try:
        await stage.cluster.start(component)
    except ValueError as error:  # Its host may be switched off.
        raise StepFailedError(Failure(f"{component} to start", str(error))) from error


async def _exec(stage: StepContext, step: Step) -> Any:
    action = step.exec
    assert action is not None
    result = await stage.cluster.kube.exec(action.namespace, action.pod, action.command, container=action.container)
    seen = {
        "exitCode": result.exit_code,
        "stdout": result.stdout.decode("utf-8", "replace"),
        "stderr": result.stderr.decode("utf-8", "replace"),
    }
    wanted = {"exitCode": action.exit_code}
    wanted |= {key: p for key, p in (("stdout", action.stdout), ("stderr", action.stderr)) if p is not None}
    wrong = match(wanted, seen)
    if wrong is not None:
        raise StepFailedError(
            Failure(f"{' '.join(action.command)} in pod {action.pod} with {show(wanted)}", str(wrong))
        )
    return seen


async def _sleep(stage: StepContext, step: Step) -> None:
    await asyncio.sleep(stage.remaining_s(stage.cluster.pace.loop_s(step.sleep or 0.0)))


async def _workload(stage: StepContext, step: Step) -> None:
    driver = stage.driver
    assert driver is not None
    if step.workload in ("start", "run"):
        await driver.start()
    if step.workload in ("wait", "run"):
        if not driver.started:
            raise ScenarioError("workload: wait: the workload was not started: workload: start (or run) comes first")
        # Jobs last for hours: only the scenario's own time limit counts unless the step has one.
        await until(stage, driver.finding, step.timeout if step.timeout is not None else stage.scenario.timeout)


_STEPS: dict[str, Callable[[StepContext, Step], Awaitable[Any]]] = {
    "apply": _apply,
    "create": _create,
    "delete": _delete,
    "evict": _evict,
    "patch": _patch,
    "wait": _wait,
    "assert": _assert,
    "hold": _hold,
    "chassis": _chassis,
    "fault": _fault,
    "host": _host,
    "telemetry": _telemetry,
    "kill": _kill,
    "start": _start,
    "restart": _restart,
    "exec": _exec,
    "get": get,
    "logs": logs,
    "script": run_script,
    "sleep": _sleep,
    "workload": _workload,
}
