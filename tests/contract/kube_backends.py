"""Backends of the KubeApi suite: each runs a check in a namespace of its own that is gone afterwards."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Protocol

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.embedded.api import InProcessKube
from mews.harness.clusters.embedded.store import Store
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.port import KubeApi

Check = Callable[[KubeApi], Awaitable[None]]
NAMESPACE = {"metadata": {"name": "suite"}}


class Backend(Protocol):
    """Runs checks against one implementation."""

    def run(self, check: Check) -> None: ...


class InProcess:
    """The store in virtual time."""

    def run(self, check: Check) -> None:
        async def main() -> None:
            kube = InProcessKube(Store(virtual_clock().now, random.Random(1)))
            await kube.create(NAMESPACES, NAMESPACE)
            await check(kube)

        run_virtual(main)
