"""Which steps of the paper's workflows (Figs. 3 and 4) the lines of a journal are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.records import DST_NODE, EVENT_REASON

SUBMITTED = "Fig. 3: 1; Fig. 4: 1"
DESIGNATED = "Fig. 3: 2, 3; Fig. 4: 2"
BROADCAST = "Fig. 3: 4; Fig. 4: 3"
MOVED = "Fig. 3: 5; Fig. 4: 4"
ANNOUNCED = "Fig. 3: 6; Fig. 4: 5, 6"
NOTICED = "Fig. 3: 7, 8, 9; Fig. 4: 7"
AT_HAND = "Fig. 3: 2, 3, 9; Fig. 4: 2"
"""Of a pod that is bound to what is there: nothing was to be reconfigured, and nothing to be noticed."""
ALLOCATED = "Fig. 4: 8"
DEPLOYED = "Fig. 3: 10"


def steps(config: KubeCompConfig, lines: Iterable[Line]) -> Mapping[int, str]:
    """Number of a line -> its steps. A detach is one of them once its device is attached where a pod waits for it: what
    is detached for nobody (by an operator, say) is none."""
    walk = _Walk(config)
    for line in lines:
        walk.see(line)
    return walk.found


class _Walk:
    """What is known of the pods that ask for pooled devices, and of the devices on their way, line after line."""

    def __init__(self, config: KubeCompConfig) -> None:
        self._config = config
        self.found: dict[int, str] = {}
        self._pods: set[str] = set()
        self._waiting: dict[str, str] = {}
        """Pod -> the node that is to be composed for it."""
        self._leaving: dict[str, list[int]] = {}
        """Device -> the lines of its last detach."""
        self._composed: set[str] = set()
        """Nodes that got a device which they have not announced yet."""
        self._running: set[str] = set()
        self._seen = {
            ("api", "created"): self._created,
            ("api", "annotations"): self._annotated,
            ("api", "event"): self._broadcast,
            ("api", "bound"): self._bound,
            ("api", "deleted"): self._deleted,
            ("chassis", "detach-begun"): self._leaves,
            ("chassis", "detached"): self._leaves,
            ("chassis", "attach-begun"): self._comes,
            ("chassis", "attached"): self._comes,
            ("kubelet", "devices"): self._announced,
            ("kubelet", "allocated"): self._allocated,
            ("kubelet", "container-started"): self._started,
        }

    def see(self, line: Line) -> None:
        """One line more."""
        look = self._seen.get((line.layer, line.event))
        if look is not None:
            look(line)

    def _created(self, line: Line) -> None:
        asks = self._config.resource in (line.fields.get("requests") or {})
        if asks and line.fields.get("scheduler") == self._config.scheduler_name:
            self._pods.add(line.actor)
            self.found[line.number] = SUBMITTED

    def _annotated(self, line: Line) -> None:
        node = line.fields["annotations"].get(DST_NODE)
        if node and line.actor in self._pods:
            self._waiting[line.actor] = str(node)
            self.found[line.number] = DESIGNATED

    def _broadcast(self, line: Line) -> None:
        if line.fields.get("reason") == EVENT_REASON and line.fields.get("object") in self._pods:
            self.found[line.number] = BROADCAST

    def _leaves(self, line: Line) -> None:
        if line.event == "detach-begun":
            self._leaving[line.fields["gpuid"]] = []
        self._leaving.setdefault(line.fields["gpuid"], []).append(line.number)

    def _comes(self, line: Line) -> None:
        host = line.fields.get("host")
        if host not in self._waiting.values():
            return
        for number in (*self._leaving.pop(line.fields["gpuid"], ()), line.number):
            self.found[number] = MOVED
        if line.event == "attached":
            self._composed.add(str(host))

    def _announced(self, line: Line) -> None:
        host = line.actor.removeprefix("kubelet/")
        if host in self._composed and line.fields.get("resource") == self._config.resource:
            self._composed.discard(host)
            self.found[line.number] = ANNOUNCED

    def _bound(self, line: Line) -> None:
        if line.actor in self._pods:
            self.found[line.number] = AT_HAND if self._waiting.pop(line.actor, None) is None else NOTICED

    def _deleted(self, line: Line) -> None:
        self._pods.discard(line.actor)
        self._waiting.pop(line.actor, None)
        self._running.discard(line.actor)

    def _allocated(self, line: Line) -> None:
        if self._pod_of(line) in self._pods and line.fields.get("resource") == self._config.resource:
            self.found[line.number] = ALLOCATED

    def _started(self, line: Line) -> None:
        pod = self._pod_of(line)
        if pod in self._pods and pod not in self._running:
            self._running.add(pod)
            self.found[line.number] = DEPLOYED

    @staticmethod
    def _pod_of(line: Line) -> str:
        return f"pod/{line.fields.get('pod')}"
