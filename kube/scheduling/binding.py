"""What happens to an assumed pod beside the cycle: Permit, waiting, PreBind, Bind."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, node_name_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.scheduling import messages
from mews.kube.scheduling.errors import OvertakenError
from mews.kube.scheduling.extenders import ExtenderError, SchedulerExtender
from mews.kube.scheduling.framework import SUCCESS, Bind, Code, CycleState, Status, error
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.points import ExtensionPoints
from mews.kube.scheduling.queue import Entry
from mews.kube.scheduling.verdict import failed
from mews.kube.scheduling.waiting import PodAtPermit

_ASK_AGAIN_S = 1.0


class Attempt(Struct, frozen=True):
    """One pod on its way to one node."""

    entry: Entry
    points: ExtensionPoints
    state: CycleState
    pod: PodInfo
    node: str


def given_up(status: Status, node: str) -> Status:
    """Return a refusal after the node was chosen, worded as that node's own; errors stay as they are."""
    if not status.rejected:
        return status
    return Status(status.code, (messages.no_fit(1, {node: status}),), status.plugin)


async def permitted(attempt: Attempt, waiting: PodAtPermit) -> Status:
    """Ask all Permit plugins, then wait for those that hold the pod."""
    holds: dict[str, float] = {}
    for plugin in attempt.points.permit:
        status = await plugin.permit(attempt.state, attempt.pod, attempt.node)
        if status.code is Code.WAIT:
            holds[plugin.name] = status.timeout_s
        elif not status.ok:
            return failed(f'running Permit plugin "{plugin.name}"', plugin.name, status)
    return await waiting.verdict(holds)


async def bound(attempt: Attempt, kube: KubeApi, extenders: Sequence[SchedulerExtender] = ()) -> Status:
    """PreBind and Bind, by the first extender that binds such pods; the outcome is known when this returns.

    Raises OvertakenError.
    """
    for pre in attempt.points.pre_bind:
        status = await pre.pre_bind(attempt.state, attempt.pod, attempt.node)
        if not status.ok:
            return failed(f'running PreBind plugin "{pre.name}"', pre.name, status)
    for extender in extenders:
        if extender.binds and extender.manages(attempt.pod):
            return await _bind_by_extender(extender, attempt, kube)
    for binder in attempt.points.bind:
        status = await _bind_by(binder, attempt, kube)
        if status.code is not Code.SKIP:
            return status.by(binder.name)
    return error("no plugin bound the pod")


async def _bind_by(binder: Bind, attempt: Attempt, kube: KubeApi) -> Status:
    try:
        return await binder.bind(attempt.state, attempt.pod, attempt.node)
    except UnavailableError as failed:
        pod = await _bound_pod(attempt, kube)
        if pod is None:
            return _failed(binder, failed)
        if node_name_of(pod) == attempt.node:
            return SUCCESS
        raise OvertakenError(pod) from failed
    except (ConflictError, NotFoundError) as failed:
        pod = await _bound_pod(attempt, kube)
        if pod is not None:
            raise OvertakenError(pod) from failed
        return _failed(binder, failed)
    except ApiError as failed:
        return _failed(binder, failed)


async def _bind_by_extender(extender: SchedulerExtender, attempt: Attempt, kube: KubeApi) -> Status:
    try:
        await extender.bind(attempt.pod, attempt.node)
    except ExtenderError as failed:
        pod = await _bound_pod(attempt, kube)
        if pod is None:
            return error(str(failed))
        if node_name_of(pod) != attempt.node:
            raise OvertakenError(pod) from failed
    return SUCCESS


def _failed(binder: Bind, failed: Exception) -> Status:
    return error(f'running Bind plugin "{binder.name}": {failed}')


async def _bound_pod(attempt: Attempt, kube: KubeApi) -> Object | None:
    """Return the pod on the API when it is bound; None when it is not, or gone, or another of that name.

    Asks for as long as it takes: giving up room that a bound pod holds would fill it twice.
    """
    while True:
        try:
            pod = await kube.get(PODS, attempt.pod.name, namespace=attempt.pod.namespace)
        except NotFoundError:
            return None
        except (ApiError, UnavailableError):
            await rest(_ASK_AGAIN_S)
            continue
        return pod if uid_of(pod) == attempt.pod.uid and node_name_of(pod) else None
