"""How a real cluster runs a system: what its manifests, installation and removal need to know. Frozen values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource

Rule = Mapping[str, Sequence[str]]
"""One rule of a Role or ClusterRole (rbac.authorization.k8s.io/v1 PolicyRule)."""

CONFIG, RECORDS = "{config}", "{records}"
"""In the argv of a component: where its system's configuration file is, and where its structured log records go."""

CERTIFICATE, KEY, SERVICE_HOST = "{certificate}", "{key}", "{service}"
"""In the argv of a component that serves others: the files by which it speaks TLS, and the name it is called by."""
AUTHORITY = "{authority}"
"""Likewise the file of whom to trust for it."""

ROOTLESS: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of a container that touches nothing of its node."""

ON_NODE: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsUser": 0,
}
"""That of one that uses the kubelet's folders and sockets, which are root's; no capability is needed for them."""


def rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    """Return a rule for resources of one API group ("" is the core group)."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


_SEEN = ("list", "watch")
SCHEDULER_RULES: tuple[Rule, ...] = (
    rule("", ["pods"], ["get", *_SEEN, "patch", "delete"]),  # annotations; preemption
    rule("", ["pods/binding"], ["create"]),
    rule("", ["pods/status"], ["patch"]),
    rule("", ["nodes", "namespaces"], _SEEN),
    rule("", ["events"], ["create", "patch"]),
    rule("events.k8s.io", ["events"], ["create", "patch"]),
    rule("", ["persistentvolumeclaims", "persistentvolumes"], [*_SEEN, "update"]),
    rule(
        "storage.k8s.io",
        ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"],
        _SEEN,
    ),
    rule("resource.k8s.io", ["resourceclaims", "resourceslices", "deviceclasses"], _SEEN),
)
"""What a scheduler of ours may do: bind pods, and read what its plugins look at."""


class ComponentDeployment(Struct, frozen=True):
    """How a pod runs one component of a system, with an account of the component's name.

    ``argv`` follows ``python3``, with ``CONFIG`` and ``RECORDS`` filled in. The account has the rules ``everywhere``
    for all namespaces and ``in_namespace`` for the system's own. ``security`` is the container's security context.
    ``kubelet_folders``: it has its node's device-plugins and pod-resources. ``host_files``: it has its node's emulated
    files and NVML, to read and to write (``Facility.host_files``). ``chassis``: it logs in at chassis, and is
    given the password. ``metrics_port`` serves /metrics, where it has one. ``part_flags``: which flag names the user's
    callable for a part of it (``Component.parts``); the callable's options follow as JSON in ``FLAG-options``.
    ``in_others``: rules in further namespaces, by their names. ``service_port``: where it answers the requests of its
    service (``Component.service``), under TLS. ``node_folders``: folders of its node that it has at the same places, to
    read and to write; they are made where they are not. ``registers``: one that uses the kubelet's folders offers it
    devices there. ``off_control_plane``: it runs on a worker, as any pod does,
    else beside the API server where that may be. ``where_lent``: rules besides, where another system hands out in
    parts what this one's pools (``Pooled.unannounced``); ``where_remedied``: where another one remedies its GPUs.
    """

    argv: Sequence[str]
    everywhere: Sequence[Rule] = ()
    in_namespace: Sequence[Rule] = ()
    security: Mapping[str, Any] = field(default_factory=lambda: ROOTLESS)
    kubelet_folders: bool = False
    host_files: bool = False
    chassis: bool = False
    metrics_port: int | None = None
    in_others: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    service_port: int | None = None
    part_flags: Mapping[str, str] = field(default_factory=dict)
    off_control_plane: bool = False
    node_folders: Sequence[str] = ()
    registers: bool = True
    where_lent: Sequence[Rule] = ()
    where_remedied: Sequence[Rule] = ()

    @property
    def writes_records(self) -> bool:
        """Whether it can be told where its structured log records go."""
        return any(RECORDS in word for word in self.argv)


class SystemDeployment(Struct, frozen=True):
    """What a real cluster needs of a system as a whole.

    Its configuration is the file ``config_path`` in containers, of the ConfigMap ``config_map``. ``owner`` is the
    component whose label is on what no single component has: the configuration, and the kinds. ``swept`` are the kinds
    of whose objects none is left when the next scenario begins. ``exclusive`` says why the system may not run in
    somebody's cluster; "": it may.

    ``notes`` are the ConfigMaps that it writes into namespaces of others: such a namespace -> with what their names may
    begin. None is left when the next scenario begins. ``on_nodes``: with what the names begin of the resources and
    labels that it writes onto nodes; the same holds for them.

    ``by_claims``: containers get its devices by resource claims, and their environment says which.

    ``pod_templates`` finds the pod templates in an object of the system's kinds: images are filled in there as in a
    Deployment.
    """

    config_map: str
    config_path: str
    owner: str
    swept: Callable[[], Sequence[Resource]] = lambda: ()
    exclusive: str = ""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    on_nodes: Sequence[str] = ()
    by_claims: bool = False
    pod_templates: Callable[[Object], Iterable[Any]] = lambda obj: ()

    @property
    def config_folder(self) -> str:
        """Where the configuration is mounted."""
        return self.config_path.rpartition("/")[0]

    @property
    def config_file(self) -> str:
        """The configuration's name in that folder."""
        return self.config_path.rpartition("/")[2]
