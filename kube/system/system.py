"""One value that says everything about a published system."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic

from msgspec import Struct, field

from mews.kube.system.system_parts import ConfigT, OptionsT, SystemJudging, SystemMeasuring, SystemStudies

if TYPE_CHECKING:  # a system is read by every command: what its parts work with is imported where they do
    from mews.kube.api.objects import Object
    from mews.kube.api.resources import Resource
    from mews.kube.component import Runnable
    from mews.kube.runtimehook.port import HookPolicy
    from mews.kube.system.command import Command
    from mews.kube.system.deployment import ComponentDeployment, SystemDeployment
    from mews.kube.system.facility import Facility
    from mews.kube.system.foreign import ForeignProgram, KubernetesNeeds
    from mews.kube.system.ports import Ports
    from mews.kube.system.program import PlayedProgram
    from mews.kube.system.services import ExtenderService


def in_module(module: str, name: str) -> Callable[[], Any]:
    """Return what imports ``name`` from that module when it is asked for: experiments and simulations take long to
    import, and every command reads the systems."""
    return lambda: getattr(import_module(module), name)


KindLine = tuple[str, str, dict[str, Any]]
"""A journal line beside its time and layer: actor, event, fields."""


def nothing_awaited(pod: Object, resource: str) -> str:
    """Return that of a system whose pods carry no word of what is moved for them."""
    return ""


class Pooled(Struct, frozen=True):
    """What a configured system moves between nodes: the invariants count it per pool, and a cluster is ready once
    nodes announce it. ``device_env`` names the variable by which a container learns the UUIDs of its devices;
    ``announcer`` is the component that announces what is attached, "" where none does from the beginning.
    ``surprise``: devices are detached without their hosts being told, which shows there as hardware that fails.
    ``unannounced``: nodes on which it announces none, for another system hands out their devices in parts.
    ``awaited``: pod, ``resource`` -> what it waits for while devices are moved for it, in words, "" where none are.
    ``chosen``: pod -> the node to which they are moved, "" for none."""

    resource: str
    device_kind: str
    scheduler: str
    device_env: str
    announcer: str = ""
    surprise: bool = False
    unannounced: tuple[str, ...] = ()
    awaited: Callable[[Object, str], str] = nothing_awaited
    chosen: Callable[[Object], str] = lambda pod: ""


class Component(Struct, Generic[OptionsT, ConfigT], frozen=True):
    """A part of a system that runs by itself. ``make`` builds one incarnation from its ports and the configuration.

    ``wanted``: whether the options let it run. ``nodes``: the nodes of a configuration that have one each, called
    ``NAME/HOST``; None for a component that there is one of. ``scheduler``: the schedulerName that it answers to, of a
    configuration. ``parts``: what of it the user may replace from within, beside the whole of it: ``plugin`` (of a
    scheduler, with options), ``policy``; each with what the callable is called with, in words.
    ``deployment``: how a real cluster runs it; None where none can. ``service``: the name under which it answers HTTP
    requests of others ("": it does not); components of one service are replicas of each other. ``knows_by_chassis``:
    somebody else's in its place knows devices by their chassis' own IDs, without its index, as the public one does.
    ``program``: the component is somebody else's program, which a Deployment starts again when it ends; None for one
    that ``make`` builds.
    """

    name: str
    make: Callable[[Ports, ConfigT], Runnable]
    wanted: Callable[[OptionsT], bool] = lambda options: True
    nodes: Callable[[ConfigT], Sequence[str]] | None = None
    scheduler: Callable[[ConfigT], str] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    deployment: ComponentDeployment | None = None
    service: str = ""
    knows_by_chassis: bool = False
    program: Callable[[ConfigT], ForeignProgram] | None = None

    @property
    def per_node(self) -> bool:
        """Whether there is one on each of some nodes."""
        return self.nodes is not None


class Watched(Struct, frozen=True):
    """A kind whose changes are journal lines: ``news(old, new)`` says which."""

    resource: Resource
    news: Callable[[Object | None, Object | None], Iterator[KindLine]]


EDIT_TABLES, SERVE_GPU_CLAIMS = "move devices of a chassis", "serve claims for gpu.nvidia.com"
"""What ``System.sole`` names: two systems that did it would undo each other's work."""


class System(Struct, Generic[OptionsT, ConfigT], frozen=True):
    """A published system.

    ``options`` is the model of ``stack.NAME``, with its defaults; ``configure(options, facility)`` makes the
    configuration value that every component is given (raises ValueError, one line, for options that cannot be).
    ``title`` is its name as its authors write it. ``document(configuration)`` is the same as the file that the
    components read in a cluster, ``namespace`` where their own objects belong, and ``kinds`` are the definitions to be
    applied before anything starts. ``service_names``: its pods find one another by the names of services.
    ``extenders(configuration)`` are those of the default scheduler.
    ``stands_for``: resources of which one is so much of some others, which a node has, for the pods that ask for them.
    ``other_units``: resources that are another one in other units, by the ratio of what a node has of both.
    ``sole``: what only one system of a stack can do, in words that complete "only one system may ...".
    ``lends(configuration)``: the nodes whose devices it hands out in parts; it answers who wants one of them whole, as
    ``mews.kube.deviceplugin.release`` has it, under its own name. ``release_s(configuration)``: how long it may take
    to let go of one that it has agreed to give.
    ``remedies(configuration)``: the nodes whose broken GPUs it withholds and mends, as
    ``mews.kube.deviceplugin.remedies`` has it.
    ``images``: further images, as in ``fixtures/images.yaml``, and ``programs``: what plays those whose
    ``simulate.program`` is ``SYSTEM/NAME``. ``runtime_hooks``: on which nodes one of its components answers runtime
    hooks (``NodeAccess.hooks``), and what becomes there of a container whose hook fails.

    ``objects(configuration)`` are applied after the kinds, with the placeholders of ``ForeignProgram`` filled in, and
    ``{ca-text}``, ``{user:DIALECT}``, ``{password:DIALECT}``. ``provider_ids(configuration)``: node -> the providerID
    with which its kubelet registers it. ``needs``: what its Kubernetes must have; the stack switches it on.
    ``lacking(options, emulated_nodes)``: why its programs cannot run on this machine, or in pods of real nodes, one
    line, "" where they can.

    ``deployment`` is what a real cluster needs of it; None where none can run it. ``judging``, ``measuring`` and
    ``studies`` are about runs of it.
    """

    name: str
    summary: str
    options: type[OptionsT]
    configure: Callable[[OptionsT, Facility], ConfigT]
    components: tuple[Component[OptionsT, ConfigT], ...]
    title: str = ""
    namespace: Callable[[ConfigT], str | None] = lambda configuration: None
    document: Callable[[ConfigT], Mapping[str, Any]] = lambda configuration: {}
    pooled: Callable[[ConfigT], Pooled | None] = lambda configuration: None
    kinds: Callable[[], Sequence[Object]] = lambda: ()
    watched: Callable[[], Sequence[Watched]] = lambda: ()
    service_names: bool = False
    extenders: Callable[[ConfigT], Sequence[ExtenderService]] = lambda configuration: ()
    stands_for: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    other_units: Mapping[str, str] = field(default_factory=dict)
    sole: frozenset[str] = frozenset()
    lends: Callable[[ConfigT], Sequence[str]] | None = None
    release_s: Callable[[ConfigT], float] = lambda configuration: 0.0
    remedies: Callable[[ConfigT], Sequence[str]] | None = None
    commands: Callable[[], Sequence[Command]] = lambda: ()
    images: Callable[[], Mapping[str, Mapping[str, Any]]] = dict
    programs: Callable[[], Mapping[str, PlayedProgram]] = dict
    runtime_hooks: Callable[[ConfigT], Mapping[str, HookPolicy]] = lambda configuration: {}
    objects: Callable[[ConfigT], Sequence[Object]] = lambda configuration: ()
    provider_ids: Callable[[ConfigT], Mapping[str, str]] = lambda configuration: {}
    needs: KubernetesNeeds | None = None
    lacking: Callable[[OptionsT, bool], str] = lambda options, emulated_nodes: ""
    deployment: SystemDeployment | None = None
    judging: SystemJudging[OptionsT, ConfigT] = SystemJudging()
    measuring: SystemMeasuring[ConfigT] = SystemMeasuring()
    studies: SystemStudies = SystemStudies()
