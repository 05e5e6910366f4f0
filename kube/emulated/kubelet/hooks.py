"""Life-cycle hooks, and the way a container is killed (upstream pkg/kubelet/lifecycle, kuberuntime_container.go)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, key_of, name_of, namespace_of, uid_of
from mews.kube.emulated.kubelet.errors import NoSuchContainerError, StartError
from mews.kube.emulated.kubelet.handlers import Exec, HandlerResult, HttpGet, Question, Sleep, action_of
from mews.kube.emulated.kubelet.podstate import container_of
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import pod_reference

LEAST_GRACE_S = 2.0
"""What every container gets to end, whatever its grace and what its hook took of it (minimumGracePeriodInSeconds)."""

_NO_LIMIT_S = 24 * 3600.0


async def kill_container(
    tools: Tools,
    pod: Object,
    name: str,
    *,
    ip: str,
    grace_s: float,
    message: str = "",
    after: Sequence[asyncio.Task[None]] = (),
) -> None:
    """Event Killing, the preStop hook within the grace, its turn (``after`` these have ended, or when the grace is
    over), TERM, and KILL when what is left of the grace is over."""
    container = container_of(pod, name)
    involved = pod_reference(pod, container=name)
    tools.events.event(involved, "Normal", "Killing", message or f"Stopping container {name}")
    hook = (container.get("lifecycle") or {}).get("preStop")
    if hook and grace_s > 0:
        began = tools.emulated_now()
        answer = await _done(tools, pod, container, Hook("preStop", hook, ip, grace_s))
        took_s = tools.emulated_now() - began
        if not answer.well and took_s < grace_s:
            tools.events.event(involved, "Warning", "FailedPreStopHook", "PreStopHook failed")
        grace_s -= took_s
    if after and grace_s > 0:
        began = tools.emulated_now()
        await asyncio.wait(after, timeout=tools.pace.loop_s(grace_s))
        grace_s -= tools.emulated_now() - began
    await tools.containerd.stop(uid_of(pod), name, max(grace_s, LEAST_GRACE_S))


async def after_start(tools: Tools, pod: Object, name: str, *, ip: str, grace_s: float) -> None:
    """The postStart hook; a container whose hook fails is killed.

    Raises StartError (``PostStartHookError``).
    """
    container = container_of(pod, name)
    hook = (container.get("lifecycle") or {}).get("postStart")
    if not hook:
        return
    answer = await _done(tools, pod, container, Hook("postStart", hook, ip, _NO_LIMIT_S))
    if answer.well:
        return
    involved = pod_reference(pod, container=name)
    tools.events.event(involved, "Warning", "FailedPostStartHook", "PostStartHook failed")
    await kill_container(tools, pod, name, ip=ip, grace_s=grace_s, message="FailedPostStartHook")
    raise StartError("PostStartHookError", _complaint(pod, container, hook, ip, answer))


class Hook:
    """A hook about to be run."""

    def __init__(self, purpose: str, handler: Mapping[str, Any], ip: str, limit_s: float) -> None:
        self.purpose = purpose
        self.handler = handler
        self.ip = ip
        self.limit_s = limit_s


async def _done(tools: Tools, pod: Object, container: Mapping[str, Any], hook: Hook) -> HandlerResult:
    action = action_of(hook.handler, container, hook.ip)
    if action is None:
        return HandlerResult(False, "invalid handler")
    if isinstance(action, Sleep):
        await asyncio.sleep(tools.pace.loop_s(min(action.seconds, hook.limit_s)))
        return HandlerResult(True)
    question = Question(hook.purpose, action, hook.limit_s)
    try:
        return await tools.containerd.ask(uid_of(pod), str(container["name"]), question)
    except NoSuchContainerError as error:
        return HandlerResult(False, str(error))


def _complaint(
    pod: Object, container: Mapping[str, Any], hook: Mapping[str, Any], ip: str, answer: HandlerResult
) -> str:
    whole_name = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
    action, name = action_of(hook, container, ip), container["name"]
    match action:
        case Exec(command):
            words = " ".join(command)
            error = f"command '{words}' exited with {answer.code}: {answer.text}" if answer.code else answer.text
            what, output = f"Exec lifecycle hook ([{words}])", answer.text if answer.code else ""
        case HttpGet():
            what, error, output = f"HTTP lifecycle hook ({action.path})", answer.text, ""
        case _:
            return f"invalid handler of {key_of(pod)}"
    return f'{what} for Container "{name}" in Pod "{whole_name}" failed - error: {error}, message: "{output}"'
