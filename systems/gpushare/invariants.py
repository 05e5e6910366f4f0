"""What pods asked of a GPU never exceeds it. What they use is another matter: nothing isolates them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mews.kube.api.objects import Object, annotations_of, is_terminal, key_of, node_name_of, uid_of
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.records import assumption


@dataclass(slots=True)
class _Share:
    """What a container was told of its GPU."""

    pod: str
    gpu: str
    index: str
    memory: int
    of: int
    line: Line


class MemoryAsked(Invariant[RunState]):
    """By the variables of running containers, which say what they were given, and by the annotations of pods once
    ``ASSIGNED`` is true, which must say the same."""

    number = 11
    name = "shared memory of a GPU is not given twice, and annotations say what was given"

    def __init__(self) -> None:
        self._shares: dict[tuple[str, str], _Share] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """A container starts, or a pod ends."""
        if line.layer == "kubelet" and line.event == "container-started":
            env = line.fields.get("env", {})
            if str(env.get(names.INDEX, "-1")) == "-1" or names.CONTAINER_MEMORY not in env:
                return
            uid, container = line.fields["uid"], line.fields["container"]
            self._shares[uid, container] = _Share(
                line.fields["pod"],
                str(env[names.VISIBLE]),
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
                yield Breach((gpu, str(total)), what, line)

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Pods as they are now."""
        live = {uid_of(pod): pod for pod in objects.pods.values() if not is_terminal(pod)}
        self._shares = {slot: share for slot, share in self._shares.items() if slot[0] in live}
        for (uid, container), share in self._shares.items():
            said = assumption(live[uid])
            if (
                said is not None
                and said.assigned
                and (str(said.index), said.uuid or share.gpu) != (share.index, share.gpu)
            ):
                what = (
                    f"{share.pod} ({container}) was given GPU {share.index} ({share.gpu}), "
                    f"and its annotations say {said.index} ({said.uuid})"
                )
                yield Breach((uid, container, "index"), what, share.line)
        yield from self._annotated(list(live.values()))

    def _annotated(self, pods: Collection[Object]) -> Iterator[Breach]:
        sums: dict[tuple[str, str], int] = {}
        of: dict[tuple[str, str], int] = {}
        for pod in pods:
            said = assumption(pod)
            if said is None or not said.assigned or not node_name_of(pod):
                continue
            gpu = (node_name_of(pod), said.uuid or str(said.index))
            sums[gpu] = sums.get(gpu, 0) + said.memory
            of[gpu] = int(annotations_of(pod).get(names.DEVICE_MEMORY, "0"))
        for (node, gpu), total in sorted(sums.items()):
            if total > of[node, gpu]:
                held = [key_of(pod) for pod in pods if _names(pod, gpu)]
                what = f"{gpu} of {node} has {of[node, gpu]} and pods ask {total} of it: {', '.join(sorted(held))}"
                yield Breach((node, gpu, str(total)), what, None)


def _names(pod: Object, gpu: str) -> bool:
    said = assumption(pod)
    return said is not None and gpu in (said.uuid, str(said.index))
