"""Entries from shipped files and registries."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mews.dialects import DIALECTS
from mews.harness import systems as all_of
from mews.harness.backends import BACKENDS, backend_of
from mews.harness.catalogue.entry import CatalogueEntry, first_sentence
from mews.harness.catalogue.files import shipped_files
from mews.harness.package import room
from mews.systems import registry

_TYPED: Mapping[Any, str] = MappingProxyType({bool: "true|false", float: "SECONDS", int: "N"})
"""Type of a parameter -> what stands for its value; of others the parameter's name does."""


def scenarios() -> Iterator[CatalogueEntry]:
    """Yield each by the comment that it begins with."""
    yield from _described("scenario")


def hardware() -> Iterator[CatalogueEntry]:
    """Likewise."""
    yield from _described("hardware")


def _described(kind: str, of: str = "") -> Iterator[CatalogueEntry]:
    for name, path in shipped_files(kind).items():
        yield CatalogueEntry(name, first_sentence(_first_comment(path)), of)


def _first_comment(path: Path) -> str:
    found = re.match(r"(?:#[^\n]*\n)+", path.read_text(encoding="utf-8"))
    return "" if found is None else found[0].replace("#", "")


def images() -> Iterator[CatalogueEntry]:
    """Yield those of images.yaml by the comment above them, then those of systems."""
    text = (room("fixtures") / "images.yaml").read_text(encoding="utf-8").partition("\nimages:\n")[2]
    comment: list[str] = []
    for line in text.splitlines():
        if line.startswith("  #"):
            comment.append(line.removeprefix("  #"))
            continue
        name = re.match(r"  (\S+):$", line)
        if name is not None:
            yield CatalogueEntry(name[1], first_sentence(" ".join(comment)) or "Run the container's own command")
        comment = []
    for system in all_of.all_systems():
        yield from (CatalogueEntry(name, f"Belongs to {system.name}", system.name) for name in system.images())


def faults() -> Iterator[CatalogueEntry]:
    """Yield those of a chassis, of a host, then those between a component and the API, with the command that adds
    one."""
    from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
    from mews.emulator.host.faults.registry import HOST_FAULTS
    from mews.harness.api_faults.registry import API_FAULTS
    from mews.registry import NotRegisteredError

    for owner, faults in (("chassis", CHASSIS_FAULTS), ("host", HOST_FAULTS), ("component", API_FAULTS)):
        for name in faults.names():
            try:
                kind = faults.find(name)
            except NotRegisteredError:  # another package's: of the other owner, or broken
                continue
            use = f"mews fault add --{owner} NAME {name} {_parameters(kind)}".rstrip()
            yield CatalogueEntry(name, first_sentence(kind.__doc__ or ""), owner, use)


def _parameters(kind: type[Any]) -> str:
    """Return what must be given by a placeholder, what may be given by its default in brackets."""
    hints = typing.get_type_hints(kind)
    words = []
    for field in dataclasses.fields(kind):
        word = f"{field.name}={_value(field, hints[field.name])}"
        words.append(word if field.default is dataclasses.MISSING else f"[{word}]")
    return " ".join(words)


def _value(field: dataclasses.Field[Any], hint: Any) -> str:
    """Return a parameter's default as it is typed, ``a|b`` of a choice, else a word in capitals."""
    if field.default not in (dataclasses.MISSING, None):
        return str(json.dumps(field.default)).strip('"')
    parts = [each for each in (typing.get_args(hint) or (hint,)) if each is not type(None)]
    return "|".join(each if isinstance(each, str) else _TYPED.get(each, field.name.upper()) for each in parts)


def systems() -> Iterator[CatalogueEntry]:
    """Yield each with what it does; ``none`` leaves them out."""
    for name, system in registry.usable().items():
        yield CatalogueEntry(name, system.summary, use=f"mews up --stack {name}")
    yield CatalogueEntry("none", "runs no system: a bare cluster for your own", use="mews up --stack none")


def experiments() -> Iterator[CatalogueEntry]:
    """Yield each with its system."""
    for system in all_of.all_systems():
        for each in system.studies.experiments():
            yield CatalogueEntry(each.name, each.summary, system.name)


def clusters() -> Iterator[CatalogueEntry]:
    """Yield each with the Kubernetes that it runs, and the times it can run in."""
    from mews.kube.emulated.kubelet.node import VERSION

    kubernetes = {
        "embedded": f"Kubernetes {VERSION}, emulated in one process",
        "control-plane": f"the etcd and kube-apiserver of this machine, with emulated nodes {VERSION}",
        "kind": "the Kubernetes of a kind node image, with real kubelets in Docker",
        "kubeconfig": "your cluster, with its Kubernetes",
    }
    for name in BACKENDS:
        times = " or ".join(backend_of(name).times)
        yield CatalogueEntry(name, kubernetes[name], times, f"mews run demo --cluster {name}")


def dialects() -> Iterator[CatalogueEntry]:
    """Yield those of ours and of installed packages."""
    for name in DIALECTS.names():
        dialect = DIALECTS.find(name)
        yield CatalogueEntry(
            name, dialect.summary or "A dialect of an installed package", use=f"mews serve --dialect {name}"
        )


def ignored() -> Iterator[CatalogueEntry]:
    """Yield what emulated clusters store and do not act on, with the reason; what the API server drops, too."""
    from mews.kube.emulated.types import ignored_fields as fields

    for (_, kind), why in fields.IGNORED_KINDS.items():
        yield CatalogueEntry(kind, why, "kind")
    for (_, kind), add_on in fields.NEEDS_ADD_ONS.items():
        yield CatalogueEntry(kind, f"needs an add-on on a real cluster, too: {add_on}", "kind")
    for row in fields.IGNORED:
        yield from (CatalogueEntry(f"{row.struct}.{name}", row.why, "field") for name in row.fields.split())
    containers = "acts only in containers of the Docker engine (--unknown-images container)"
    tables = (
        (fields.CONTAINERS_ONLY, containers),
        (fields.PROCESSES_ONLY, "acts only in processes"),
        (fields.DROPPED, "dropped: its feature gate is off"),
    )
    for rows, why in tables:
        for struct, names in rows.items():
            yield from (CatalogueEntry(f"{struct}.{name}", why, "field") for name in names.split())


def profiles() -> Iterator[CatalogueEntry]:
    """Boards (GPU models), latencies of chassis, hosts and testbeds, quirks of chassis, profiles of conformance."""
    from mews.emulator.hardware.chassis_profiles import PROFILES as CHASSIS
    from mews.emulator.hardware.gpu_profiles import PROFILES as BOARDS
    from mews.emulator.hardware.host_profiles import HOST_PROFILES

    for name, board in BOARDS.items():
        yield CatalogueEntry(name, f"{board.name}, {round(board.memory_mib / 1024)} GiB", "board")
    for name, model in CHASSIS.items():
        yield CatalogueEntry(name, _latencies(model.other.source), "chassis")
    for name, profile in HOST_PROFILES.items():
        yield CatalogueEntry(name, _latencies(profile.source), "host")
    for system in all_of.all_systems():
        testbeds: Mapping[str, Any] = system.studies.profiles()
        yield from (CatalogueEntry(name, f"Latencies measured for {system.title}", "testbed") for name in testbeds)
    yield from _described("quirks", "quirks")
    yield from _described("profile", "conformance")


def _latencies(source: str) -> str:
    text = first_sentence(source).partition(";")[0]
    return f"Latencies: {text}" if text else "No latencies"
