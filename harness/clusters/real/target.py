"""Where a stack goes in a real cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field


class DeploymentTarget(Struct, frozen=True):
    """Which cluster, namespace, nodes and names the stack of one scenario is deployed to.

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
