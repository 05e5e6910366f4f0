"""Lines of the embedded API server by room, and which kinds its core names: ``python -m ci.kinds``."""

# A tool for developers: it prints what it counts.
# ruff: noqa: T201

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

from mews.kube.api import resources
from mews.kube.emulated.core.store.released_kinds import kinds_of
from mews.kube.releases.cluster_release import cluster_release
from mews.kube.releases.release_data import names

ROOT = Path(__file__).resolve().parent.parent / "kube" / "emulated"
ROOMS = ("apiserver", "core", "kinds", "packs", "ports", "streaming", "types")
GENERIC = frozenset(("namespace", "service", "Scale", "scale", "event"))
"""Names of kinds that are words of requests and fields as well."""


def kind_names() -> frozenset[str]:
    """Return plurals, kinds and qualified plurals of all built-in kinds of all releases."""
    kinds = [kind for name in names() for kind in kinds_of(cluster_release(name))]
    found = {word for kind in kinds for word in (kind.plural, kind.resource.kind, kind.qualified)}
    return frozenset(found - GENERIC)


def named_in(path: Path, known: frozenset[str]) -> Iterator[str]:
    """Yield the kinds that a module names outside its docstrings: as texts, or by the constants of ``kube.api``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documented and node.value in known:
            yield str(node.value)
        elif isinstance(node, ast.ImportFrom) and node.module == resources.__name__:
            yield from (alias.name for alias in node.names if alias.name.isupper())


def lines_of(room: str) -> int:
    """Return the lines of a room's Python files."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / room).rglob("*.py"))


def main() -> None:
    """Print one JSON object for each room, and one for each file of the core that names a kind."""
    for room in ROOMS:
        print(json.dumps({"room": room, "lines": lines_of(room)}))
    known = kind_names()
    for path in sorted((ROOT / "core").rglob("*.py")):
        found = sorted(set(named_in(path, known)))
        if found:
            print(json.dumps({"file": str(path.relative_to(ROOT)), "named": found}))


if __name__ == "__main__":
    main()
