"""What a scenario may expect: the conditions of ``wait``, ``assert`` and ``hold``."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, PrivateAttr, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler  # pydantic 2.8 has it here alone

from mews.harness.scenario.base import Count, KubeObject, LabelSelector, Listed, Model, OrOne, Pattern
from mews.harness.scenario.extension import STEPS, CheckKind, GivenExtension, split
from mews.harness.scenario.match import check_pattern, show


class PodExpectation(Model):
    """A pod, by what one usually asks of it. ``node`` is a host of the hardware file."""

    name: str
    namespace: str = "default"
    phase: Pattern = None
    node: Pattern = None
    reason: Pattern = None
    message: Pattern = None
    ready: bool | None = None
    restarts: Count = None
    annotations: dict[str, Pattern] = Field(default_factory=dict)
    scheduled: bool | None = None
    unschedulable: Pattern = Field(default=None, description="the message of condition PodScheduled=False")

    @cached_property
    def described(self) -> str:
        """What is asked of it, on a line; a wait asks with every look."""
        given = self.model_dump(exclude_unset=True, by_alias=True, exclude={"name", "namespace"})
        return ", ".join(f"{key} {show(value)}" for key, value in given.items()) or "any state"


class NodeExpectation(Model):
    """The node of a host: readiness, and amounts of resources."""

    host: str
    ready: bool | None = None
    allocatable: dict[str, Pattern] = Field(default_factory=dict)
    capacity: dict[str, Pattern] = Field(default_factory=dict)


class AbsentExpectation(Model):
    """No such object: one by name, or none of those selected by labels."""

    kind: str
    api_version: str = ""
    name: str | None = None
    namespace: str | None = "default"
    labels: LabelSelector = ""


class CountExpectation(Model):
    """How many objects of a kind are there (of all namespaces when ``namespace`` is null)."""

    kind: str
    api_version: str = ""
    namespace: str | None = "default"
    labels: LabelSelector = ""
    matching: Pattern = Field(default_factory=dict)
    is_: Count = Field(alias="is")


class LineCount(Model):
    """So many journal lines like that."""

    of: dict[str, Pattern]
    is_: Count = Field(alias="is")


class JournalExpectation(Model):
    """Lines of the journal since the scenario began (or since the step ``since``, by its name)."""

    occurs: tuple[dict[str, Pattern], ...] = ()
    never: tuple[dict[str, Pattern], ...] = ()
    order: tuple[dict[str, Pattern], ...] = Field(default=(), description="these, one after the other")
    count: tuple[LineCount, ...] = ()
    since: str | None = None


class LogsExpectation(Model):
    """What a container has written: ``text`` as a whole, ``lines`` as a list."""

    pod: str
    namespace: str = "default"
    container: str | None = None
    text: Pattern = None
    lines: Pattern = None


class GpusExpectation(Model):
    """A running pod's devices. Its processes, the kubelet's pod resources and the chassis table must name the same
    devices."""

    pod: str
    namespace: str = "default"
    count: int = Field(ge=0)
    host: str | None = None
    containers: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    resource: str | None = Field(default=None, description="default: what the stack pools")
    log: bool = Field(default=True, description="false: the pod prints nothing, compare the other two")
    devices: Pattern = Field(default=None, description="their IDs in order, over all containers")
    kept: bool = Field(default=False, description="each container has what it had when this check last held")


class EventExpectation(Model):
    """A Kubernetes event. ``object`` reads ``Pod/name`` or ``Pod/namespace/name``; ``count`` counts repeats too."""

    reason: str
    object: str | None = None
    type: str | None = None
    message: Pattern = None
    count: Count = Field(default_factory=lambda: {"$ge": 1})


class SettledExpectation(Model):
    """Every node is Ready and has as many of the resource allocatable as the chassis table has on its host."""

    resource: str | None = Field(default=None, description="default: what the stack pools")
    kind: str | None = Field(default=None, description="only devices of that kind; default: all")


def _some(schema: dict[str, Any]) -> None:
    schema["minProperties"] = 1


class Check(Model):
    """One or more conditions; all must hold at the same moment."""

    model_config = ConfigDict(json_schema_extra=_some)

    object: KubeObject | None = Field(default=None, description="there is this object, and it matches")
    absent: AbsentExpectation | None = None
    count: CountExpectation | None = None
    pod: PodExpectation | None = None
    node: NodeExpectation | None = None
    table: Pattern = Field(default=None, description="the table: chassis, then device, then its row")
    hosts: dict[str, Count] = Field(default_factory=dict, description="devices per host; free: on no port")
    host: Pattern = Field(
        default=None, description="what hosts see: host, then devices (by GPUID), holders, waiting, log (kernel lines)"
    )
    telemetry: Pattern = Field(default=None, description="what boards show: chassis, then device, then its values")
    moves: Count = Field(default=None, description="completed attaches since the scenario began")
    operations: dict[str, Count] = Field(
        default_factory=dict, description="chassis lines by event since the scenario began: attached, detached, …"
    )
    journal: JournalExpectation | None = None
    logs: LogsExpectation | None = None
    gpus: GpusExpectation | None = None
    event: EventExpectation | None = None
    settled: SettledExpectation | None = None

    _given: tuple[GivenExtension, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _some_check(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(value, Mapping):
            return handler(value)
        own, registered = split(value, cls.model_fields, CheckKind)
        if not own and not registered:
            allowed = ", ".join((*cls.model_fields, *STEPS.others()))
            raise ValueError(f"must name something to check: {allowed}")
        nothing = next((name for name, asked in own.items() if asked is None), None)
        if nothing is not None:
            raise ValueError(f"{nothing}: has nothing to check")
        check = handler(own)
        check._given = registered
        return check

    @property
    def given(self) -> tuple[GivenExtension, ...]:
        """The conditions of kinds that other packages bring."""
        return self._given

    @model_validator(mode="after")
    def _patterns(self) -> Self:
        if self.object is not None:
            check_pattern(self.object)
        return self


Checks = Annotated[tuple[Check, ...], Listed, Field(min_length=1), OrOne()]
"""What must hold all at once; one check may stand for a list of one."""
