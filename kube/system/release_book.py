"""What a holder of devices has been asked for and has answered (``mews.kube.deviceplugin.release``), on one node.

The answers stand on the Node, so that an incarnation that begins after a crash goes on with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mews.kube.api.objects import Object
from mews.kube.component import Context, record
from mews.kube.deviceplugin.release import (
    DeviceAnswer,
    DeviceRequest,
    HolderRecord,
    ReleaseState,
    device_requests,
    holder_record,
)
from mews.kube.system.files import FileTree

_GPUS = "proc/driver/nvidia/gpus"
_GOING = (ReleaseState.RELEASING, ReleaseState.RELEASED)


class ReleaseBook:
    """The requests to one holder and its answers. ``about`` stands in each log record of an answer."""

    def __init__(self, context: Context, holder: str, about: Mapping[str, str]) -> None:
        self._context = context
        self._holder = holder
        self._about = about
        self.requests: Mapping[str, DeviceRequest] = {}
        """The requests on the Node, by UUID."""
        self._answers: dict[str, DeviceAnswer] = {}
        self._resumed = False

    def look_at(self, node: Object | None) -> None:
        """Take in the requests on the Node, and the first time what an earlier incarnation answered."""
        self.requests = device_requests(node, self._holder)
        if not self._resumed and node is not None:
            self._resumed = True
            self._answers = dict(holder_record(node, self._holder).answers)

    @property
    def withheld(self) -> frozenset[str]:
        """UUIDs of the GPUs that are on their way out, and are given to nobody."""
        return frozenset(uuid for uuid, answer in self._answers.items() if answer.state in _GOING)

    def record(self, users: Mapping[str, int]) -> HolderRecord:
        """Return what is to be written on the Node."""
        return HolderRecord(users, dict(self._answers))

    def answer(self, uuid: str) -> DeviceAnswer | None:
        """Return the answer that stands for that GPU."""
        return self._answers.get(uuid)

    def standing(self) -> dict[str, DeviceRequest]:
        """Return the requests that have not lapsed."""
        now_s = self._context.clock.now()
        return {uuid: request for uuid, request in self.requests.items() if now_s < request.until_s}

    def forget(self) -> None:
        """Drop the answers to requests that do not stand any more: these GPUs may be given again."""
        standing = self.standing()
        for uuid in [uuid for uuid in self._answers if uuid not in standing]:
            del self._answers[uuid]
            record(self._context.log, "release-over", **self._about, gpu=uuid)

    def give(self, uuid: str, answer: DeviceAnswer) -> None:
        """Answer, unless that answer stands already."""
        if self._answers.get(uuid) == answer:
            return
        self._answers[uuid] = answer
        record(self._context.log, answer.state.value, **self._about, gpu=uuid, reason=answer.reason)

    def refuse(self, uuid: str, request: DeviceRequest, reason: str) -> None:
        """Refuse a request."""
        self.give(uuid, DeviceAnswer(request.request, ReleaseState.REFUSED, reason))

    async def may_open(self, files: FileTree | None) -> bool:
        """Return whether NVML may be opened: no GPU that was released is still on this host, by its files."""
        self.forget()
        released = {uuid for uuid, answer in self._answers.items() if answer.state is ReleaseState.RELEASED}
        return not released or not released & await _present(files, released)


async def _present(files: FileTree | None, uuids: Collection[str]) -> set[str]:
    """Return those of these GPUs that the driver has; all, while nobody can say."""
    if files is None:
        return set(uuids)
    found: set[str] = set()
    try:
        for place in await files.names(_GPUS):
            try:
                text = (await files.read(f"{_GPUS}/{place}/information")).decode("utf-8", "replace")
            except (FileNotFoundError, NotADirectoryError):
                continue
            found |= set(uuids) & set(text.split())
    except (FileNotFoundError, NotADirectoryError):
        return found  # the driver has none
    except OSError:
        return set(uuids)
    return found
