"""What the servers behind APIServices say of themselves: discovery and OpenAPI, and how it joins this server's own.

Sources: k8s.io/kube-aggregator/pkg/apiserver (handler_apis.go, handler_discovery.go) and pkg/controllers/openapi,
openapiv3.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.aggregation.openapi_parts import part_of_swagger
from mews.kube.emulated.packs.aggregation.remote_apis import Priorities, RemoteApi, remote_apis
from mews.kube.emulated.packs.aggregation.remote_client import RemoteClient, UnreachedError, UnresolvedError

_JSON, _OK = "application/json", 200
_AGGREGATED = tuple(f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in
                    ("v2", "v2beta1"))  # fmt: skip
_FRESH_S = 60.0
"""So often upstream reads discovery again; and OpenAPI."""

Body = dict[str, Any]


class _Known(Struct):
    """What one server has said: its resources by group and version, and its OpenAPI. ``api`` as it was then."""

    api: RemoteApi
    read_at: float
    resources: list[Body] | None = None
    url: str = ""
    swagger: Body = field(default_factory=dict)
    fresh: bool = False


class RemoteDocuments:
    """Keeps what the servers behind APIServices say of themselves; ``read`` asks a server for its own."""

    def __init__(self, store: Store, client: RemoteClient) -> None:
        self._store = store
        self._client = client
        self._known: dict[str, _Known] = {}
        self.generation = 0
        """Grows whenever something of it changes."""

    async def read(self, api: RemoteApi) -> None:
        """Ask a server that answers, unless it was asked a moment ago."""
        now = asyncio.get_running_loop().time()
        known = self._known.get(api.name)
        if known is not None and known.fresh and known.api == api and now < known.read_at + _FRESH_S:
            return
        found = _Known(api, now, known.resources if known is not None and known.api.key == api.key else None)
        try:
            found.resources = await self._resources(api)
            found.fresh = True
            found.url = await self._url(api)
            found.swagger = await self._swagger(api)
        except (UnreachedError, UnresolvedError, OSError, ValueError, LookupError, TypeError, AttributeError):
            pass  # what it says is no document; it counts as stale, and is asked again
        except RecursionError:
            pass  # nor is what is nested without end
        self._known[api.name] = found
        self.generation += 1

    async def _json(self, api: RemoteApi, path: str, accept: str) -> tuple[str, Any]:
        status, media, body = await self._client.read(api, path, accept)
        return media, json.loads(body) if status == _OK and media.startswith(_JSON) else None

    async def _resources(self, api: RemoteApi) -> list[Body]:
        """Return those of one version: from aggregated discovery, where the server has that, else from the version's
        own."""
        media, found = await self._json(api, "/apis", ",".join(_AGGREGATED))
        if found is not None and "APIGroupDiscoveryList" in media:
            return next((_resources_of(version) for version in _versions(found, api)), [])
        _, listed = await self._json(api, api.path, _JSON)
        return _converted(listed["resources"])

    async def _url(self, api: RemoteApi) -> str:
        _, found = await self._json(api, "/openapi/v3", _JSON)
        paths: Mapping[str, Any] = (found or {}).get("paths") or {}
        return str((paths.get(api.path.removeprefix("/")) or {}).get("serverRelativeURL") or "")

    async def _swagger(self, api: RemoteApi) -> Body:
        _, found = await self._json(api, "/openapi/v2", _JSON)
        return part_of_swagger(found, api.path) if isinstance(found, dict) else {}

    def _of(self, api: RemoteApi) -> _Known | None:
        known = self._known.get(api.name)
        return known if known is not None and known.api.key == api.key else None

    def _apis(self) -> list[RemoteApi]:
        return sorted(remote_apis(self._store), key=lambda api: api.name)

    def extend_groups(self, body: Body) -> Body:
        """GET /apis."""
        apis = self._apis()
        if not apis:
            return body
        order = Priorities(self._store)
        groups = {group["name"]: group for group in body["groups"]}
        for name, versions in _by_group(apis).items():
            group = {"name": name, "versions": [_shown(api) for api in versions]}
            groups[name] = _joined(groups.get(name), group, name, order)
        return {**body, "groups": _ordered(groups, order)}

    def extend_group(self, name: str, body: Body | None) -> Body | None:
        """GET /apis/GROUP; None where nobody has it."""
        apis = [api for api in self._apis() if api.group == name]
        if not apis:
            return body
        group = {"name": name, "versions": [_shown(api) for api in apis]}
        return {"kind": "APIGroup", "apiVersion": "v1", **_joined(body, group, name, Priorities(self._store))}

    def extend_discovery(self, body: Body) -> Body:
        """GET /apis in the aggregated form."""
        apis = self._apis()
        if not apis:
            return body
        order = Priorities(self._store)
        groups = {item["metadata"]["name"]: item for item in body["items"]}
        for name, versions in _by_group(apis).items():
            own = groups.get(name, {"metadata": {"name": name}, "versions": []})
            replaced = {api.version for api in versions}
            kept = [each for each in own["versions"] if each["version"] not in replaced]
            kept += [self._discovered(api) for api in versions]
            groups[name] = {**own, "versions": _sorted(kept, name, order)}
        return {**body, "items": _ordered(groups, order)}

    def _discovered(self, api: RemoteApi) -> Body:
        known = self._of(api)
        fresh = known is not None and known.fresh and api.available
        resources = {"resources": known.resources} if known is not None and known.resources else {}
        return {"version": api.version, **resources, "freshness": "Current" if fresh else "Stale"}

    def extend_index(self, body: Body) -> Body:
        """GET /openapi/v3."""
        paths = dict(body["paths"])
        for api in self._apis():
            path = api.path.removeprefix("/")
            paths.pop(path, None)
            known = self._of(api)
            if known is not None and known.url:
                paths[path] = {"serverRelativeURL": known.url}
        return {**body, "paths": dict(sorted(paths.items()))}

    def extend_paths(self, body: Body) -> Body:
        """GET /."""
        apis = self._apis()
        more = {path for api in apis for path in (f"/apis/{api.group}", api.path)}
        return {**body, "paths": sorted({*body["paths"], *more})} if apis else body

    def swaggers(self) -> Iterator[Body]:
        """Yield the parts of OpenAPI version 2."""
        for api in self._apis():
            known = self._of(api)
            if known is not None and known.swagger:
                yield known.swagger


def _by_group(apis: Sequence[RemoteApi]) -> dict[str, list[RemoteApi]]:
    found: dict[str, list[RemoteApi]] = {}
    for api in apis:
        found.setdefault(api.group, []).append(api)
    return found


def _shown(api: RemoteApi) -> Body:
    return {"groupVersion": f"{api.group}/{api.version}", "version": api.version}


def _sorted(versions: list[Body], group: str, order: Priorities) -> list[Body]:
    return sorted(versions, key=lambda each: order.of_version(group, each["version"]))


def _joined(own: Body | None, more: Body, name: str, order: Priorities) -> Body:
    """Return a group with the versions of both; the first is preferred."""
    versions = {each["version"]: each for each in (*(own or {}).get("versions", ()), *more["versions"])}
    shown = _sorted(list(versions.values()), name, order)
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def _ordered(groups: Mapping[str, Body], order: Priorities) -> list[Body]:
    """Return them by the priority of the groups; those of one priority stay as they are (sort.SliceStable)."""
    return [groups[name] for name in sorted(groups, key=lambda name: -order.of_group(name))]


def _versions(document: Mapping[str, Any], api: RemoteApi) -> Iterator[Mapping[str, Any]]:
    for item in document["items"]:
        if item["metadata"].get("name") == api.group:
            yield from (version for version in item["versions"] if version["version"] == api.version)


def _resources_of(version: Mapping[str, Any]) -> list[Body]:
    """Return them with a kind for each, since old clients need one (kubernetes issue 118361)."""
    found = []
    for resource in version.get("resources") or ():
        whole = {**resource, "responseKind": resource.get("responseKind") or _NO_KIND}
        if resource.get("subresources"):
            subs = [{**sub, "responseKind": sub.get("responseKind") or _NO_KIND} for sub in resource["subresources"]]
            whole["subresources"] = subs
        found.append(whole)
    return found


_NO_KIND = {"group": "", "version": "", "kind": ""}


def _converted(listed: Sequence[Mapping[str, Any]]) -> list[Body]:
    """Resources of an APIResourceList in the aggregated form (endpoints.ConvertGroupVersionIntoToDiscovery)."""
    found: dict[str, Body] = {}
    for each in listed:
        name, slash, sub = str(each["name"]).partition("/")
        kind = {part: each.get(part) or "" for part in ("group", "version", "kind")}
        verbs = list(each.get("verbs") or ())
        if slash:
            owner = found.setdefault(name, {"resource": name, "responseKind": _NO_KIND, "scope": _scope(each),
                                            "singularResource": "", "verbs": []})  # fmt: skip
            owner.setdefault("subresources", []).append({"subresource": sub, "responseKind": kind, "verbs": verbs})
            continue
        own: Body = {"resource": name, "responseKind": kind, "scope": _scope(each)}
        own |= {"singularResource": each.get("singularName") or "", "verbs": verbs}
        own |= {key: list(each[key]) for key in ("shortNames", "categories") if each.get(key)}
        found[name] = {**found.get(name, {}), **own}
    return list(found.values())


def _scope(listed: Mapping[str, Any]) -> str:
    return "Namespaced" if listed.get("namespaced") else "Cluster"
