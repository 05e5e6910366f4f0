"""Which objects a list or a watch is about: namespace, labels, fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.errors import BadRequestError
from mews.kube.api.label_selectors import requirements
from mews.kube.api.objects import Object
from mews.kube.api.selectors import field_requirements, label_selector
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.kinds import Kind

_EVERYWHERE = ("metadata.name", "metadata.namespace")
_NO_LABELS: Mapping[str, str] = {}
_LONGEST, _MOST_TERMS = 64 * 1024, 1000
"""Of a selector, which each object of a kind is held against; kube-apiserver has no such bound, and Go's speed."""


class FieldTerm(Struct, frozen=True):
    """``path=value`` or ``path!=value``; ``path`` split at its dots. ``fallback`` counts where there is nothing at the
    path."""

    path: tuple[str, ...]
    equal: bool
    value: str
    default: str = ""
    fallback: tuple[str, ...] = ()

    def holds(self, obj: Object) -> bool:
        """Return whether the object satisfies it."""
        found = text_at(obj, self.path, self.default)
        if not found and self.fallback:
            found = text_at(obj, self.fallback)
        return (found == self.value) == self.equal


class Selection(Struct, frozen=True):
    """A compiled selection; ``source`` is what it was compiled from: equal sources select the same."""

    namespace: str | None = None
    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: tuple[FieldTerm, ...] = ()
    source: tuple[str | None, str, str] = (None, "", "")

    @property
    def is_everything(self) -> bool:
        """Nothing but perhaps the namespace is asked."""
        return self.labels is None and not self.fields

    def matches(self, obj: Object) -> bool:
        """Return whether the object is selected."""
        if self.namespace is not None and obj["metadata"].get("namespace") != self.namespace:
            return False
        for term in self.fields:
            if not term.holds(obj):
                return False
        return self.labels is None or self.labels(obj["metadata"].get("labels") or _NO_LABELS)

    def narrow(self) -> tuple[tuple[str, ...], str] | None:
        """``(path, value)`` of the best equality to index by, or None."""
        for term in self.fields:
            if term.equal and term.value and not term.default and not term.fallback:
                return term.path, term.value
        return None if self.namespace is None else (("metadata", "namespace"), self.namespace)


EVERYTHING = Selection()


def text_at(obj: Any, path: tuple[str, ...], default: str = "") -> str:
    """Return the value at a path as text, ``default`` when absent."""
    value = obj
    for part in path:
        if type(value) is not dict or (value := value.get(part)) is None:
            return default
    if value is True or value is False:
        return "true" if value else "false"
    return value if type(value) is str else str(value)


def select(kind: Kind, *, namespace: str | None = None, labels: str = "", fields: str = "") -> Selection:
    """Compile the selectors of a request; 400 for what cannot be read or is not selectable."""
    if not labels and not fields:
        return EVERYTHING if namespace is None else Selection(namespace, source=(namespace, "", ""))
    if max(len(labels), len(fields)) > _LONGEST or max(labels.count(","), fields.count(",")) > _MOST_TERMS:
        raise BadRequestError(f"a selector may have {_LONGEST} characters and {_MOST_TERMS} terms and values")
    try:
        predicate = _labels(labels) if labels.strip() else None
        terms = tuple(_term(kind, *requirement) for requirement in field_requirements(fields))
    except ValueError as error:
        raise BadRequestError(str(error)) from None
    return Selection(namespace, predicate, terms, (namespace, labels, fields))


def _labels(text: str) -> Callable[[Mapping[str, str]], bool]:
    selects = label_selector(text)
    for requirement in requirements(text):
        errors = _requirement_errors(requirement.key, requirement.values)
        if errors:
            raise ValueError(f"unable to parse requirement: {errors[0]}")
    return selects


def _requirement_errors(key: str, values: Sequence[str]) -> list[refusals.FieldError]:
    """Return what is wrong with key and values of a requirement: values as they are, however long."""
    found = names.qualified_errors("<nil>", key)
    for index, value in enumerate(values):
        if not re.fullmatch(names.LABEL_VALUE, value):
            found.append(refusals.bad(f"values[{index}][{key}]", value, names.LABEL_VALUE_TEXT))
    return found


def _term(kind: Kind, path: str, equal: bool, value: str) -> FieldTerm:
    if path not in _EVERYWHERE and path not in kind.selectable:
        if kind.selectable or kind.custom:
            raise ValueError(_unsupported(kind, path))
        raise ValueError(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    stored = _STORED_AS.get(path, path).replace("regarding.", "involvedObject.", 1)
    fallback = _FALLBACKS.get(path, ())
    return FieldTerm(tuple(stored.split(".")), equal, value, _DEFAULTS.get(path, ""), fallback)


_STORED_AS = {"source": "source.component", "reportingController": "reportingComponent"}
"""Selectable names that are stored elsewhere."""

_FALLBACKS = {"source": ("reportingComponent",)}
"""An event of events.k8s.io has no source: who reports it stands for that."""


def _unsupported(kind: Kind, path: str) -> str:
    """Return the refusal of a field, in the words of the kind's conversion."""
    resource = kind.resource
    if kind.field_words == "quoted":
        return f'field label "{path}" not supported for {resource.kind}'
    typed = f" for {resource.api_version}, Kind={resource.kind}" if kind.field_words == "typed" else ""
    return f"field label not supported{typed}: {path}"


_DEFAULTS = {"spec.unschedulable": "false", "spec.hostNetwork": "false"}
"""What an absent value counts as."""
