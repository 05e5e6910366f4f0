"""A TFJob's pods and services, created and deleted."""

from __future__ import annotations

from mews.kube.api.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from mews.kube.api.objects import Object, is_deleting, name_of, uid_of
from mews.kube.api.resources import Resource
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.component import Context
from mews.systems.kod2.errors import TaskRefusalError
from mews.systems.kod2.pod_events import PodEventWriter
from mews.systems.kod2.podspec import owner_uid


class TaskWriter:
    """Writes for the operator. Raises UnavailableError, and ApiError where something cannot be deleted."""

    def __init__(self, context: Context, events: PodEventWriter) -> None:
        self._context = context
        self._events = events

    async def make(self, task: str, tfjob: Object, resource: Resource, obj: Object) -> None:
        """Create a task's pod or service. Raises TaskRefusalError where it is not let in."""
        namespace, reason = tfjob["metadata"]["namespace"], f"FailedCreate{resource.kind}"
        what = f"{resource.kind} {name_of(obj)}"
        try:
            await self._context.kube.create(resource, obj, namespace=namespace)
        except AlreadyExistsError:
            if await self._is_strange(resource, name_of(obj), namespace):
                raise TaskRefusalError(task, reason, f"{what} exists already and belongs to no TFJob") from None
            # An earlier one is on its way out, or the cache does not show it yet: its next change brings us back.
        except (BadRequestError, InvalidError) as error:
            raise TaskRefusalError(task, reason, f"{what} is not let in: {error.message}", for_ever=True) from error
        except ApiError as error:
            at_once = isinstance(error, ForbiddenError | NotFoundError)
            raise TaskRefusalError(task, reason, f"{what} is not let in: {error.message}", at_once=at_once) from error
        else:
            await self._events.created(resource, obj)

    async def _is_strange(self, resource: Resource, name: str, namespace: str) -> bool:
        """Return whether an object there is somebody else's, and stays."""
        try:
            found = await self._context.kube.get(resource, name, namespace=namespace)
        except NotFoundError:
            return False
        return not owner_uid(found) and not is_deleting(found)

    async def delete(self, resource: Resource, obj: Object) -> None:
        """Delete an object unless it is on its way out, or gone."""
        if is_deleting(obj):
            return
        options = DeleteOptions(preconditions=Preconditions(uid=uid_of(obj)))
        try:
            await self._context.kube.delete(
                resource, name_of(obj), namespace=obj["metadata"]["namespace"], options=options
            )
        except NotFoundError:
            return
        await self._events.deleted(resource, obj)
