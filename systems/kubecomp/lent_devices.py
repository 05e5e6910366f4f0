"""The devices of a node that another component hands out in parts: asking it for one that is wanted elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, annotations_of
from mews.kube.api.resources import NODES
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.kube.deviceplugin.release import (
    DeviceAnswer,
    DeviceRequest,
    HolderRecord,
    asked_by,
    holder_record,
    requests_annotation,
)


class LentDevices:
    """One node's; ``changed`` is called when the holder answers, or its users change."""

    def __init__(self, context: Context, node: str, holder: str, changed: Callable[[], None]) -> None:
        self._context = context
        self._node = node
        self._holder = holder
        self._changed = changed
        self._record = HolderRecord()
        self._informer = Informer(context.kube, NODES, field_selector=f"metadata.name={node}")
        self._informer.on_change(self._on_node)

    async def run(self) -> None:
        """Keep current until cancelled."""
        await self._informer.run()

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        before, self._record = self._record, holder_record(new, self._holder)
        if self._record != before or old is None:
            self._changed()

    @property
    def users(self) -> Mapping[str, int]:
        """UUID -> how many pods use parts of it."""
        return self._record.users

    def answer(self, uuid: str, request: str) -> DeviceAnswer | None:
        """Return the holder's answer to that very request; None while there is none."""
        found = self._record.answers.get(uuid)
        return found if found is not None and found.request == request else None

    async def ask(self, wanted: Mapping[str, DeviceRequest]) -> None:
        """Let these requests (by UUID) stand, and no others; tried again by whoever calls again."""
        node = self._informer.get(self._node)
        if node is None:
            return
        annotation = requests_annotation(self._holder, wanted)
        if all(annotations_of(node).get(key) == text for key, text in annotation.items()):
            return
        before = asked_by(node, self._holder)
        try:
            await self._context.kube.patch(NODES, self._node, {"metadata": {"annotations": annotation}})
        except (ApiError, UnavailableError) as error:
            record(self._context.log, "holder-not-asked", holder=self._holder, error=str(error))
            return
        for uuid in sorted(wanted.keys() - before.keys()):
            record(self._context.log, "holder-asked", holder=self._holder, uuid=uuid, request=wanted[uuid].request)
