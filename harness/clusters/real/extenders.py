"""The extenders that a stack's systems bring, as kube-scheduler of a real cluster asks them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from mews.harness.manifests.kube_scheduler import at_address
from mews.harness.manifests.services import extender_entries
from mews.harness.manifests.spec import StackSpec
from mews.kube.api.resources import SERVICES
from mews.kube.client.port import KubeApi


async def addressed_extenders(stack: StackSpec, kube: KubeApi) -> list[dict[str, Any]]:
    """Return their entries, with the addresses of their services: kube-scheduler is on the network of its node, where
    no service has a name."""
    found = []
    for entry in extender_entries(stack):
        name, _, _ = (urlsplit(entry["urlPrefix"]).hostname or "").partition(".")
        service = await kube.get(SERVICES, name, namespace=stack.namespace)
        found.append(at_address(entry, service["spec"]["clusterIP"]))
    return found
