"""ControllerRevisions: the templates that a DaemonSet or a StatefulSet had, kept up for its controller
(pkg/controller/history/controller_history.go)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mews.kube.api.errors import AlreadyExistsError
from mews.kube.api.objects import Object, key_of, name_of, namespace_of
from mews.kube.api.resources import CONTROLLER_REVISIONS
from mews.kube.client.port import KubeApi, Patch
from mews.kube.emulated.controllers.owners import OwnedObjects
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations


def data_of(owner: Object) -> dict[str, Any]:
    """Return what a revision holds: the patch that brings its template back, byte for byte as Go writes it, since
    upstream's tools compare the bytes: keys in order."""
    found: dict[str, Any] = _sorted({"spec": {"template": {"$patch": "replace", **owner["spec"]["template"]}}})
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def revision_of(revision: Object) -> int:
    """Return the number of a ControllerRevision."""
    return int(revision.get("revision", 0))


def current(owner: Object, revisions: Sequence[Object]) -> Object | None:
    """Return the revision with the owner's template."""
    wanted = data_of(owner)
    return next((found for found in revisions if found.get("data") == wanted), None)


def next_number(revisions: Sequence[Object]) -> int:
    """Return the number of a revision that is made, or taken up again, after these."""
    return max((revision_of(known) for known in revisions), default=0) + 1


def surplus(owner: Object, idle: Sequence[Object]) -> list[Object]:
    """Return those of the revisions that nobody has any more the oldest, beyond the owner's
    ``revisionHistoryLimit``."""
    limit = int(owner["spec"].get("revisionHistoryLimit", 10))
    return sorted(idle, key=revision_of)[: max(len(idle) - limit, 0)]


class Revisions:
    """Writes the ControllerRevisions of one kind of controller; ``expectations`` are told of what is written."""

    def __init__(self, kube: KubeApi, *, owned: OwnedObjects, expectations: Expectations) -> None:
        self._kube = kube
        self._owned = owned
        self._expectations = expectations

    async def newest(
        self,
        owner: Object,
        known: Sequence[Object],
        *,
        make: Callable[[], Object],
        collided: Callable[[], Awaitable[None]],
    ) -> Object:
        """Return the revision with the owner's template, and the highest number: one of ``known``, or what ``make``
        makes.

        Raises ApiError; AlreadyExistsError where one of another template has its name, after ``collided`` has noted
        that.
        """
        found = current(owner, known)
        number = next_number(known)
        if found is not None and revision_of(found) == number - 1:
            return found
        namespace = namespace_of(owner)
        if found is not None:
            written = await self._kube.patch(
                CONTROLLER_REVISIONS, name_of(found), {"revision": number}, kind=Patch.MERGE, namespace=namespace,
                field_manager=MANAGER,
            )  # fmt: skip
        else:
            made = make()
            try:
                written = await self._kube.create(
                    CONTROLLER_REVISIONS, made, namespace=namespace, field_manager=MANAGER
                )
            except AlreadyExistsError:
                there = await self._kube.get(CONTROLLER_REVISIONS, name_of(made), namespace=namespace)
                if there.get("data") == made.get("data"):
                    return there
                await collided()
                raise
        self._expectations.wrote(key_of(owner), self._owned.informer, written)
        return written

    async def drop(self, revisions: Sequence[Object]) -> None:
        """Delete them."""
        for revision in revisions:
            await self._kube.delete(CONTROLLER_REVISIONS, name_of(revision), namespace=namespace_of(revision))
