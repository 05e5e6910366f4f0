"""What is there before the first component starts: the systems' namespaces, a class for claims, and what manifests
bring."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from mews.harness.clusters.embedded.readiness import default_account_made
from mews.harness.scenario.kinds import complete, resource_of
from mews.kube.api.errors import AlreadyExistsError
from mews.kube.api.objects import Object
from mews.kube.api.resources import NAMESPACES, PODS
from mews.kube.client.port import KubeApi
from mews.kube.system.configured import ConfiguredSystem


async def make_first_objects(kube: KubeApi, systems: Sequence[ConfiguredSystem], *, folders: bool) -> None:
    """``folders``: claims of the default class get folders as volumes."""
    named = (each.system.namespace(each.configuration) for each in systems)
    for name in dict.fromkeys(filter(None, named)):
        with contextlib.suppress(AlreadyExistsError):
            await kube.create(NAMESPACES, {"metadata": {"name": name}})
    if folders:
        from mews.kube.emulated.controllers.folder_provisioner import make_default_class

        await make_default_class(kube)


async def create_manifests(kube: KubeApi, objects: Iterable[Object], *, accounts_are_made: bool) -> None:
    """``accounts_are_made``: a controller makes the accounts without which pods are refused."""
    for given in objects:
        resource = await resource_of(kube, given["kind"], given.get("apiVersion", ""))
        obj = complete(given, resource)
        namespace = obj["metadata"].get("namespace")
        if accounts_are_made and resource == PODS and obj["spec"].get("serviceAccountName", "default") == "default":
            await default_account_made(kube, namespace or "default")
        await kube.create(resource, obj, namespace=namespace, field_manager="mews")
