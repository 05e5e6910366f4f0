"""The software of a run: which systems, with which options, and what of it is the user's own.

A system is found by its name in the registry when a file names it; its options are its own model's to check.
"""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from msgspec.structs import replace
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, InitErrorDetails

from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.harness.scenario.base import DialectName, Model
from mews.harness.scenario.names import NameOf
from mews.harness.scenario.replacement import (
    Extender,
    Replaceable,
    Replacement,
    read_replacements,
    refusal,
    replacements_model,
)
from mews.harness.scenario.system_needs import check_needs, release_with_needs
from mews.kube.emulated.kubelet.faults import KUBELET_FAULTS
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from mews.kube.releases.errors import ReleaseError
from mews.kube.releases.release_data import DEFAULT, known_release, names
from mews.kube.system.configured import ConfiguredSystem, names_in_stack
from mews.kube.system.facility import Facility
from mews.kube.system.system import Pooled, System
from mews.names import must_be
from mews.systems import registry

INSTANT = "instant"
"""The profile of hosts on which starting a pod costs nothing beyond what the kubelet takes."""
VOLUME_PROVISIONER = "volume-provisioner"
OWN_COMPONENTS = (
    DEFAULT_SCHEDULER,
    "controller-manager",
    VOLUME_PROVISIONER,
    "service-names",
    "hosts",
    "admin",
    "recorder",
)
"""What every cluster has: a component of a system of such a name is called by its system's name, too."""


class ControllerOptions(Model):
    """Which controllers run, and whose."""

    run: tuple[str, ...] = Field(
        default=("*",), description="as kube-controller-manager's --controllers: * all, a name, -name all but that one"
    )
    program: Literal["ours", "kube-controller-manager"] | None = Field(
        default=None, description="by default ours on embedded, kube-controller-manager on control-plane"
    )

    def names(self, controller: str) -> bool:
        """Return whether that one is to run."""
        return controller in self.run or ("*" in self.run and f"-{controller}" not in self.run)

    @model_validator(mode="after")
    def _known(self) -> Self:
        from mews.kube.emulated.controllers.catalogue import chosen

        if self.program != "kube-controller-manager":
            chosen(self.run)
        return self


def _known_fault(name: str) -> str:
    if name not in KUBELET_FAULTS:
        raise ValueError(f"must be one of {', '.join(KUBELET_FAULTS)}")
    return name


KubeletFault = Annotated[
    str, AfterValidator(_known_fault), WithJsonSchema({"type": "string", "enum": list(KUBELET_FAULTS)})
]


class KubeletOptions(Model):
    """Options of the emulated kubelets."""

    faults: tuple[KubeletFault, ...] = Field(
        default=(), description="faults of upstream's kubelet that they have, too (docs/kubelet.md)"
    )


class DefaultSchedulerOptions(Model):
    """Options of NodeResourcesFit; ``scoring: random`` takes any node that fits. With any of these it is ours that
    runs, where Kubernetes' own would. Both take ``device_binding_timeout_s`` (their DynamicResourcesArgs)."""

    scoring: Literal["default", "random"] = "default"
    strategy: Literal["LeastAllocated", "MostAllocated"] = "LeastAllocated"
    resources: dict[str, int] = Field(
        default_factory=lambda: {"cpu": 1, "memory": 1}, description="what counts in scores, and how much"
    )
    ignored_resource_groups: tuple[str, ...] = ()
    program: Literal["ours", "kube-scheduler"] | None = Field(
        default=None, description="by default ours on embedded, kube-scheduler on control-plane"
    )

    device_binding_timeout_s: Annotated[float, Field(ge=1)] | None = Field(
        default=None,
        description="seconds that a pod's devices may take to meet their binding conditions, 600 by default; needs the "
        "feature DRADeviceBindingConditions",
    )

    def given(self) -> dict[str, Any]:
        """Return what was said of ours, without the defaults."""
        return self.model_dump(exclude_unset=True, exclude={"program", "device_binding_timeout_s"})

    def for_program(self) -> dict[str, Any]:
        """Return what was said, without the defaults, for whoever chooses the program."""
        return self.model_dump(exclude_none=True, exclude_unset=True)

    @model_validator(mode="after")
    def _program_takes_none(self) -> Self:
        if self.program == "kube-scheduler" and self.given():
            raise ValueError(
                f"program: kube-scheduler does not take options of our scheduler, such as {next(iter(self.given()))}"
            )
        return self


def _switch(value: Any) -> Any:
    """YAML reads on and off as booleans."""
    return ("off", "on")[value] if isinstance(value, bool) else value


Switch = Annotated[Literal["on", "off"], BeforeValidator(_switch)]


def _as_text(value: Any) -> Any:
    """YAML reads 1.36 as a number."""
    return f"{value:g}" if isinstance(value, float) else value


Release = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(known_release),
    WithJsonSchema({"type": ["string", "number"], "enum": [*names(), *map(float, names())]}),
]


class Stack(Model):
    """The software of the run. Also the name of each system, with its options; ``null`` leaves a part out.

    ``systems``: name -> options of each system that runs, in the order in which they start. ``replace``: by the
    component's name in this stack.
    """

    systems: dict[str, Any] = Field(default_factory=dict)
    default_scheduler: DefaultSchedulerOptions | None = Field(default_factory=DefaultSchedulerOptions)
    controllers: ControllerOptions = Field(default_factory=ControllerOptions)
    kubelet: KubeletOptions = Field(default_factory=KubeletOptions)
    dialect: DialectName | None = None
    metrics: Switch = Field(default="on", description="whether metrics.k8s.io is served, as by metrics-server")
    profile: Annotated[str, NameOf((INSTANT,), lambda system: system.studies.profiles())] | None = Field(
        default=None, description="what starting a pod costs on the hosts, as measured on a testbed; instant: nothing"
    )
    storage: Literal["folder", "none"] | None = Field(
        default=None,
        description="folder: a default StorageClass whose volumes are folders of this machine; the default of mews up",
    )
    kubernetes: Release = Field(
        default=DEFAULT, description="the release of Kubernetes that the cluster is, such as 1.36"
    )
    feature_gates: dict[str, bool] = Field(
        default_factory=dict, description="features of that release by name: true or false"
    )
    runtime_config: dict[str, bool] = Field(
        default_factory=dict, description="API versions by GROUP/VERSION: true enables a version that is off by default"
    )
    replace: dict[str, Replacement] = Field(default_factory=dict)
    extenders: tuple[Extender, ...] = Field(default=(), description="of the default scheduler, kube-scheduler then")

    @property
    def is_ours(self) -> bool:
        """Whether all of it comes with Mews, and nothing is in the place of a part."""
        programs = (self.controllers.program, self.default_scheduler and self.default_scheduler.program)
        theirs = any(program not in (None, "ours") for program in programs)
        return not (self.replace or self.extenders or theirs or self.systems.keys() - registry.OURS.keys())

    @model_validator(mode="before")
    @classmethod
    def _with_systems(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        own = {name: item for name, item in value.items() if name in _own_keys()}
        systems = _read_systems({name: item for name, item in value.items() if name not in own})
        made = {**own, "systems": systems}
        if own.get("replace"):
            made["replace"] = read_replacements(own["replace"], _replaceable(systems, _default_scheduler_runs(own)))
        return made

    @model_validator(mode="after")
    def _release_knows_them(self) -> Self:
        for key, gates, runtime in (
            ("featureGates", self.feature_gates, {}),
            ("runtimeConfig", {}, self.runtime_config),
        ):
            try:
                cluster_release(self.kubernetes, gates, runtime)
            except ReleaseError as error:
                raise ValueError(f"{key}: {error}") from error
        self.check_needs()
        return self

    def check_needs(self) -> None:
        """Raise ValueError, one line, where a system needs of Kubernetes what the release or the stack does not let it
        have."""
        gates, served = self.feature_gates, self.runtime_config
        check_needs(self.kubernetes, self.systems, gates=gates, served=served)

    @model_validator(mode="after")
    def _devices_have_conditions(self) -> Self:
        options = self.default_scheduler
        if options is not None and options.device_binding_timeout_s is not None:
            gate = "DRADeviceBindingConditions"
            if not self.release.gates.on(gate):
                where = "defaultScheduler.deviceBindingTimeoutS"
                raise ValueError(f"{where}: needs the feature {gate}, off in Kubernetes {self.kubernetes}")
        return self

    @property
    def git_version(self) -> str:
        """``v1.34.2``, of the release that the cluster is."""
        return self.release.git_version

    @property
    def release(self) -> ClusterRelease:
        """Which Kubernetes the cluster is: as the stack says, with what its systems need switched on."""
        gates, served = self.feature_gates, self.runtime_config
        return release_with_needs(self.kubernetes, self.systems, gates=gates, served=served)

    @model_validator(mode="after")
    def _extenders_have_their_scheduler(self) -> Self:
        if self.extenders and (self.default_scheduler is None or DEFAULT_SCHEDULER in self.replace):
            raise ValueError("extenders: require our default scheduler, which must not be replaced")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return them with every system that can be had, and every component of theirs that can be replaced."""
        schema = handler.resolve_ref_schema(handler(core))
        del schema["properties"]["systems"]
        for name, found in registry.usable().items():
            options = handler(found.options.__pydantic_core_schema__)
            schema["properties"][name] = {
                "anyOf": [options, {"type": "null"}],
                "description": found.summary,
                **({} if name in registry.DEFAULT else {"default": None}),
            }
        everything = replacements_model(_replaceable({}, default_scheduler=True))
        schema["properties"]["replace"] = {
            **handler.resolve_ref_schema(handler(everything.__pydantic_core_schema__)),
            "description": "your components instead of included ones, by SYSTEM: {COMPONENT: …}, or by component name",
        }
        return schema

    def configured(self, facility: Facility) -> tuple[ConfiguredSystem, ...]:
        """Return its systems, installed on that.

        Raises ValueError, one line that begins with the system's name, for options that cannot be.
        """
        found = [registry.system(name) for name in self.systems]
        names = names_in_stack(found, OWN_COMPONENTS)
        facility = self._shared(found, facility)
        made = []
        for system in found:
            options = self.systems[system.name]
            own = {component.name: names[system.name, component.name] for component in system.components}
            there = replace(facility, foreign=self._foreign(system.name))
            try:
                made.append(ConfiguredSystem(system, options, system.configure(options, there), own))
            except ValueError as error:
                raise ValueError(f"{system.name}: {error}") from error
        return tuple(made)

    def _foreign(self, system: str) -> frozenset[str]:
        """Return its components in whose place is a program, an image or a manifest."""
        outside = [given for given in self.replace.values() if given.outside is not None]
        return frozenset(given.component for given in outside if given.system == system)

    @property
    def knows_by_chassis(self) -> bool:
        """Whether somebody else's component knows devices by their chassis' own IDs (see ``Component``)."""
        return any(
            component.knows_by_chassis and component.name in self._foreign(name)
            for name in self.systems
            for component in registry.system(name).components
        )

    def _shared(self, systems: Sequence[System], facility: Facility) -> Facility:
        """Return the facility with the nodes named whose devices one of the systems hands out in parts, or remedies."""
        lent: dict[str, str] = {}
        remedied: set[str] = set()
        for system in systems:
            if system.lends is None and system.remedies is None:
                continue
            try:
                configuration = system.configure(self.systems[system.name], facility)
            except ValueError as error:
                raise ValueError(f"{system.name}: {error}") from error
            shared = system.lends(configuration) if system.lends is not None else ()
            lent |= {node: system.name for node in shared if node not in lent}
            remedied |= set(system.remedies(configuration)) if system.remedies is not None else set()
        nodes = tuple(
            replace(node, lent_to=lent.get(node.name, ""), remedied=node.name in remedied) for node in facility.nodes
        )
        return replace(facility, nodes=nodes) if lent or remedied else facility

    @property
    def pooled(self) -> Pooled | None:
        """What is pooled: by the first of its systems that pools anything, else by the default stack's."""
        names = (*self.systems, *(name for name in registry.DEFAULT if name not in self.systems))
        for name in names:
            system = registry.system(name)
            options = self.systems[name] if name in self.systems else system.options()
            pooled = system.pooled(system.configure(options, Facility()))
            if pooled is not None:
                return pooled
        return None

    def with_program(self, part: str, program: str) -> Self:
        """Return the same with that program as its ``scheduler`` or ``controllers``.

        Raises ValueError, one line, where it has options that the program does not take, or is not there.
        """
        if part == "controllers":
            return self.model_copy(update={"controllers": self.controllers.model_copy(update={"program": program})})
        options = self.default_scheduler
        if options is None or DEFAULT_SCHEDULER in self.replace:
            raise ValueError("the stack does not run our default scheduler")
        if program == "kube-scheduler" and options.given():
            raise ValueError(f"the stack sets options of our scheduler: {', '.join(options.given())}")
        return self.model_copy(update={"default_scheduler": options.model_copy(update={"program": program})})

    def of(self, names: Collection[str]) -> Self:
        """Return the same with these systems alone: those it has with its options, others with their defaults.

        Raises ValueError, one line, for a name that is none, and for a replacement that has lost its component.
        """
        there = registry.names()
        for name in names:
            if name not in there:
                raise ValueError(f"{name!r}: {must_be(name, (*there, 'none'))}")
        lost = [given.where for name, given in self.replace.items() if given.system not in ("", *names)]
        if lost:
            raise ValueError(f"{lost[0]} replaces a component of a system that the stack leaves out")
        chosen = {name: self.systems.get(name) or registry.system(name).options() for name in names}
        ordered = {name: chosen[name] for name in registry.in_order(chosen)}
        made = self.model_copy(update={"systems": ordered})
        made.check_needs()
        return made


def _own_keys() -> frozenset[str]:
    """Return the keys of ``stack`` that are no systems, as they may be written."""
    fields = {name: field.alias for name, field in Stack.model_fields.items() if name != "systems"}
    return frozenset({*fields, *filter(None, fields.values())})


def _default_scheduler_runs(stack: Mapping[str, Any]) -> bool:
    return all(stack.get(key, True) is not None for key in ("default_scheduler", "defaultScheduler"))


def _read_systems(given: Mapping[str, Any]) -> dict[str, Any]:
    """Name -> options of the systems that run.

    Raises ValidationError for a name that is none, and for what a system does not take.
    """
    chosen = {**{name: {} for name in registry.DEFAULT}, **given}
    fields: dict[str, Any] = {}
    for name in registry.in_order(chosen):
        try:
            fields[name] = (registry.system(name).options | None, ...)
        except registry.UnusableSystemError as error:
            raise refusal((name,), given[name], str(error)) from error
        except KeyError:
            unknown = InitErrorDetails(type="extra_forbidden", loc=(name,), input=given[name])
            raise ValidationError.from_exception_data("Stack", [unknown]) from None
    model = create_model("Systems", __config__=ConfigDict(frozen=True), **fields)
    read = model.model_validate(chosen)
    return {name: options for name in fields if (options := getattr(read, name)) is not None}


def _replaceable(systems: Mapping[str, Any], default_scheduler: bool) -> list[Replaceable]:
    """Return every component that may be replaced in a stack of these systems; those of other systems do not run in
    it."""
    found = {**{name: registry.system(name) for name in systems}, **registry.usable()}
    names = names_in_stack(found.values(), OWN_COMPONENTS)
    scheduler = Replaceable("", DEFAULT_SCHEDULER, DEFAULT_SCHEDULER, default_scheduler, ("plugin",))
    return [
        scheduler,
        *(
            Replaceable(
                system=name,
                component=component.name,
                name=names[name, component.name],
                runs=name in systems and component.wanted(systems[name]),
                parts=tuple(component.parts),
            )
            for name, system in found.items()
            for component in system.components
        ),
    ]
