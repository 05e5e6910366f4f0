"""Make kube/emulated/types/internal_kinds.json from a checkout of k8s.io/kubernetes.

``python ci/internal_types.py GOMODCACHE/k8s.io/kubernetes@v1.34.2``: upstream's messages about what may not be changed
print its internal structs, whose fields have no names for JSON; this reads their names, order and Go types.
"""

# Prints what it wrote.
# ruff: noqa: T201

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = ("apps", "autoscaling", "batch", "core", "networking", "node", "policy", "resource", "scheduling", "storage")
ROOTS = (
    "core.PodSpec",
    "core.PersistentVolumeClaimSpec",
    "core.PodTemplateSpec",
    "core.PersistentVolumeSource",
    "core.EphemeralContainer",
    "core.SecurityContext",
    "core.VolumeNodeAffinity",
    "batch.SuccessPolicy",
    "batch.PodFailurePolicy",
    "storage.VolumeAttachmentSpec",
    "resource.ResourceClaimSpec",
    "resource.ResourceClaimTemplateSpec",
)
FILE = Path(__file__).parents[1] / "kube/emulated/types/internal_kinds.json"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^(?:type |\t)(\w+) ((?:map\[|\[\]|string|int|bool)\S*)$", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:([A-Z]\w*(?:, [A-Z]\w*)*)\s+)?([*\[\]\w.]+)(?:\s+`[^`]*`)?$")


def structs(package: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield each type of a file with its fields: ``Name:Type`` in order; an embedded one has no name."""
    bare = re.sub(r"[ \t]*//.*$", "", text, flags=re.MULTILINE)
    for name, type_ in _NAMED.findall(bare):
        yield f"{package}.{name}", "=" + _qualified(package, type_)
    for name, body in _STRUCT.findall(bare):
        fields = []
        for line in body.splitlines():
            match = _FIELD.match(line)
            if match:
                names, type_ = match.groups()
                fields += [f"{one}:{_qualified(package, type_)}" for one in (names or "").split(", ")]
        yield f"{package}.{name}", " ".join(fields)


def _qualified(package: str, type_: str) -> str:
    """Types of the package itself bear its name."""
    word = re.compile(r"(?<![\w.])([A-Z]\w*)(?![\w.])")
    return word.sub(rf"{package}.\1", type_.replace("api.", "core."))


def main(checkout: str) -> int:
    """Write the file, of all that the roots reach."""
    known: dict[str, str] = {}
    for package in PACKAGES:
        for file in sorted(Path(checkout, "pkg/apis", package).glob("*.go")):
            if not file.name.endswith("_test.go"):
                known.update(structs(package, file.read_text(encoding="utf-8")))
    reached: dict[str, str] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name in known and name not in reached:
            reached[name] = known[name]
            waiting += re.findall(r"[a-z]+\.[A-Z]\w*", known[name])
    FILE.write_text(json.dumps(reached, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{FILE.name}: {len(reached)} types")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
