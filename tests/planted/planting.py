"""Imports a changed text in a file's place, before anything of mews has been imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tests.planted.fault import Fault
from tests.planted.rooms import ROOT, module_of


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


class _Finder:
    def __init__(self, name: str, path: str, text: str) -> None:
        self._name, self._path, self._text = name, path, text

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _Loader(name, self._path, self._text)
        return spec


def plant(fault: Fault) -> None:
    """From now on this process has that fault.

    Raises LostFault, and RuntimeError where mews has been imported already.
    """
    if any(name.startswith("mews.") for name in sys.modules):
        raise RuntimeError("mews is imported: a fault would come too late")
    name, text = module_of(fault.file), fault.text()
    sys.meta_path.insert(0, _Finder(name, str(ROOT / fault.file), text))
