"""What is there before the first component starts: the systems' namespaces, and a class for claims."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from mews.kube.api.errors import AlreadyExistsError
from mews.kube.api.resources import NAMESPACES
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
