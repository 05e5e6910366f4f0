"""The HTTP adapter of the KubeApi port: any API server. Not for virtual runs: imports aiohttp."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, from_status
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import PODS, Resource
from mews.kube.client.connection import ApiConnection, Tokens, lines
from mews.kube.client.json_text import parse
from mews.kube.client.patience import patiently
from mews.kube.client.port import DeleteOptions, EventType, ExecResult, ObjectList, Patch, WatchEvent

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDOUT, _STDERR, _ERROR = 1, 2, 3


class HttpKube:
    """KubeApi over HTTP. ``token`` is a bearer token, or what to ask for the current one; ``user_agent`` up to its
    slash is the field manager of writes that name none. ``unix_socket``: where the server is reached, whatever its
    URL says."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | Tokens | None = None,
        ssl: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
        user_agent: str = "mews",
        unix_socket: str = "",
    ) -> None:
        self._connection = ApiConnection(
            base_url,
            token=token,
            ssl_context=ssl,
            headers={"User-Agent": user_agent, **(headers or {})},
            unix_socket=unix_socket,
        )

    @classmethod
    def from_kubeconfig(cls, path: str | None = None, context: str | None = None) -> HttpKube:
        """Return the cluster of a kubeconfig's context.

        Raises KubeconfigError, which names the file, for one that cannot be used.
        """
        from mews.kube.client.kubeconfig.access import read_kubeconfig

        access = read_kubeconfig(path, context)
        return cls(access.base_url, token=access.tokens, ssl=access.ssl_context, headers=access.headers)

    @property
    def base_url(self) -> str:
        """The server's URL, without a path."""
        return self._connection.base_url

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str | None = None
    ) -> Object:
        """Return one object; ``NotFound`` when there is none."""
        return await self._call("GET", _path(resource, namespace, name, subresource))

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
        """Selected objects; items carry kind and apiVersion, which the wire leaves out."""
        query = _query(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            limit=limit,
            resourceVersion=resource_version,
            resourceVersionMatch="Exact" if resource_version else "",
            **{"continue": continue_token},
        )
        body = await self._call("GET", resource.path(namespace), query=query)
        return _object_list(resource, body)

    async def watch(
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
        """Yield every change after ``resource_version``."""
        query = _query(
            watch="true",
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            timeoutSeconds=timeout_s,
            allowWatchBookmarks="true" if bookmarks else "",
        )
        async with self._connection.stream(resource.path(namespace), query=query) as chunks:
            async for line in lines(chunks):
                event = parse(line)
                if event["type"] == "ERROR":
                    raise from_status(event["object"])
                yield WatchEvent(EventType(event["type"]), event["object"])

    async def create(
        self, resource: Resource, obj: Mapping[str, Any], *, namespace: str | None = None, field_manager: str = ""
    ) -> Object:
        """Create an object (POST) and return it as stored."""
        path = _path(resource, namespace or namespace_of(obj) or None)
        return await self._call("POST", path, query=_query(fieldManager=field_manager), body=_typed(resource, obj))

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
    ) -> Object:
        """Replace an object (PUT) and return it as stored."""
        path = _path(resource, namespace or namespace_of(obj) or None, name_of(obj), subresource)
        return await self._call("PUT", path, query=_query(fieldManager=field_manager), body=_typed(resource, obj))

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
        applied = kind is Patch.APPLY
        manager = field_manager or ("mews" if applied else "")
        query = _query(fieldManager=manager, force="true" if force and applied else "")
        content = _typed(resource, body) if applied and isinstance(body, Mapping) else body
        path = _path(resource, namespace, name, subresource)
        return await self._call("PATCH", path, query=query, body=content, content_type=kind.value)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str | None = None, options: DeleteOptions | None = None
    ) -> Object:
        """Return the object while it still exists, or a ``Status``."""
        return await self._call("DELETE", _path(resource, namespace, name), body=_delete_body(options))

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
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        body = await self._call("DELETE", resource.path(namespace), query=query, body=_delete_body(options))
        return _object_list(resource, body)

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
        """Bind a pod to a node (POST pods/binding)."""
        metadata: Object = {"name": pod, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        if resource_version:
            metadata["resourceVersion"] = resource_version
        if annotations:
            metadata["annotations"] = dict(annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self._call("POST", PODS.path(namespace, pod, "binding"), body=body)

    async def evict(self, namespace: str, pod: str, *, options: DeleteOptions | None = None) -> None:
        """Evict a pod (POST pods/eviction)."""
        metadata = {"name": pod, "namespace": namespace}
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if options is not None:
            body["deleteOptions"] = _delete_body(options)
        await self._connection.call("POST", PODS.path(namespace, pod, "eviction"), body=body)

    async def log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the container's log in chunks."""
        query = _query(
            container=container,
            follow="true" if follow else "",
            previous="true" if previous else "",
            tailLines=tail_lines,
        )
        async with self._connection.stream(PODS.path(namespace, pod, "log"), query=query) as chunks:
            async for chunk in chunks:
                yield chunk

    async def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None
    ) -> ExecResult:
        """Run a command in a running container, over a WebSocket."""
        query = [*_query(container=container, stdout="true", stderr="true"), *(("command", word) for word in command)]
        outputs: dict[int, bytes] = {}
        path = PODS.path(namespace, pod, "exec")
        async with self._connection.socket(path, query=query, protocols=_PROTOCOLS) as socket:
            async for message in socket:
                if isinstance(message.data, bytes) and message.data:
                    outputs[message.data[0]] = outputs.get(message.data[0], b"") + message.data[1:]
        return ExecResult(_exit_code(outputs.get(_ERROR, b"")), outputs.get(_STDOUT, b""), outputs.get(_STDERR, b""))

    async def discovery(self) -> Sequence[Resource]:
        """Return all resources the server serves."""
        found: list[Resource] = []
        for path in ("/api", "/apis"):
            body = await self._connection.call("GET", path, accept=f"{_AGGREGATED},application/json")
            if body.get("kind") == "APIGroupDiscoveryList":
                found += _aggregated(body)
            else:
                found += await self._legacy(body)
        return found

    async def _legacy(self, body: Object) -> Sequence[Resource]:
        found: list[Resource] = []
        paths = [f"/api/{version}" for version in body.get("versions") or ()]
        for group in body.get("groups") or ():
            paths += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
        for path in paths:
            answer = await self._connection.call("GET", path)
            group, _, version = answer["groupVersion"].rpartition("/")
            found += [
                Resource(group, version, each["name"], each["kind"], each["namespaced"])
                for each in answer["resources"]
                if "/" not in each["name"]
            ]
        return found

    async def close(self) -> None:
        """Give all connections back."""
        await self._connection.close()

    async def _call(self, method: str, path: str, **more: Any) -> Object:
        answer: Object = await patiently(lambda: self._connection.call(method, path, **more))
        return answer


def _path(resource: Resource, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """Return the path of an object, or of where it is to be created; ``default`` where no namespace is named."""
    return resource.path(namespace or "default", name, subresource)


def _query(**parameters: str | int | None) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in parameters.items() if value not in (None, "")]


def _typed(resource: Resource, obj: Mapping[str, Any]) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _object_list(resource: Resource, body: Object) -> ObjectList:
    metadata = body.get("metadata") or {}
    items = [_typed(resource, item) for item in body.get("items") or ()]
    return ObjectList(
        items,
        str(metadata.get("resourceVersion", "")),
        str(metadata.get("continue", "")),
        metadata.get("remainingItemCount"),
    )


def _delete_body(options: DeleteOptions | None) -> Object:
    body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if options is None:
        return body
    if options.grace_period_s is not None:
        body["gracePeriodSeconds"] = options.grace_period_s
    if options.propagation is not None:
        body["propagationPolicy"] = options.propagation
    wanted = options.preconditions
    given = {"uid": wanted.uid, "resourceVersion": wanted.resource_version}
    preconditions = {name: value for name, value in given.items() if value is not None}
    if preconditions:
        body["preconditions"] = preconditions
    return body


def _aggregated(body: Object) -> Sequence[Resource]:
    return [
        Resource(
            group["metadata"].get("name", ""),
            version["version"],
            each["resource"],
            each["responseKind"]["kind"],
            each["scope"] == "Namespaced",
        )
        for group in body["items"]
        for version in group["versions"]
        for each in version.get("resources") or ()
    ]


def _exit_code(raw: bytes) -> int:
    """Return the exit code in the Status that ends a command.

    Raises ``ApiError`` when the command could not be run.
    """
    status: Object = json.loads(raw) if raw else {"status": "Failure", "message": "the command's end was not reported"}
    if status.get("status") == "Success":
        return 0
    for cause in (status.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    error: ApiError = from_status({"code": 500, **status})
    raise error
