"""Which lists of a kind a strategic merge patch merges, and by what: from the types' own patch strategies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mews.kube.api.strategic import Keys
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.types.bodies import shape_of
from mews.kube.emulated.types.gotypes import SCALARS, Field, struct


class MergeKeys(Mapping[str, str]):
    """Dotted path of a field, list elements not counted -> merge key; looked up in the types as it is asked."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, str | None] = {}

    def _find(self, path: str) -> str | None:
        if path not in self._known:
            self._known[path] = self._look_up(path.split("."))
        return self._known[path]

    def _look_up(self, parts: list[str]) -> str | None:
        type_, field = self._root, None
        for part in parts:
            while type_.startswith("[]"):
                type_ = type_[2:]
            if type_.startswith("{}"):
                type_, field = type_[2:], None
                continue
            field = None if type_ in SCALARS else struct(type_).fields.get(part)
            if field is None:
                return None
            type_ = field.type
        return _merge_key(field)

    def __getitem__(self, path: str) -> str:
        found = self._find(path)
        if found is None:
            raise KeyError(path)
        return found

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._find(path) is not None

    def __iter__(self) -> Iterator[str]:
        return (path for path, key in self._known.items() if key is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _merge_key(field: Field | None) -> str | None:
    if field is None or "merge" not in field.strategies or not field.type.startswith("[]"):
        return None
    return field.merge_key


_KNOWN: dict[str, MergeKeys] = {}


def merge_keys(kind: Kind) -> Keys:
    """Return the merge keys of a built-in kind."""
    root = shape_of(kind).ref
    return _KNOWN.setdefault(root, MergeKeys(root))
