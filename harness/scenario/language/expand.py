"""Puts everything in its place before a scenario is checked: included files, bindings, templates, repetitions.

What only a running scenario knows (outputs of steps) stays as it is written; such steps are checked with a sample of
each output's type, and made anew from what is kept here when their turn comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.yaml_document import Document, Place
from mews.harness.scenario.containment import NamedFiles
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.language.bindings import check_bindings, named_values
from mews.harness.scenario.language.document import ExpandedDocument, Origin
from mews.harness.scenario.language.included import Included
from mews.harness.scenario.language.names import MisusedNameError, escaped, heads, put_in, sampled, settled
from mews.harness.scenario.language.outputs import declared, sample
from mews.harness.scenario.language.repetition import repetitions
from mews.harness.scenario.overrides import Override
from mews.harness.scenario.yamlfile import shown
from mews.names import among

PARTS = ("steps", "catch", "finally")
"""Where steps stand."""
_SECTIONS = ("stack", "bindings", "templates")
"""Mappings that may be in a file of their own."""
_PLAIN = ("apiVersion", "kind", "bindings", "templates", "images", "objects", *PARTS)
"""Parts in which a text is itself, or is looked through in a way of its own. Images have ``${NAME}`` of their own."""
_MOST = 2000
"""Steps or objects."""


class _Written(Struct, frozen=True):
    """Where we are reading: the document, the place in it, the folder and names that count there."""

    document: Document
    place: Place
    folder: Path
    names: Mapping[str, Any]
    through: tuple[Path, ...] = ()
    note: str = ""
    overrides: Sequence[Override] = ()
    """Of the document: none in an included one."""

    def at(self, *parts: str | int) -> _Written:
        return replace(self, place=(*self.place, *parts))

    def within(self, **names: Any) -> _Written:
        note = ", ".join(f"{name}={value}" for name, value in names.items() if isinstance(value, str | int | float))
        notes = ", ".join(filter(None, (self.note, note)))
        return replace(self, names={**self.names, **names}, note=notes)

    def refusal(self, value: Any, reason: str, *parts: str | int) -> ScenarioError:
        place = (*self.place, *parts)
        text = f"{self.document.path(place)}: {shown(value)}: {reason}"
        for override in self.overrides:
            if tuple(map(str, place))[: len(override.place)] == override.place:
                return ScenarioError(f"--set {override.text}: {text} (in {self.document.name})")
        return ScenarioError(f"{self.document.where(place)}: {text}")


@dataclass(slots=True)
class Expansion:
    """One scenario's; ``document`` is what came of it. ``late``: part and index of a step -> the step as it is made
    anew once the outputs that it uses are known. ``included``: the files that were read beside its own."""

    files: NamedFiles
    bindings: Any = None
    """As they are written, before anything is overridden."""
    document: ExpandedDocument = field(init=False)
    late: dict[tuple[str, int], Any] = field(default_factory=dict)
    included: list[Path] = field(default_factory=list)
    _moved: dict[Place, Origin] = field(default_factory=dict)
    _outputs: dict[str, str] = field(default_factory=dict)
    _templates: dict[str, tuple[_Written, Any]] = field(default_factory=dict)

    def run(self) -> ExpandedDocument:
        """Expand the document.

        Raises ScenarioError, one line that names file, line, place and value.
        """
        files, root = self.files, dict(self.files.document.value)
        here = _Written(files.document, (), files.folder, {}, overrides=files.overrides)
        if files.document.name:
            here = replace(here, through=((files.folder / Path(files.document.name).name).resolve(),))
        for section in _SECTIONS:
            if isinstance(root.get(section), Mapping) and "include" in root[section]:
                root[section] = self._section(section, root[section], here.at(section))
        written = self.bindings
        if isinstance(written, Mapping) and "include" in written:
            written = self._section("bindings", written, here.at("bindings"))
        check_bindings(files, written, files.overrides)
        here = replace(here, names=named_values(root.get("bindings"), here.refusal))
        self._read_templates(root.get("templates"), here)
        for key in [key for key in root if key not in _PLAIN]:
            root[key] = settled(self._put_in(root[key], here.at(key)), {})
        if "objects" in root:
            objects = self._objects(root["objects"], here.at("objects"), ("objects",))
            root["objects"] = settled(objects, {}) if isinstance(root["objects"], list | Mapping) else root["objects"]
        for part in PARTS:
            if isinstance(root.get(part), list):
                root[part] = self._all_steps(part, root[part], here.at(part))
        self.document = ExpandedDocument(files.document.name, root, files.document.lines, moved=self._moved)
        return self.document

    # What is put in

    def _put_in(self, value: Any, here: _Written) -> Any:
        try:
            return put_in(value, here.names, self._outputs)
        except MisusedNameError as error:
            raise here.refusal(error.value, str(error), *error.place) from None

    def _section(self, section: str, given: Mapping[str, Any], here: _Written) -> dict[str, Any]:
        """Return a mapping of a file, with what stands beside ``include`` laid over it."""
        file = self._read(given["include"], here.at("include"))
        if not isinstance(file.document.value, dict):
            raise here.refusal(given["include"], f"must be a file with a mapping, like that of {section}", "include")
        own = {key: value for key, value in given.items() if key != "include"}
        base = dict(file.document.value)
        if "include" in base:
            base = self._section(section, base, here_of(file, here))
        for key in base:
            if key not in own:
                self._moved.setdefault((section, key), Origin(file.document, (key,)))
        return _laid_over(base, own)

    def _read(self, name: Any, here: _Written) -> Included:
        """Raises ScenarioError for what is no file, lies elsewhere, cannot be read, or includes itself."""
        found = Included.read(self.files, name, here.folder, here.through, here.refusal)
        if found.path not in self.included:
            self.included.append(found.path)
        return found

    # Objects

    def _read_templates(self, given: Any, here: _Written) -> None:
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise here.refusal(given, "must be a mapping of names to objects", "templates")
        for name, value in given.items():
            origin = self._moved.get(("templates", name))
            at = here.at("templates", name)
            if origin is not None:
                at = replace(at, document=origin.document, place=origin.place, overrides=())
            if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
                raise at.refusal(value, "must be a Kubernetes object with a kind, in which ${name} may stand")
            self._templates[str(name)] = (at, value)

    def _objects(self, value: Any, here: _Written, target: Place) -> list[Any]:
        """Objects of a list, or of one thing that stands for it."""
        items = value if isinstance(value, list) else [value]
        found: list[tuple[Any, Origin]] = []
        for index, item in enumerate(items):
            at = here.at(index) if isinstance(value, list) else here
            found += self._made(item, at)
            if len(found) > _MOST:
                raise here.refusal(len(found), f"too many objects: at most {_MOST}")
        for index, (_, origin) in enumerate(found):
            self._moved[*target, index] = origin
        return [obj for obj, _ in found]

    def _made(self, item: Any, here: _Written) -> Iterator[tuple[Any, Origin]]:
        if isinstance(item, Mapping) and set(item) == {"file"}:
            for file in self._read_all(item["file"], here.at("file")):
                # A manifest is what kubectl would apply: a ${…} in it is its own.
                yield escaped(file.document.value), Origin(file.document, ())
        elif isinstance(item, Mapping) and "kind" not in item and ("template" in item or "include" in item):
            yield from self._repeated_objects(item, here)
        else:
            yield self._put_in(item, here), Origin(here.document, here.place, here.note)

    def _repeated_objects(self, item: Mapping[str, Any], here: _Written) -> Iterator[tuple[Any, Origin]]:
        word = "template" if "template" in item else "include"
        _only(item, (word, "with", "forEach"), here)
        for names in self._repetitions(item, here):
            inner = self._with(item, here.within(**names))
            if word == "include":
                for file in self._read_all(item["include"], inner.at("include")):
                    values = file.document.value if isinstance(file.document.value, list) else [file.document.value]
                    for index, value in enumerate(values):
                        place = (index,) if isinstance(file.document.value, list) else ()
                        yield from self._made(value, here_of(file, inner, place))
                continue
            name = self._put_in(item["template"], inner.at("template"))
            if name not in self._templates:
                reason = f"no such template; templates: {among(name, self._templates)}"
                raise here.refusal(name, reason, "template")
            written, template = self._templates[name]
            takes = heads(template)
            for word, known in (("with", takes), ("forEach", takes | heads(item.get("with")))):
                for unused in [key for key in item.get(word) or {} if key not in known]:
                    there = ", ".join(sorted(takes)) or "nothing"
                    raise here.refusal(unused, f"the template does not use it; it takes {there}", word, unused)
            at = replace(written, names=inner.names, note=inner.note)
            yield self._put_in(template, at), Origin(written.document, written.place, inner.note)

    def _read_all(self, name: Any, here: _Written) -> list[Included]:
        found = Included.read_all(self.files, name, here.folder, here.through, here.refusal)
        for file in found:
            if file.path not in self.included:
                self.included.append(file.path)
        return found

    # Repetition

    def _with(self, item: Mapping[str, Any], here: _Written) -> _Written:
        given = item.get("with")
        if given is None:
            return here
        if not isinstance(given, Mapping):
            raise here.refusal(given, "must be a mapping of names to values", "with")
        names = named_values(given, here.at("with").refusal, known=here.names, late=self._outputs)
        return replace(here, names={**here.names, **names})

    def _repetitions(self, item: Mapping[str, Any], here: _Written) -> Sequence[Mapping[str, Any]]:
        if "forEach" not in item:
            return ({},)
        at = here.at("forEach")
        if heads(item["forEach"]) & set(self._outputs):
            raise at.refusal(item["forEach"], "must be known when the file is read: an output of a step is not")
        return repetitions(settled(self._put_in(item["forEach"], at), {}), at.refusal)

    # Steps

    def _all_steps(self, part: str, value: Sequence[Any], here: _Written) -> list[Any]:
        steps: list[Any] = []
        for step, origin in self._steps(value, here):
            index = len(steps)
            if index >= _MOST:
                raise here.refusal(index, f"too many steps: at most {_MOST}")
            self._moved[part, index] = origin
            steps.append(self._checked(part, index, step, here))
        return steps

    def _checked(self, part: str, index: int, step: Any, here: _Written) -> Any:
        """Return the step as the model checks it: its objects in a list, samples in the place of outputs."""
        if isinstance(step, dict):
            for place in [place for place in self._moved if place[:1] == ("new",)]:
                self._moved[part, index, *place[1:]] = self._moved.pop(place)
        if heads(step) & set(self._outputs):
            self.late[part, index] = step
        try:
            return sampled(step, {name: sample(name, kind) for name, kind in self._outputs.items()})
        except MisusedNameError as error:
            origin = self._moved[part, index]
            overrides = here.overrides if origin.document is here.document else ()
            at = replace(here, document=origin.document, place=origin.place, overrides=overrides)
            raise at.refusal(error.value, str(error), *error.place) from None

    def _steps(self, value: Any, here: _Written) -> Iterator[tuple[Any, Origin]]:
        for index, item in enumerate(value):
            at = here.at(index)
            if not isinstance(item, Mapping):
                yield item, Origin(at.document, at.place, at.note)
                continue
            for names in self._repetitions(item, at):
                yield from self._done(item, at.within(**names))

    def _done(self, item: Mapping[str, Any], here: _Written) -> Iterator[tuple[Any, Origin]]:
        if "include" in item:
            _only(item, ("include", "with", "forEach"), here)
            inner = self._with(item, here)
            file = self._read(item["include"], inner.at("include"))
            if not isinstance(file.document.value, list):
                raise here.refusal(item["include"], "must be a file with a list of steps", "include")
            yield from self._steps(file.document.value, here_of(file, inner))
        elif "steps" in item:
            _only(item, ("steps", "bindings", "forEach"), here)
            inner = here
            if item.get("bindings") is not None:
                at = here.at("bindings")
                inner = here.within(**named_values(item["bindings"], at.refusal, known=here.names, late=self._outputs))
            if not isinstance(item["steps"], list) or not item["steps"]:
                raise here.refusal(item["steps"], "must be a list of steps", "steps")
            yield from self._steps(item["steps"], inner.at("steps"))
        else:
            yield self._one(item, here), Origin(here.document, here.place, here.note)

    def _one(self, item: Mapping[str, Any], here: _Written) -> dict[str, Any]:
        step: dict[str, Any] = {}
        for key, value in item.items():
            if key == "forEach":
                continue
            if key in ("apply", "create") and value is not None:
                step[key] = self._objects(value, here.at(key), ("new", key))
            else:
                step[key] = self._put_in(value, here.at(key))
        for name, kind in declared(step.get("outputs"), here.at("outputs").refusal).items():
            if name in here.names:
                raise here.refusal(name, "is already a binding: give the output another name", "outputs", name)
            self._outputs[name] = kind
        return step


def here_of(file: Included, here: _Written, place: Place = ()) -> _Written:
    """Return the place in an included file, where the names of the place that includes it count."""
    through = (*here.through, file.path)
    return replace(here, document=file.document, place=place, folder=file.path.parent, through=through, overrides=())


def _only(item: Mapping[str, Any], allowed: Sequence[str], here: _Written) -> None:
    for key in item:
        if key not in allowed:
            raise here.refusal(key, f"unknown key next to {allowed[0]}; allowed: {', '.join(allowed)}", key)


def _laid_over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in own.items():
        inner = both.get(key)
        both[key] = _laid_over(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return both
