"""Your own software in the place of ours: what a scenario says under ``stack.replace`` and ``stack.extenders``."""

# No annotations from __future__: pydantic would have to read each of them from its text again.
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, create_model, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from mews.harness.scenario.base import Model

_WAYS = ("plugin", "policy", "process", "image", "manifest")
_OUTSIDE = ("process", "image", "manifest")

Files = Annotated[
    tuple[str, ...],
    Field(
        description="patterns (data/*.json) of more files in the scenario's folder to copy into its pod; files in "
        "argv and imported modules are copied anyway"
    ),
]


class Replacement(Model):
    """Exactly one of ``plugin``, ``policy``, ``process``, ``image`` and ``manifest`` takes the component's place.

    In ``process``, ``env``, ``args`` and a manifest's texts these are replaced: ``{python}``, ``{pythonpath}``,
    ``{kubeconfig}``, ``{config}`` (its system's configuration file), ``{config:SYSTEM}`` (that of another system),
    ``{root}`` (with one folder per node) and ``{chassis:NAME}`` (URL). For a component that runs on each node, these
    are replaced, too: ``{node}``, ``{device_plugins}``, ``{pod_resources}``, ``{port:NAME}`` (its port there).

    A process finds what a pod of its emulated node would find: ``harness/clusters/embedded/program_view.py`` lists it.
    """

    plugin: str | None = Field(
        default=None,
        description="module:callable, called with the scheduler's handle and options; replaces the system's plugin, "
        "or is added to default-scheduler's plugins",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="keyword arguments of the plugin")
    policy: str | None = Field(
        default=None, description="module:callable, in place of the component's own policy: a node score, for example"
    )
    process: tuple[str, ...] | None = Field(default=None, description="argv; its working folder is the scenario's")
    env: dict[str, str] = Field(default_factory=dict, description="more environment variables of the process")
    mounts: dict[str, str] = Field(
        default_factory=dict,
        description="absolute path: a file in the scenario's folder that the process finds there, its placeholders "
        "replaced; on emulated nodes only",
    )
    image: str | None = Field(default=None, description="a container image; on emulated nodes one of images.yaml")
    args: tuple[str, ...] = Field(default=(), description="of the image")
    manifest: str | None = Field(default=None, description="a file of objects, applied as the cluster comes up")
    files: Files = ()
    _place: tuple[str, ...] = PrivateAttr(())
    _owner: tuple[str, str] = PrivateAttr(("", ""))

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [way for way in _WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of {', '.join(_WAYS)}; has {', '.join(given) or 'none'}")
        if self.process == ():
            raise ValueError("process: must be an argv with at least the program")
        if self.mounts and self.process is None:
            raise ValueError("mounts: applies only to process")
        for target in self.mounts:
            if not target.startswith("/") or target != os.path.normpath(target) or "\0" in target:
                raise ValueError(f"mounts: {target!r}: must be an absolute path without . and ..")
        return self

    @property
    def where(self) -> str:
        """Where the file says it: ``stack.replace.SYSTEM.COMPONENT``, or as short as it was written."""
        return ".".join(self.place)

    @property
    def place(self) -> tuple[str, ...]:
        """The same in parts."""
        return ("stack", "replace", *self._place)

    @property
    def system(self) -> str:
        """Whose component it replaces, "" for the default scheduler."""
        return self._owner[0]

    @property
    def component(self) -> str:
        """What its system calls the component that it replaces."""
        return self._owner[1]

    def at(self, place: tuple[str, ...], system: str, component: str) -> Self:
        """Return the same as it stands at a place of the file, for that component of a system."""
        placed = self.model_copy()
        placed._place, placed._owner = place, (system, component)
        return placed

    @property
    def way(self) -> str:
        """Which of them it is."""
        return next(way for way in _WAYS if getattr(self, way) is not None)

    @property
    def outside(self) -> str | None:
        """``process``, ``image`` or ``manifest`` where it runs outside Mews' own process, else None."""
        return next((way for way in _OUTSIDE if getattr(self, way) is not None), None)


class Extender(Model):
    """An HTTP extender of the default scheduler. ``{port}`` in ``process``, ``env`` and ``config`` is a free port of
    loopback."""

    process: tuple[str, ...] | None = Field(default=None, description="argv that serves it; none: it runs already")
    env: dict[str, str] = Field(default_factory=dict)
    files: Files = ()
    config: dict[str, Any] = Field(description="an entry of KubeSchedulerConfiguration's extenders: urlPrefix …")


def fill(text: str, places: Mapping[str, str]) -> str:
    """Return the text with ``{name}`` replaced for every known name; all else in braces stays."""
    for name, value in places.items():
        text = text.replace("{" + name + "}", value)
    return text


def filled(value: Any, places: Mapping[str, str]) -> Any:
    """Return a document with all its texts filled in, keys excepted."""
    if isinstance(value, str):
        return fill(value, places)
    if isinstance(value, dict):
        return {key: filled(item, places) for key, item in value.items()}
    return [filled(item, places) for item in value] if isinstance(value, list) else value


class Replaceable(Struct, frozen=True):
    """A component that may be replaced. ``name`` is what it is called in the stack, ``runs`` whether the stack has it,
    ``parts`` what of it may be replaced from within. ``system`` "": it is the cluster's own."""

    system: str
    component: str
    name: str
    runs: bool
    parts: tuple[str, ...] = ()

    @property
    def places(self) -> Iterator[tuple[str, ...]]:
        """Where a file may write it: below its system, and by its name in the stack alone."""
        if self.system:
            yield (self.system, self.component)
        yield (self.name,)


def replacements_model(components: Sequence[Replaceable]) -> type[BaseModel]:
    """Return the model of ``stack.replace``: a mapping of components, and of systems to mappings of theirs."""
    systems: dict[str, list[str]] = {}
    for each in components:
        if each.system:
            systems.setdefault(each.system, []).append(each.component)
    fields: dict[str, Any] = {each.name: Replacement for each in components if "." not in each.name}
    for name, theirs in systems.items():
        fields[name] = _model(f"Replacements_{name}", dict.fromkeys(theirs, Replacement))
    return _model("Replacements", fields)


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    def optional(key: str) -> Any:
        return Field(default=None, alias=key, json_schema_extra=_without_default)

    # What a component is called need not be a name in Python.
    numbered: dict[str, Any] = {
        f"part_{number}": (kind, optional(key)) for number, (key, kind) in enumerate(fields.items())
    }
    made: type[BaseModel] = create_model(name, __config__=ConfigDict(frozen=True, extra="forbid"), **numbered)
    return made


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def read_replacements(given: Any, components: Sequence[Replaceable]) -> dict[str, Replacement]:
    """Component -> what replaces it, by its name in the stack.

    Raises ValidationError.
    """
    whole: Any = create_model("Stack", replace=(replacements_model(components), ...))
    read = whole.model_validate({"replace": given}).replace
    found: dict[str, Replacement] = {}
    for component in components:
        for place in component.places:
            yours = _at(read, place)
            if yours is None:
                continue
            _check_place(component, yours, place, components, taken=component.name in found)
            found[component.name] = yours.at(place, component.system, component.component)
    return found


def _at(read: Any, place: tuple[str, ...]) -> Replacement | None:
    for part in place:
        if read is None:
            return None
        fields = {field.alias: name for name, field in type(read).model_fields.items()}
        read = getattr(read, fields[part]) if part in fields else None
    return read if isinstance(read, Replacement) else None


def _check_place(
    component: Replaceable, yours: Replacement, place: tuple[str, ...], all_: Sequence[Replaceable], *, taken: bool
) -> None:
    """Raise ValidationError for what cannot be in that component's place."""
    loc = ("replace", *place)
    if taken:
        raise refusal(loc, yours.way, "the component is replaced twice: write it once")
    if not component.runs:
        raise refusal(loc, yours.way, "nothing to replace: the stack leaves this component out (null)")
    if yours.plugin is not None and "plugin" not in component.parts:
        raise refusal((*loc, "plugin"), yours.plugin, "only schedulers have plugins; use process, image or manifest")
    if yours.policy is not None and "policy" not in component.parts:
        have = ", ".join(each.name for each in all_ if each.runs and "policy" in each.parts) or "no component"
        raise refusal((*loc, "policy"), yours.policy, f"only {have} has a policy of node scores")


def refusal(loc: tuple[str, ...], value: Any, message: str) -> ValidationError:
    """Return a complaint at a place within the stack, to be raised while it is read."""
    kind = PydanticCustomError("refused", "{message}", {"message": message})
    return ValidationError.from_exception_data("Stack", [InitErrorDetails(type=kind, loc=loc, input=value)])
