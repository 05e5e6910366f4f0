"""What pods asked of a GPU never exceeds it. What they use is another matter: nothing isolates them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, node_name_of, uid_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.records import Assumption, assumption


class _Share(Struct):
    """What a container was told of its GPU."""

    pod: str
    gpu: str
    index: str
    memory: int
    of: int
    line: Line


class MemoryAsked(Invariant[RunState]):
    """The variables of running containers show how much memory of a GPU each was given. The annotations of a pod must
    agree with them once ``ASSIGNED`` is true. ``known`` states why the published system breaks the law by design."""

    number = 11
    name = "shared memory of a GPU is not given twice, and annotations say what was given"

    events = frozenset({("kubelet", "container-started")})

    def __init__(self, known: str = "") -> None:
        self._known = known
        self._shares: dict[tuple[str, str], _Share] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """A container starts, or a pod ends."""
        if line.event == "container-started":
            env = line.fields.get("env", {})
            if str(env.get(names.INDEX, "-1")) == "-1" or names.CONTAINER_MEMORY not in env:
                return
            uid, container = line.fields["uid"], line.fields["container"]
            self._shares[uid, container] = _Share(
                line.fields["pod"],
                _gpu_of(str(env[names.VISIBLE]), line.actor),
                str(env[names.INDEX]),
                int(env[names.CONTAINER_MEMORY]),
                int(env[names.DEVICE_MEMORY]),
                line,
            )
            yield from self._sums(line)

    def _sums(self, line: Line) -> Iterator[Breach]:
        sums: dict[str, int] = {}
        of: dict[str, int] = {}
        for share in self._shares.values():
            sums[share.gpu] = sums.get(share.gpu, 0) + share.memory
            of[share.gpu] = share.of
        for gpu, total in sorted(sums.items()):
            if total > of[gpu]:
                pods = sorted({share.pod for share in self._shares.values() if share.gpu == gpu})
                what = f"{gpu} has {of[gpu]} and was given for {total}: to {', '.join(pods)}"
                yield Breach((gpu, str(total)), what, line, known=self._known)

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Pods as they are now."""
        live = {uid_of(pod): pod for pod in objects.pods.values() if not is_terminal(pod)}
        self._shares = {slot: share for slot, share in self._shares.items() if slot[0] in live}
        for (uid, container), share in self._shares.items():
            decision = assumption(live[uid])
            if decision is not None and decision.assigned and not _agree(decision, share):
                what = (
                    f"{share.pod} ({container}) was given GPU {share.index} ({share.gpu}), "
                    f"and its annotations say {decision.index} ({decision.uuid})"
                )
                yield Breach((uid, container, "index"), what, share.line, known=self._known)
        yield from self._annotated(list(live.values()))

    def _annotated(self, pods: Collection[Object]) -> Iterator[Breach]:
        sums: dict[tuple[str, str], int] = {}
        of: dict[tuple[str, str], int] = {}
        for pod in pods:
            decision = assumption(pod)
            if decision is None or not decision.assigned or not node_name_of(pod):
                continue
            gpu = (node_name_of(pod), decision.uuid or str(decision.index))
            sums[gpu] = sums.get(gpu, 0) + decision.memory
            of[gpu] = int(annotations_of(pod).get(names.DEVICE_MEMORY, "0"))
        for place, total in sorted(sums.items()):
            if total > of[place]:
                node, name = place
                held = sorted(key_of(pod) for pod in pods if node_name_of(pod) == node and _names(pod, name))
                what = f"{name} of {node} has {of[place]} and pods ask {total} of it: {', '.join(held)}"
                yield Breach((node, name, str(total)), what, None, known=self._known)


def _gpu_of(visible: str, kubelet: str) -> str:
    """Return the GPU's UUID; where the published plugin tells a container its index, that index on the kubelet's
    node."""
    return f"{kubelet.partition('/')[2]}#{visible}" if visible.isdigit() else visible


def _agree(decision: Assumption, share: _Share) -> bool:
    """Return it by index, and by UUID where both have one."""
    has_both = decision.uuid and not decision.uuid.startswith("#") and "#" not in share.gpu
    return str(decision.index) == share.index and (decision.uuid == share.gpu or not has_both)


def _names(pod: Object, gpu: str) -> bool:
    decision = assumption(pod)
    return decision is not None and gpu in (decision.uuid, str(decision.index))
