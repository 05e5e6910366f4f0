"""What is deployed: the values that the manifests are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from mews.harness.manifests.parts import Object
from mews.kube.runtimehook.port import HookPolicy
from mews.kube.system.deployment import ComponentDeployment, SystemDeployment
from mews.kube.system.facility import Facility
from mews.kube.system.system import Component, Pooled, System


@dataclass(frozen=True, slots=True)
class ReplacementProgram:
    """A program of the user's.

    Without ``image``, ``argv`` runs in our component image under the keeper, in the folder of its ``files`` (path ->
    content); else it is that image's arguments. ``pull`` is that image's policy where it is not Kubernetes' own, and
    ``identity`` what Docker calls its content. ``port``: that of an extender. ``foreign``: it is a component of a
    system itself, which lies on the control plane's node, and whose pod starts it again when it ends.
    """

    argv: Sequence[str]
    _: KW_ONLY
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    image: str | None = None
    pull: str | None = None
    identity: str = ""
    port: int | None = None
    foreign: bool = False

    @property
    def texts(self) -> Sequence[str]:
        """Its words, in which names in braces are filled in."""
        return [*self.argv, *self.env.values()]

    @property
    def kept(self) -> bool:
        """Whether a harness can kill and start it."""
        return self.image is None


@dataclass(frozen=True, slots=True)
class InstalledSystem:
    """A system with its configuration for this cluster, and those of its components that run there, by their names in
    the stack: none of a system whose configuration alone is there, for programs of the user's to read."""

    system: System
    configuration: Any
    components: Mapping[str, Component] = field(default_factory=dict)

    @property
    def deployment(self) -> SystemDeployment:
        """What a real cluster needs of it."""
        found = self.system.deployment
        assert found is not None, "a system that cannot be deployed is refused before"
        return found

    @property
    def pooled(self) -> Pooled | None:
        """What it moves between nodes, if it does."""
        return self.system.pooled(self.configuration)

    @property
    def runtime_hooks(self) -> Mapping[str, HookPolicy]:
        """On which nodes it is asked about containers, and what becomes of them while it does not answer."""
        return self.system.runtime_hooks(self.configuration) if self.components else {}

    @property
    def document(self) -> Mapping[str, Any]:
        """Its configuration as the file that its components read."""
        return self.system.document(self.configuration)


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """Texts in PEM: a certificate, its key, and what to trust it by."""

    certificate: str
    key: str
    trusted: str


@dataclass(frozen=True, slots=True)
class StackSpec:
    """What is deployed.

    ``hardware`` is the inventory as a document; ``facility`` are its chassis and nodes as the components know them. Of
    ``systems`` the first is the default one, whether it runs or not. Components go by their names in the stack.
    ``pull`` is the image's pull policy; ``prefix`` that of cluster-wide names. ``tidy``: the nodes' files go with the
    stack.
    """

    namespace: str
    image: str
    hardware: Mapping[str, Any]
    facility: Facility
    systems: Sequence[InstalledSystem]
    token: str
    pull: str = "IfNotPresent"
    prefix: str = ""
    speed: float = 1.0
    seed: int | str = 0
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Node -> host of the hardware."""
    tidy: bool = False
    programs: Mapping[str, ReplacementProgram] = field(default_factory=dict)
    """Component -> the user's program in its place."""
    documents: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    """Component -> the objects that the user brings instead, as written (``replacements.manifest_objects``)."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Component -> where the scenario says what is in its place."""
    extenders: Sequence[ReplacementProgram | None] = ()
    """Those of the default scheduler; None for one that runs already."""
    named: Sequence[str] = ()
    """What the scenario calls the namespace."""
    allow_hosts: Sequence[str] = ()
    """Names by which requests call the servers in the pods, besides those of their services."""
    certificate: ServerCertificate | None = None
    """Where components reach the chassis under TLS."""
    service_certificate: ServerCertificate | None = None
    """Under which components serve others."""

    struck: frozenset[str] = frozenset()
    """Components between which and the API faults may stand."""

    def components(self) -> Iterator[tuple[str, Component]]:
        """Yield all that run, ours or replaced, in order."""
        for installed in self.systems:
            yield from installed.components.items()

    @property
    def runtime_hooks(self) -> Mapping[str, HookPolicy]:
        """The nodes on which a system is asked about containers, and what becomes of them while it does not answer."""
        return {node: policy for each in self.systems for node, policy in each.runtime_hooks.items()}

    @property
    def by_claims(self) -> bool:
        """Whether a system gives containers devices by resource claims."""
        return any(each.deployment.by_claims for each in self.systems if each.components)

    @property
    def foreign_claims(self) -> bool:
        """Whether a driver of the user's, in the place of ours, gives containers their claims' devices."""
        drivers = (each.components for each in self.systems if each.deployment.by_claims)
        return any(self.is_replaced(name) for found in drivers for name in found if self._uses_kubelet(name))

    @property
    def shows_users(self) -> bool:
        """Whether what containers find in their environment says which devices of a host they use."""
        return self.by_claims or any(
            each.system.judging.part_of is not None for each in self.systems if each.components
        )

    def component(self, name: str) -> Component | None:
        """Return the running component of that name."""
        return dict(self.components()).get(name)

    def system_of(self, name: str) -> InstalledSystem:
        """Return the system of that component. For what belongs to none, the one whose configuration it is given: the
        first that runs and pools devices, else the first that runs, else the default one."""
        own = [each for each in self.systems if name in each.components]
        running = [each for each in self.systems if each.components]
        pooling = [each for each in running if each.pooled is not None]
        return [*own, *pooling, *running, *self.systems][0]

    def is_replaced(self, name: str) -> bool:
        """Return whether a program or a manifest of the user's is in that component's place."""
        return name in self.programs or name in self.documents

    def runs_foreign(self, name: str) -> bool:
        """Return whether that component is itself a program of others (``Component.program``)."""
        program = self.programs.get(name)
        return program is not None and program.foreign

    def nodes_of(self, name: str) -> Sequence[str]:
        """Return the nodes that have a component of that name each; none for one that there is one of."""
        component = self.component(name)
        if component is None or component.nodes is None:
            return ()
        return component.nodes(self.system_of(name).configuration)

    def systems_read(self, name: str, texts: Iterable[str]) -> list[InstalledSystem]:
        """Return whose configuration is read in that component's place: its own system's, and those that texts name."""
        own, whole = self.system_of(name), "\n".join(texts)
        others = (each for each in self.systems if each is not own)
        return [own, *(each for each in others if f"{{config:{each.system.name}}}" in whole)]

    def where(self, name: str) -> str:
        """Return where the scenario says what is in that component's place."""
        return self.written.get(name, f"stack.replace.{name}")

    def per_node(self) -> Sequence[str]:
        """Return the names of the components that each node has."""
        return [name for name, component in self.components() if component.per_node]

    def node_component(self) -> str | None:
        """Return the component through which what happens on a node is known: the first that uses its kubelet's
        folders."""
        return next((name for name in self.per_node() if self._uses_kubelet(name)), None)

    def managed(self, hosts: Mapping[str, str]) -> set[str]:
        """Return those of the hosts whose nodes have that component; others have an agent alone."""
        nodes = self.nodes_of(self.node_component() or "")
        return {host for host, node in hosts.items() if node in nodes}

    def registering(self, hosts: Mapping[str, str]) -> set[str]:
        """Return those of the hosts on which that component offers its kubelet devices."""
        component = self.component(self.node_component() or "")
        return self.managed(hosts) if component is not None and deployment_of(component).registers else set()

    def nodes_apart(self) -> Sequence[str]:
        """Nodes on which other components use the kubelet's folders, and that one is not."""
        first = self.node_component()
        of = [self.nodes_of(name) for name in self.per_node() if name != first and self._uses_kubelet(name)]
        there = set(self.nodes_of(first)) if first is not None else set()
        return [node for node in dict.fromkeys(node for nodes in of for node in nodes) if node not in there]

    def _uses_kubelet(self, name: str) -> bool:
        component = self.component(name)
        return component is not None and deployment_of(component).kubelet_folders


def deployment_of(component: Component) -> ComponentDeployment:
    """Return how a pod runs that component."""
    found = component.deployment
    assert found is not None, "a component that cannot be deployed is refused before"
    return found
