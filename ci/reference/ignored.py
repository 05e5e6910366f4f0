"""What emulated clusters store and ignore: fields of pods, and kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ci.reference.markdown import code, paragraphs, table
from mews.kube.emulated.types.ignored_fields import (
    CONTAINERS_ONLY,
    DROPPED,
    IGNORED,
    IGNORED_KINDS,
    NEEDS_ADD_ONS,
    PROCESSES_ONLY,
    REFUSED_IN_CONTAINERS,
)

_INTRO = (
    "Every field of a pod acts on emulated clusters (embedded and control-plane), is refused, or is listed here. "
    "`mews validate` prints a warning for scenarios whose objects use one, and the API of `mews up` answers with a "
    "`Warning` header when an object is created. `mews envtest --bare` gives the real server's warnings alone."
)


def page() -> str:
    """Return all tables."""
    return paragraphs(
        "# Stored and ignored",
        _INTRO,
        "## Fields of pods",
        table(("struct", "fields", "why", "since"), _ignored()),
        "## In containers alone",
        "These act where the image runs in a container of the Docker engine (`unknownImages: container`). "
        "Processes and simulated containers ignore it.",
        table(("struct", "fields"), _fields(CONTAINERS_ONLY)),
        "These act in processes. Containers of the Docker engine ignore them.",
        table(("struct", "fields"), _fields(PROCESSES_ONLY)),
        "For these a container of the Docker engine ends in `CreateContainerConfigError`; processes and "
        "simulated containers ignore it:",
        table(("struct", "fields"), _fields(REFUSED_IN_CONTAINERS)),
        "## Dropped",
        "The API server drops these, as Kubernetes 1.34 does while a feature gate is off.",
        table(("struct", "fields"), _fields(DROPPED)),
        "## Kinds",
        "Objects of these kinds are stored, and nothing acts on them; a real control plane does.",
        table(("group", "kind", "why"), _kinds(IGNORED_KINDS)),
        "Nothing acts on these either, nor does it on a real cluster without an add-on:",
        table(("group", "kind", "add-on"), _kinds(NEEDS_ADD_ONS)),
    )


def _ignored() -> Iterable[tuple[str, ...]]:
    for row in IGNORED:
        yield code(row.struct), _words(row.fields), row.why, row.since


def _fields(fields: Mapping[str, str]) -> Iterable[tuple[str, ...]]:
    for struct, names in fields.items():
        yield code(struct), _words(names)


def _kinds(kinds: Mapping[tuple[str, str], str]) -> Iterable[tuple[str, ...]]:
    for (group, kind), why in kinds.items():
        yield code(group), code(kind), why


def _words(names: str) -> str:
    return " ".join(code(name) for name in names.split())
