"""A system as it is part of one stack: with its options, its configuration and its components by their names there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from mews.kube.system.system import Component, Pooled, System


class ConfiguredSystem(Struct, frozen=True):
    """``options`` are what the file says of it, ``configuration`` what ``System.configure`` made of them; ``names`` are
    those of its components in this stack (see ``names_in_stack``)."""

    system: System
    options: Any
    configuration: Any
    names: Mapping[str, str] = field(default_factory=dict)

    def components(self) -> Iterator[tuple[str, Component]]:
        """Yield the components that the options let run, each with its name in this stack."""
        for component in self.system.components:
            if component.wanted(self.options):
                yield self.names.get(component.name, component.name), component

    @property
    def pooled(self) -> Pooled | None:
        """What it moves between nodes, if it does."""
        return self.system.pooled(self.configuration)


def provider_id_of(node: str, systems: Iterable[ConfiguredSystem]) -> str:
    """Return the providerID that a system of the stack gives to that node; "" where none does."""
    found = (each.system.provider_ids(each.configuration).get(node, "") for each in systems)
    return next(filter(None, found), "")


def names_in_stack(systems: Iterable[System], taken: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """(system, component) -> what the component is called in the stack of these systems, in journal and steps.

    A component goes by its own name. Where an earlier system of the stack, or the cluster itself (``taken``), has one
    of that name, the later one goes by ``SYSTEM.COMPONENT``.
    """
    used, names = set(taken), {}
    for system in systems:
        for component in system.components:
            own = component.name
            name = f"{system.name}.{own}" if own in used else own
            used.add(name)
            names[system.name, own] = name
    return names
