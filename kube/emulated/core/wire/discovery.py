"""What is served: legacy and aggregated discovery (contract apiserver.md section 1)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from mews.kube.emulated.core.store.kinds import GroupVersion, Kind, Registry, Subresource
from mews.kube.emulated.core.wire.negotiation import Form
from mews.kube.releases.release_data import git_version, minor

AGGREGATED = "APIGroupDiscoveryList"

Body = dict[str, Any]


def wants_aggregated(form: Form) -> bool:
    """Return whether the client asks for the aggregated form."""
    return form.kind == AGGREGATED and form.group == "apidiscovery.k8s.io" and form.version == "v2"


def aggregated(kinds: Registry, *, core: bool, version: str) -> Body:
    """Return all groups with all their resources in one document."""
    groups: dict[str, list[Body]] = {}
    for (group, group_version), members in kinds.group_versions().items():
        if (group == "") != core:
            continue
        resources = [_aggregated_resource(kind) for kind in _sorted(members)]
        groups.setdefault(group, []).append({"version": group_version, "resources": resources, "freshness": "Current"})
    items = [{"metadata": {"name": group} if group else {}, "versions": versions} for group, versions in groups.items()]
    return {"kind": AGGREGATED, "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}, "items": items}


def _sorted(kinds: Sequence[Kind]) -> list[Kind]:
    return sorted(kinds, key=lambda kind: kind.plural)


def _aggregated_resource(kind: Kind) -> Body:
    resource = kind.resource
    body: Body = {
        "resource": resource.plural,
        "responseKind": _response_kind(kind, resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        body["shortNames"] = list(kind.short_names)
    if kind.categories:
        body["categories"] = list(kind.categories)
    if kind.subresources:
        body["subresources"] = [_aggregated_subresource(kind, sub) for sub in _subresources(kind)]
    return body


def _subresources(kind: Kind) -> list[Subresource]:
    return sorted(kind.subresources, key=lambda sub: sub.name)


def _aggregated_subresource(kind: Kind, sub: Subresource) -> Body:
    response = _response_kind(kind, sub.group, sub.version, sub.kind)
    return {"subresource": sub.name, "responseKind": response, "verbs": list(sub.verbs)}


def _response_kind(kind: Kind, group: str, version: str, name: str) -> Body:
    """Built-in kinds name group and version only where they are not those of the document."""
    if not kind.custom and (group, version) == (kind.resource.group, kind.resource.version):
        group = version = ""
    return {"group": group, "version": version, "kind": name}


def core_versions(address: str) -> Body:
    """Return the body of GET /api; ``address``: host and port of the server."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(kinds: Registry) -> Body:
    """Return the body of GET /apis."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(_groups(kinds))}


def group(kinds: Registry, name: str) -> Body | None:
    """GET /apis/<group>, None when it is not served."""
    found = next((body for body in _groups(kinds) if body["name"] == name), None)
    return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **found}


def _groups(kinds: Registry) -> Iterator[Body]:
    versions: dict[str, list[str]] = {}
    for name, version in kinds.group_versions():
        if name:
            versions.setdefault(name, []).append(version)
    for name, served in versions.items():
        shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in served]
        yield {"name": name, "versions": shown, "preferredVersion": shown[0]}


def resource_list(kinds: Registry, group_version: GroupVersion) -> Body | None:
    """GET /api/v1 or /apis/<group>/<version>, None when it is not served."""
    members = kinds.group_versions().get(group_version)
    if members is None:
        return None
    name, version = group_version
    resources = [body for kind in _sorted(members) for body in _resources(kind)]
    if not name:  # without apiVersion, as ever since there were no groups
        return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
    text = f"{name}/{version}"
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": text, "resources": resources}


def _resources(kind: Kind) -> Iterator[Body]:
    resource = kind.resource
    body: Body = {
        "name": resource.plural,
        "singularName": kind.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        body["shortNames"] = list(kind.short_names)
    if kind.categories:
        body["categories"] = list(kind.categories)
    if "get" in kind.verbs and "create" in kind.verbs:
        body["storageVersionHash"] = _storage_version_hash(kind)
    yield body
    for sub in _subresources(kind):
        named = {"name": f"{resource.plural}/{sub.name}", "singularName": "", "namespaced": resource.namespaced}
        elsewhere = (sub.group, sub.version) != (resource.group, resource.version)
        group_version = {"group": sub.group, "version": sub.version} if elsewhere else {}
        yield {**named, **group_version, "kind": sub.kind, "verbs": list(sub.verbs)}


def _storage_version_hash(kind: Kind) -> str:
    """Return what tells a client that objects are stored in another version (k8s.io/apiserver endpoints/discovery)."""
    text = "/".join((kind.storage[0], kind.stored_version or kind.resource.version, kind.resource.kind))
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def root_paths(kinds: Registry, others: Sequence[str]) -> Body:
    """Return the body of GET /; ``others``: the paths of health checks."""
    paths = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", *others]
    paths += ["/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/openid/v1/jwks", "/version"]
    for name, version in kinds.group_versions():
        if name:
            paths += [path for path in (f"/apis/{name}", f"/apis/{name}/{version}") if path not in paths]
    return {"paths": sorted(paths)}


def version(release: str) -> Body:
    """GET /version: the release whose answers are given here."""
    number = minor(release)
    return {
        "major": "1",
        "minor": str(number),
        "emulationMajor": "1",
        "emulationMinor": str(number),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(number - 1),
        "gitVersion": git_version(release),
        "gitCommit": "mews",
        "gitTreeState": "clean",
        "buildDate": "2025-11-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "linux/amd64",
    }
