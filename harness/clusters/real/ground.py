"""What differs between a kind cluster of our own and somebody's cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Place:
    """Where a stack goes.

    ``nodes`` maps the hardware's hosts to nodes; ``ours`` are all nodes that may be cordoned while a scenario has no
    host for them; ``pull`` is the image's pull policy; ``prefix`` that of cluster-wide names. ``namespaces`` maps those
    that scenarios name to real ones; what lies in other namespaces is not looked at where there is such a map.
    ``mark`` is the value of the label ``mews.dev/run`` on all that scenarios create, where it must be found again;
    ``tidy``: the nodes' files of ours go with the stack.
    """

    kubeconfig: Path | None
    context: str | None
    namespace: str
    image: str
    nodes: Mapping[str, str]
    ours: Sequence[str] = ()
    pull: str = "IfNotPresent"
    prefix: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict)
    mark: str | None = None
    tidy: bool = False


class Ground(Protocol):
    """The machines below the cluster."""

    name: str
    place: Place

    async def kill(self, component: str) -> None:
        """Kill -9 ``kubelet/<host>`` or ``default-scheduler``, and keep it down.

        Raises Lacking where nobody may.
        """
        ...

    async def start(self, component: str) -> None:
        """Start it again.

        Raises Lacking where nobody may.
        """
        ...

    async def restore(self) -> None:
        """Let the default scheduler be again what it was before any scenario: not killed, without extenders. Soon."""
        ...

    async def extend(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Give a restored default scheduler extenders (entries of KubeSchedulerConfiguration), and wait until it has
        them; none: until it is restored.

        Raises Lacks, Lacking where nobody may.
        """
        ...

    async def logs(self) -> Mapping[str, str]:
        """Logs that the API does not have, by file name: the kubelets'."""
        ...
