"""What the parts of the remediation are told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct, field

DEVICE, NODE = "device", "node"
IMMEDIATE, ALLOW_COMPLETION, DELETE_AFTER_TIMEOUT = "Immediate", "AllowCompletion", "DeleteAfterTimeout"
MODES = (IMMEDIATE, ALLOW_COMPLETION, DELETE_AFTER_TIMEOUT)
"""NVSentinel's eviction modes (docs/configuration/node-drainer.md, "Eviction Modes")."""
APPLICATION_XIDS = (13, 31, 43, 45, 68, 109)
"""XIDs that a program causes and not its GPU: as NVIDIA's device plugin has them (contract host.md section 3)."""


class RemediationConfig(Struct, frozen=True):
    """``scope``: ``node``, the node of a broken GPU is cordoned while it is mended; ``device``, the GPU alone is
    withheld. ``drain``: the pods that are sent away, those of the ``device`` or all of the ``node``. ``evictions``:
    namespace (or pattern) -> mode, the first that fits. ``grace_s``: of immediate evictions, None is the pod's own.
    ``delete_after_s``: from the beginning of an incident, for ``DeleteAfterTimeout``. ``kept``: namespaces whose pods
    stay. ``share``: the share of the nodes that may be worked on at a time, at least one. ``reset_s``: how long a reset
    may be refused or its GPU stay away. ``nodes``: those that are watched; ``lent``: node -> the system that hands out
    its devices in parts. ``nvidia_smi``, ``host_root``: the program and the host's files, for a process."""

    scope: str = NODE
    drain: str = DEVICE
    evictions: Mapping[str, str] = field(default_factory=lambda: {"*": IMMEDIATE})
    grace_s: int | None = None
    delete_after_s: float = 3600.0
    kept: tuple[str, ...] = ("kube-system",)
    share: float = 0.5
    poll_s: float = 1.0
    reset_s: float = 120.0
    nodes: tuple[str, ...] = ()
    lent: Mapping[str, str] = field(default_factory=dict)
    nvidia_smi: str = ""
    host_root: str = ""

    def mode(self, namespace: str) -> str:
        """Return how pods of that namespace are sent away; ``AllowCompletion`` where nothing fits."""
        fitting = (mode for pattern, mode in self.evictions.items() if fnmatchcase(namespace, pattern))
        return next(fitting, ALLOW_COMPLETION)

    def nodes_at_a_time(self, nodes: int) -> int:
        """Return how many of so many nodes may be worked on at a time."""
        return max(math.floor(self.share * nodes + 1e-9), 1)
