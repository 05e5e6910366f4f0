"""Models of hardware as YAML files: a folder for each kind, a file for each model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

Model = TypeVar("Model")


class ModelFiles(Mapping[str, Model], Generic[Model]):
    """The models of a folder, by name: a file each, which is read when it is asked for. ``RTX_3090.yaml`` has the
    fields of ``RTX 3090``, or those in which it differs from the model that ``extends`` names.

    ``make`` takes a name and the fields; ``first`` are models that need no file. Looking one up raises ValueError for a
    field that is not among ``fields``, and what ``make`` raises.
    """

    def __init__(
        self,
        folder: Path,
        fields: frozenset[str],
        make: Callable[[str, Mapping[str, Any]], Model],
        *,
        first: Mapping[str, Model] = MappingProxyType({}),
    ) -> None:
        self._fields = fields
        self._make = make
        self._files = {
            path.stem.replace("_", " "): path for path in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)
        }
        self._names = (*first, *self._files)
        self._read: dict[str, Model] = dict(first)

    def __getitem__(self, name: str) -> Model:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = self._make(name, self._values(name))
        return found

    def _values(self, name: str) -> dict[str, Any]:
        import yaml

        path = self._files[name]
        values: dict[str, Any] = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        base = values.pop("extends", None)
        if unknown := sorted(values.keys() - self._fields):
            raise ValueError(f"{path}: {unknown[0]}: unknown field; allowed: {', '.join(sorted(self._fields))}")
        return values if base is None else self._values(base) | values

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def source_of(name: str, values: Mapping[str, Any]) -> str:
    """Return where the values of a model come from.

    Raises ValueError for a file that does not say it.
    """
    source = values.get("source")
    if not isinstance(source, str):
        raise ValueError(f"{name}: source {source!r}: must be a text, where the values come from")
    return source
