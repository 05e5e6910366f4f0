"""The system toy: one component, which writes an annotation on every pod that it sees.

It knows Kubernetes alone: it takes time from the running loop, and reaches the world through what it is given.
"""

import asyncio

from pydantic import BaseModel, ConfigDict

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import annotations_of, name_of, namespace_of
from mews.kube.api.resources import PODS
from mews.kube.client.informer import Informer
from mews.kube.system.system import Component, System


class ToyOptions(BaseModel):
    """What a scenario may say under ``stack: {toy: …}``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    annotation: str = "toy.dev/seen"


class Marker:
    """The component. It runs until it is cancelled, and can be killed at any point and started anew."""

    def __init__(self, context, options):
        self._kube = context.kube
        self._annotation = options.annotation
        self._pods = Informer(context.kube, PODS)
        self._new = asyncio.Queue()
        self._pods.on_change(self._on_change)

    async def run(self):
        """Mark pods as they come."""
        watching = asyncio.create_task(self._pods.run())
        try:
            while True:
                await self._mark(await self._new.get())
        finally:
            watching.cancel()

    def _on_change(self, old, new):
        if new is not None and self._annotation not in annotations_of(new):
            self._new.put_nowait(new)

    async def _mark(self, pod):
        change = {"metadata": {"annotations": {self._annotation: "yes"}}}
        try:
            await self._kube.patch(PODS, name_of(pod), change, namespace=namespace_of(pod))
        except NotFoundError:
            return


SYSTEM = System(
    name="toy",
    summary="writes an annotation on every pod",
    options=ToyOptions,
    configure=lambda options, facility: options,
    components=(Component("toy-marker", lambda ports, options: Marker(ports.context, options)),),
)
