"""Components that are programs of others, and what a system needs of the Kubernetes that it runs on. Frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct, field

from mews.kube.system.ports import Ports


class ForeignProgram(Struct, frozen=True):
    """A program that is started in wall-clock time. In ``argv`` and ``env`` these are filled in: ``{kubeconfig}``,
    ``{ca}`` (the file with the chassis' certificate authority), ``{chassis:NAME:DIALECT}`` (base URL),
    ``{address:NAME:DIALECT}`` (the same without its scheme), ``{host:NAME:DIALECT}`` and ``{port:NAME:DIALECT}``."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class KubernetesNeeds(Struct, frozen=True):
    """``gates``: features that must be on. ``served``: API versions (``GROUP/VERSION``) that must be served."""

    gates: tuple[str, ...] = ()
    served: tuple[str, ...] = ()


class RunsAsProgramError(Exception):
    """A component was to run in this process that is a program of somebody else's."""


def only_as_program(ports: Ports, configuration: object) -> NoReturn:
    """``Component.make`` of a component that has a ``program``: nothing of ours takes its place.

    Raises RunsAsProgramError.
    """
    raise RunsAsProgramError("this component is a program, which needs wall-clock time and emulated nodes")
