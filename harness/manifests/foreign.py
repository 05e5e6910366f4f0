"""Components that are programs of others, and what they look for in a cluster: they run in the component image, from a
folder of the control plane's node, and reach the chassis by its service in any dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mews.dialects import OURS
from mews.emulator.dialects.registry import face_of
from mews.harness.manifests.chassis import endpoint
from mews.harness.manifests.parts import CA_FILE, TRUST_FOLDER, Object
from mews.harness.manifests.spec import ReplacementProgram, StackSpec
from mews.harness.scenario.replacement import filled
from mews.kube.system.system import Component

PROGRAMS_FOLDER = "/opt/mews/programs"
"""Where they lie, on the control plane's node and in their containers."""
_ACCOUNT = "admin"
"""The chassis' first account (``mews.emulator.serve``), whose password is the token of the back doors."""


def foreign_components(spec: StackSpec) -> Iterator[tuple[str, Component]]:
    """Yield those of the stack that nothing of the user's replaces."""
    for name, component in spec.components():
        if component.program is not None and not spec.is_replaced(name):
            yield name, component


def foreign_programs(spec: StackSpec, identities: Mapping[str, str]) -> dict[str, ReplacementProgram]:
    """Return what runs of each; ``identities``: file name -> what tells its content from others."""
    made: dict[str, ReplacementProgram] = {}
    for name, component in foreign_components(spec):
        assert component.program is not None
        given = component.program(spec.system_of(name).configuration)
        file = Path(given.argv[0]).name
        argv = (f"{PROGRAMS_FOLDER}/{file}", *given.argv[1:])
        made[name] = ReplacementProgram(argv, env=given.env, identity=identities.get(file, ""), foreign=True)
    return made


def faces(spec: StackSpec) -> dict[str, str]:
    """Return where the chassis are in every dialect, for texts of ``ForeignProgram``."""
    found = {"ca": f"{TRUST_FOLDER}/{CA_FILE}"}
    for number, chassis in enumerate(spec.facility.chassis):
        for dialect in OURS:
            secure_after = len(spec.facility.chassis) if face_of(dialect).login else None
            url, at = endpoint(spec.namespace, number, secure_after=secure_after), f"{chassis.name}:{dialect}"
            parts = urlsplit(url)
            found |= {f"chassis:{at}": url, f"address:{at}": parts.netloc}
            found |= {f"host:{at}": parts.hostname or "", f"port:{at}": str(parts.port)}
    return found


def first_objects(spec: StackSpec) -> list[Object]:
    """Return what the systems have applied as the cluster comes up, their texts filled in."""
    trusted = spec.certificate.trusted if spec.certificate is not None else ""
    accounts = {f"user:{name}": _ACCOUNT for name in OURS} | {f"password:{name}": spec.token for name in OURS}
    places = {**faces(spec), "ca-text": trusted, **accounts}
    running = (each for each in spec.systems if each.components)
    given: list[Any] = [obj for each in running for obj in each.system.objects(each.configuration)]
    return [filled(obj, places) for obj in given]
