"""YAML with line numbers: duplicate keys are refused, keys are texts and timestamps stay text, as in manifests."""

from __future__ import annotations

from typing import Any, ClassVar

import yaml
from msgspec import Struct, field

from mews.yaml_text import check_extent

Place = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(ValueError):
    """A text that is no YAML document of ours; one line with file, line and cause."""


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader without implicit timestamps."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


class Document(Struct, frozen=True):
    """One YAML document: its value, and the line of each place in it."""

    name: str
    value: Any
    lines: dict[Place, int] = field(default_factory=dict)

    def where(self, place: Place) -> str:
        """``FILE:LINE`` of the place, or of the nearest place around it that is in the file."""
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        return f"{self.name}:{self.lines[known]}" if known in self.lines else self.name

    def path(self, place: Place) -> str:
        """Return the place as complaints show it."""
        return dotted(place)

    def written_at(self, place: Place) -> Place | None:
        """Return where of this file that was written; None for what another file has."""
        return place


def dotted(place: Place) -> str:
    """Return a place as it is written in overrides and messages: ``steps.2.wait``."""
    return ".".join(str(part).replace(".", "\\.") for part in place) or "(top)"


def read_document(text: str, name: str) -> Document:
    """Return the one document of a YAML text.

    Raises DocumentError for syntax errors, several documents and duplicate keys.
    """
    try:
        check_extent(text)
        return _document(text, name)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        cause = _oneline(error.problem or error.context or "unreadable")
        raise DocumentError(f"{name}{line}: not YAML: {cause}") from None
    except DocumentError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise DocumentError(f"{name}: not YAML: {_oneline(str(error))}") from None


def _document(text: str, name: str) -> Document:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        document = Document(name, None)
        value = _Builder(loader, document).build(node, ()) if node is not None else None
        return Document(name, value, document.lines)
    finally:
        loader.dispose()


def _oneline(text: str) -> str:
    return " ".join(text.split())


class _Builder:
    def __init__(self, loader: Any, document: Document) -> None:
        self._loader = loader
        self._document = document

    def build(self, node: Any, place: Place) -> Any:
        self._document.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise DocumentError(
                f"{self._document.name}:{node.start_mark.line + 1}: not YAML: the tag {node.tag!r} is not taken"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, index)) for index, item in enumerate(node.value)]
        return self._loader.construct_object(node, deep=True)

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        merge = "tag:yaml.org,2002:merge"
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == merge:
                for source in value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]:
                    inherited = self.build(source, (*place, "<<"))
                    value = {**(inherited if isinstance(inherited, dict) else {}), **value}
        seen: set[str] = set()
        for key_node, value_node in node.value:
            if key_node.tag == merge:
                continue
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "?"
            where = f"{self._document.name}:{key_node.start_mark.line + 1}"
            if key in seen:
                raise DocumentError(f"{where}: {dotted((*place, key))}: duplicate key {key!r}: write it once")
            seen.add(key)
            value[key] = self.build(value_node, (*place, key))
            self._document.lines[(*place, key)] = key_node.start_mark.line + 1
        return value
