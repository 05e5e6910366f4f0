"""Names that have become others: the old one works for one more release, with a warning that says the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module (PEP 562). ``names``: old name -> new name, both of that module."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return get
