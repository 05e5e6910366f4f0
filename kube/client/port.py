"""The KubeApi port: everything that the components, the kubelet and the harness ask of Kubernetes.

Two adapters: ``mews.kube.client.http`` (any API server) and the in-process one of the embedded cluster. Objects are
plain dicts as on the wire. **What a KubeApi hands out is read-only and may be shared**: copy before changing.
What it is given it copies.

Every method raises ``mews.kube.api.errors.ApiError`` (the server's answer) or ``Unavailable`` (no answer).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource


class Patch(StrEnum):
    """The kinds of patch, by their media types."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class EventType(StrEnum):
    """Types of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(Struct, frozen=True):
    """One event of a watch. An ERROR event is raised as ``ApiError`` instead (``Gone`` when the version is too old)."""

    type: EventType
    object: Object


class ObjectList(Struct, frozen=True):
    """The answer to a list: read-only items, the version to watch from, the token of the next page ("" at the end)."""

    items: list[Object]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class ExecResult(Struct, frozen=True):
    """What a command in a container wrote, and its exit code."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""


class Preconditions(Struct, frozen=True):
    """What must still be true of an object when it is deleted."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct, frozen=True):
    """Options of a deletion; ``propagation`` is Background, Foreground or Orphan."""

    grace_period_s: int | None = None
    preconditions: Preconditions = field(default_factory=Preconditions)
    propagation: str | None = None


class KubeApi(Protocol):
    """Kubernetes, as a client sees it."""

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str | None = None
    ) -> Object:
        """Return one object; ``NotFound`` when there is none."""
        ...

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
    ) -> ObjectList:
        """Return all objects, of all namespaces when ``namespace`` is None, ordered by namespace and name; with a
        version as they were at exactly that one, ``Gone`` when it is too old."""
        ...

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_s: int | None = None,
        bookmarks: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        """Return all later events; from "" or "0" first ADDED for all that is there. Ends cleanly on the server's
        timeout.

        Raises ``GoneError`` when the version is too old, ``UnavailableError`` when the connection breaks.
        """
        ...

    async def create(
        self, resource: Resource, obj: Mapping[str, Any], *, namespace: str | None = None, field_manager: str = ""
    ) -> Object:
        """Create an object and return it as stored."""
        ...

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
    ) -> Object:
        """PUT; the namespace and name are the object's own. ``Conflict`` when its resourceVersion is stale."""
        ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        kind: Patch = Patch.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Return the object after the patch."""
        ...

    async def delete(
        self, resource: Resource, name: str, *, namespace: str | None = None, options: DeleteOptions | None = None
    ) -> Object:
        """Return the object while it still exists, or a ``Status``."""
        ...

    async def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        options: DeleteOptions | None = None,
    ) -> ObjectList:
        """Return the list as it was before the deletion."""
        ...

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
        resource_version: str | None = None,
    ) -> None:
        """POST pods/binding; ``Conflict`` when the pod is bound already, or is not ``uid`` at ``resource_version``."""
        ...

    async def evict(self, namespace: str, pod: str, *, options: DeleteOptions | None = None) -> None:
        """POST pods/eviction; ``TooManyRequests`` when a budget refuses."""
        ...

    def log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Return the container's log in chunks; with ``follow`` until the container ends."""
        ...

    async def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None
    ) -> ExecResult:
        """Run a command in a running container."""
        ...

    async def discovery(self) -> Sequence[Resource]:
        """Return all resources the server serves."""
        ...

    async def close(self) -> None:
        """Close the connections that the client holds."""
        ...
