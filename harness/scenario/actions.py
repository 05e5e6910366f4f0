"""What a scenario may do: the steps."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    model_validator,
)
from pydantic.functional_validators import ModelWrapValidatorHandler  # pydantic 2.8 has it here alone

from mews.emulator.host.act import TAKEN, Do
from mews.emulator.host.control import SETTERS
from mews.emulator.host.errors import REFUSALS
from mews.emulator.host.mig import MIG_ACTS
from mews.emulator.telemetry.settings import ALL
from mews.harness.ports.telemetry import check_names
from mews.harness.scenario.base import KubeObject, LabelSelector, Listed, Model, OrOne, OrScalar, Pattern
from mews.harness.scenario.expectations import Check, Checks
from mews.harness.scenario.extension import STEPS, GivenExtension, StepKind, split
from mews.harness.scenario.fault_action import FaultAction
from mews.harness.scenario.language.names import settled
from mews.harness.scenario.language.outputs import OutputSpec
from mews.harness.scenario.quantity import Seconds, TimeLimit
from mews.names import must_be

Objects = Annotated[
    tuple[KubeObject, ...],
    Listed,
    Field(min_length=1),
    OrOne(),
]
"""One object or a list; ``{file: pods.yaml}`` stands for the objects of that file (relative to the scenario)."""


class Target(Model):
    """One object by name."""

    kind: str
    api_version: str = ""
    name: str
    namespace: str | None = "default"


class DeleteAction(Target):
    """Delete an object and, unless ``wait: false``, see it go."""

    grace_period: int | None = Field(default=None, ge=0)
    wait: bool = True
    missing_ok: bool = False


class EvictAction(Model):
    """Ask for a pod's eviction, as a drain does; a disruption budget may refuse it. It is not waited for."""

    pod: str
    namespace: str = "default"
    grace_period: int | None = Field(default=None, ge=0)


_PATCH_MEMBERS = {
    **dict.fromkeys(("add", "replace", "test"), ("path", "value")),
    "remove": ("path",),
    **dict.fromkeys(("move", "copy"), ("from", "path")),
}
"""What an operation of a JSON patch must have (RFC 6902)."""


class PatchAction(Target):
    """Patch an object."""

    type: Literal["merge", "strategic", "json"] = "merge"
    subresource: str | None = None
    body: dict[str, Any] | list[dict[str, Any]]

    @model_validator(mode="after")
    def _of_its_type(self) -> Self:
        if (self.type == "json") != isinstance(self.body, list):
            shape = "a list of operations" if self.type == "json" else "a mapping; a list is type: json"
            raise ValueError(f"body: of type {self.type} it must be {shape}")
        for each in self.body if isinstance(self.body, list) else ():
            op = each.get("op")
            if op not in _PATCH_MEMBERS:
                raise ValueError(f"body: op {op!r}: must be one of {', '.join(_PATCH_MEMBERS)}")
            missing = [name for name in _PATCH_MEMBERS[op] if name not in each]
            if missing:
                raise ValueError(f"body: op {op!r}: {missing[0]} is missing; it has {', '.join(_PATCH_MEMBERS[op])}")
        return self


class EditAction(Model):
    """Another editor moves a device in the table, immediately. Name a port, a host, or ``port: null`` to free it."""

    chassis: str
    device: str
    port: str | None = None
    host: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        given = self.model_fields_set & {"port", "host"}
        if len(given) != 1:
            found = " and ".join(sorted(given)) or "neither"
            raise ValueError(f"must have either port (null: off its port) or host; {found} given")
        return self


class ChassisAction(Model):
    """The chassis' control API: edit the table, or reset the whole hardware to its start."""

    edit: EditAction | None = None
    reset: bool = False

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.edit is None) != self.reset:
            raise ValueError("must have either edit: {chassis, device, port} or reset: true")
        return self


_RESULTS = ("done", "waiting", *REFUSALS)


class HostAction(Model):
    """What an operator does on a host (``mews.emulator.host.act``), and how it ends: ``result`` is ``done``, a
    refusal's code (IN_USE, NO_DEVICE, …), or ``waiting`` where it must still block after ``within``."""

    host: str
    do: Do
    device: str | None = None
    driver: str | None = None
    on: bool = True
    path: str | None = Field(default=None, description="of a write; {bdf}, {slot} and {bridge} are the device's")
    text: str = "1"
    key: str = "process"
    setting: str | None = Field(default=None, description="of set-gpu: power-limit, gpu-clocks, memory-clocks, …")
    change: str | None = Field(default=None, description="of mig: mode, create-gpu, create-compute, …")
    values: int | tuple[int, ...] = Field(
        default=(), description="numbers of a setting or change; without them set-gpu restores the default"
    )
    result: str = "done"
    within: Seconds = 60.0

    @model_validator(mode="after")
    def _takes(self) -> Self:
        needs, takes = TAKEN[self.do]
        for name in ("device", "driver", "on", "path", "text", "key", "setting", "change", "values"):
            if name in self.model_fields_set and name not in (*needs, *takes):
                there = ", ".join((*needs, *takes)) or "nothing else"
                raise ValueError(f"{name}: {self.do} does not use it; it takes {there}")
        if self.setting is not None and self.setting not in SETTERS:
            raise ValueError(f"setting {self.setting!r}: {must_be(self.setting, SETTERS)}")
        if self.change is not None and self.change not in MIG_ACTS:
            raise ValueError(f"change {self.change!r}: {must_be(self.change, MIG_ACTS)}")
        if self.result not in _RESULTS:
            raise ValueError(f"result {self.result!r}: {must_be(self.result, _RESULTS)}")
        for name in needs:
            if getattr(self, name) is None:
                raise ValueError(f"{name}: missing; {self.do} needs it")
        return self


class TelemetryAction(Model):
    """Set what a GPU shows, until it is cleared (``none``): temperature, power, utilization, clocks, and errors that
    its driver counts (``mews.harness.ports.telemetry``). ``device``: an ID, a GPUID or ``all``."""

    device: str = ALL
    set: dict[str, int | float | str | None]

    @model_validator(mode="after")
    def _known(self) -> Self:
        check_names(self.set)
        return self


def _named(value: Any) -> Any:
    return {"component": value} if isinstance(value, str) else value


class ComponentAction(Model):
    """Kill or restart a component. With ``at`` it dies at the very next journal line like that."""

    component: str
    at: dict[str, Pattern] | None = None


Component = Annotated[ComponentAction, BeforeValidator(_named), OrScalar("string")]
"""A component by name, or with more."""


class ExecAction(Model):
    """Run a command in a running container and judge its output."""

    pod: str
    namespace: str = "default"
    container: str | None = None
    command: tuple[str, ...] = Field(min_length=1)
    exit_code: int = 0
    stdout: Pattern = None
    stderr: Pattern = None


class GetAction(Model):
    """Read one object by name, or objects by labels, as a list in ``items``."""

    kind: str
    api_version: str = ""
    name: str | None = None
    namespace: str | None = "default"
    labels: LabelSelector = ""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.name is not None and self.labels:
            raise ValueError("name and labels: only one of the two")
        return self


class LogsAction(Model):
    """Read what a container has written."""

    pod: str
    namespace: str = "default"
    container: str | None = None
    previous: bool = False
    tail: int | None = Field(default=None, ge=1, description="only so many of the last lines")


def _shell(value: Any) -> Any:
    return {"content": value} if isinstance(value, str) else value


class ScriptAction(Model):
    """Run your program outside the cluster, in the scenario's folder, and check its output. It has KUBECONFIG and
    MEWS_…; wall-clock time only."""

    content: str | None = Field(default=None, min_length=1, description="for sh -eu")
    command: tuple[str, ...] | None = Field(default=None, min_length=1, description="a program and its arguments")
    env: dict[str, str] = Field(default_factory=dict)
    exit_code: int = 0
    stdout: Pattern = None
    stderr: Pattern = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.content is None) == (self.command is None):
            raise ValueError("must have either content: TEXT for sh, or command: [PROGRAM, …]")
        return self

    @property
    def argv(self) -> tuple[str, ...]:
        """What is run."""
        return self.command or ("sh", "-euc", self.content or "", "script")


Script = Annotated[ScriptAction, BeforeValidator(_shell), OrScalar("string")]
"""A script; its text alone may stand for it."""


class HoldAction(Model):
    """Something that must hold now and stay so for a while."""

    for_: TimeLimit = Field(alias="for")
    clock: Literal["scenario", "kubelet"] = Field(
        default="scenario", description="kubelet: a span that a kubelet measures; real ones know nothing of --speed"
    )
    check: Checks


ACTIONS = (
    "apply",
    "create",
    "delete",
    "evict",
    "patch",
    "wait",
    "assert_",
    "hold",
    "chassis",
    "fault",
    "host",
    "telemetry",
    "kill",
    "start",
    "restart",
    "exec",
    "get",
    "logs",
    "script",
    "sleep",
    "workload",
)
"""The fields of a step of which exactly one is given."""

GIVING = ("apply", "create", "get", "logs", "exec", "script", "wait", "assert")
"""Actions that come to something, which ``outputs`` take values from."""


def _exactly_one(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"required": [action.rstrip("_")]} for action in ACTIONS]


class Step(Model):
    """One step: exactly one action, optionally with a name and a time limit."""

    model_config = ConfigDict(json_schema_extra=_exactly_one)

    ON_ANY: ClassVar[tuple[str, ...]] = ("name", "timeout", "outputs")
    """What stands beside the action."""

    name: str = Field(default="", description="what the journal and reports call it")
    timeout: TimeLimit | None = Field(default=None, description="of this step; default: the scenario's stepTimeout")
    outputs: dict[str, OutputSpec] = Field(
        default_factory=dict, description="${name} in later steps: a value of what this step came to, by JSONPath"
    )
    apply: Objects | None = Field(default=None, description="create, or merge into an existing object")
    create: Objects | None = Field(default=None, description="an object or a list that must not be there yet")
    delete: DeleteAction | None = None
    evict: EvictAction | None = None
    patch: PatchAction | None = None
    wait: Checks | None = Field(
        default=None,
        description="until all of it holds at one moment; if nothing can satisfy the wait, it fails immediately",
    )
    assert_: Checks | None = Field(default=None, alias="assert", description="all of it holds now")
    hold: HoldAction | None = None
    chassis: ChassisAction | None = None
    fault: FaultAction | None = None
    host: HostAction | None = None
    telemetry: TelemetryAction | None = None
    kill: Component | None = Field(default=None, description="end a component abruptly, as a crash does")
    start: Component | None = Field(default=None, description="start a component that was killed")
    restart: Component | None = Field(default=None, description="kill a component and start it again")
    exec: ExecAction | None = None
    get: GetAction | None = Field(default=None, description="read objects, for outputs or as evidence")
    logs: LogsAction | None = Field(default=None, description="read a container's log")
    script: Script | None = Field(default=None, description="a program outside the cluster; wall-clock time only")
    sleep: Seconds | None = Field(default=None, description="emulated seconds")
    workload: Literal["start", "wait", "run"] | None = Field(
        default=None, description="start the workload, wait for its end, or both; without such a step it runs at last"
    )

    _given: GivenExtension | None = PrivateAttr(default=None)
    _written: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _one_action(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(value, Mapping):
            return handler(value)
        own, registered = split(value, cls.model_fields, StepKind)
        names = [action.rstrip("_") for action in ACTIONS]
        given = [name for name in names if name in own] + [each.name for each in registered]
        unknown = [str(key) for key in own if key not in (*names, *cls.ON_ANY)]
        if len(given) != 1 and not unknown:
            found = " and ".join(given) or "none"
            allowed = ", ".join((*names, *STEPS.others()))
            raise ValueError(f"a step has exactly one action ({found} given); allowed: {allowed}")
        empty = [name for name in given if name in own and own[name] is None]
        if empty:
            raise ValueError(f"{empty[0]}: must have a value")
        step = handler(own)
        step._given = registered[0] if registered else None
        if step.outputs and step.action not in GIVING:
            raise ValueError(f"outputs: {step.action} has no result; there is one of {', '.join(GIVING)}")
        if step.outputs and step.action in ("wait", "assert") and step.looked_at is None:
            raise ValueError(f"outputs: {step.action} must be of one check, for an object, pod or node")
        return step

    def make_anew_from(self, written: Any) -> None:
        """It uses outputs of steps before it: this is how it was written."""
        self._written = written

    def with_outputs(self, outputs: Mapping[str, Any]) -> Self:
        """Return the step as it is done, with what the steps before it gave out.

        Raises MisusedNameError for an output that no step has given, and pydantic's ValidationError for one that does
        not fit.
        """
        if self._written is None:
            return self
        return self.model_validate(settled(self._written, outputs))

    @property
    def looked_at(self) -> Check | None:
        """The check of a ``wait`` or ``assert`` that is about one object."""
        checks = self.wait or self.assert_ or ()
        alone = len(checks) == 1 and len(checks[0].model_fields_set & {"object", "pod", "node"}) == 1
        return checks[0] if alone else None

    @property
    def given(self) -> GivenExtension | None:
        """The action where it is one that another package brings."""
        return self._given

    @property
    def action(self) -> str:
        """Which action it is, as in the file."""
        if self._given is not None:
            return self._given.name
        return next(name.rstrip("_") for name in ACTIONS if getattr(self, name) is not None)
