"""Installing a kind that a system brings: its CustomResourceDefinition."""

from __future__ import annotations

import contextlib

from mews.kube.api.errors import AlreadyExistsError
from mews.kube.api.objects import Object, condition_of, name_of
from mews.kube.api.resources import CRDS
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest

_POLL_S = 0.1


async def install_kind(kube: KubeApi, definition: Object) -> None:
    """Create the definition unless it is there, and wait until the server serves the kind."""
    with contextlib.suppress(AlreadyExistsError):
        await kube.create(CRDS, definition)
    await kind_established(kube, name_of(definition))


async def kind_established(kube: KubeApi, name: str) -> None:
    """Wait until the server serves the kind of the definition of that name."""
    while True:
        found = await kube.get(CRDS, name)
        established = condition_of(found, "Established")
        if established is not None and established.get("status") == "True":
            return
        await rest(_POLL_S)
