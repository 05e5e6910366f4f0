"""What is deployed: the values that the manifests are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from mews.harness.manifests.parts import Object
from mews.kube.system.deployment import ComponentDeployment, SystemDeployment
from mews.kube.system.facility import Facility
from mews.kube.system.system import Component, System


@dataclass(frozen=True, slots=True)
class ReplacementProgram:
    """A program of the user's.

    Without ``image``, ``argv`` runs in our component image under the keeper, in the folder of its ``files`` (path ->
    content); else it is that image's arguments. ``pull`` is that image's policy where it is not Kubernetes' own, and
    ``identity`` what Docker calls its content. ``port``: that of an extender.
    """

    argv: Sequence[str]
    _: KW_ONLY
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    image: str | None = None
    pull: str | None = None
    identity: str = ""
    port: int | None = None

    @property
    def kept(self) -> bool:
        """Whether a harness can kill and start it."""
        return self.image is None


@dataclass(frozen=True, slots=True)
class InstalledSystem:
    """A system with its configuration for this cluster, and those of its components that run there: none of a system
    whose configuration alone is there, for programs of the user's to read."""

    system: System
    configuration: Any
    components: Sequence[Component] = ()

    @property
    def deployment(self) -> SystemDeployment:
        """What a real cluster needs of it."""
        found = self.system.deployment
        assert found is not None, "a system that cannot be deployed is refused before"
        return found

    @property
    def document(self) -> Mapping[str, Any]:
        """Its configuration as the file that its components read."""
        return self.system.document(self.configuration)


@dataclass(frozen=True, slots=True)
class StackSpec:
    """What is deployed.

    ``hardware`` is the inventory as a document; ``facility`` are its chassis as the components reach them, and the
    nodes that are cabled to them. Of ``systems`` the first is the one whose configuration programs are given that
    replace no component of a system. ``pull`` is the image's pull policy; ``prefix`` that of cluster-wide names.
    ``tidy``: the nodes' files go with the stack.
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
    extenders: Sequence[ReplacementProgram | None] = ()
    """Those of the default scheduler; None for one that runs already."""
    named: Sequence[str] = ()
    """What the scenario calls the namespace."""

    def components(self) -> Iterator[tuple[InstalledSystem, Component]]:
        """All that run, ours or replaced, in order."""
        for installed in self.systems:
            for component in installed.components:
                yield installed, component

    def component(self, name: str) -> Component | None:
        """The running component of that name."""
        return next((component for _, component in self.components() if component.name == name), None)

    def system_of(self, name: str) -> InstalledSystem:
        """The system that the component of that name belongs to; the first for what belongs to none."""
        return next((installed for installed, each in self.components() if each.name == name), self.systems[0])

    def is_replaced(self, name: str) -> bool:
        """Whether a program or a manifest of the user's is in that component's place."""
        return name in self.programs or name in self.documents

    def nodes_of(self, name: str) -> Sequence[str]:
        """The nodes that have a component of that name each; none for one that there is one of."""
        component = self.component(name)
        if component is None or component.nodes is None:
            return ()
        return component.nodes(self.system_of(name).configuration)

    def per_node(self) -> Sequence[str]:
        """The names of the components that each node has."""
        return [component.name for _, component in self.components() if component.per_node]

    def node_component(self) -> str | None:
        """The component through which what happens on a node is known: the first that uses its kubelet's folders."""
        found = (each.name for _, each in self.components() if each.per_node and deployment_of(each).kubelet_folders)
        return next(found, None)


def deployment_of(component: Component) -> ComponentDeployment:
    """How a pod runs that component."""
    found = component.deployment
    assert found is not None, "a component that cannot be deployed is refused before"
    return found
