"""Starts ``mews``, unless another distribution owns that import name.

``mews`` in package indexes is another project, and pip lets two distributions write the same files: then a module is
missing, or one of theirs is imported. This package lies outside ``mews``, so that it can say what happened.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "falcon-mews"
MARK = 'OWNER = "falcon-mews"'
"""A line of our ``mews/__init__.py``."""
_OTHER = re.compile(r"mews-[^-]+\.(dist|egg)-info")


def main() -> None:
    """The command ``mews``. Exits 3 where ``mews`` is not ours alone."""
    problem = conflict()
    if problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(3)
    from mews.harness.__main__ import main as run

    run()


def conflict() -> str:
    """Return the line about another distribution that owns ``mews``; "" where it is ours. Imports nothing of it."""
    spec = find_spec("mews")
    origin = Path(spec.origin) if spec is not None and spec.origin is not None else None
    if origin is not None and MARK in origin.read_text(encoding="utf-8", errors="replace"):
        beside = origin.parent.parent
        if not any(_OTHER.fullmatch(name) for name in os.listdir(beside)):
            return ""
    return _line(origin)


def _line(origin: Path | None) -> str:
    """Return who else is installed, and what to type; slow, as it reads all metadata."""
    from importlib.metadata import packages_distributions

    others = sorted(set(packages_distributions().get("mews", ())) - {DISTRIBUTION})
    again = f"pip install --force-reinstall --no-deps {DISTRIBUTION}"
    if others:
        names = " and ".join(others)
        return f"{names} also owns the import name mews: pip uninstall {' '.join(others)}, then {again}"
    where = f"{origin} is not" if origin is not None else "mews/__init__.py is missing or not"
    return f"{where} of {DISTRIBUTION}: remove what put it there, then {again}"
