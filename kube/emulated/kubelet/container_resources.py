"""What a container wants of cpu and memory, and what it runs with: they differ while its pod is being resized. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.kubelet.containerd import ContainerInstance

RESIZABLE = ("cpu", "memory")
SIDES = ("limits", "requests")


def resizable(container: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the part of a container's resources that may change while it runs."""
    given = container.get("resources") or {}
    found = {
        side: {name: amount for name, amount in (given.get(side) or {}).items() if name in RESIZABLE} for side in SIDES
    }
    return {side: amounts for side, amounts in found.items() if amounts}


def resources_now(container: Mapping[str, Any], latest: ContainerInstance | None) -> dict[str, Any]:
    """Return the resources with which a container runs; those that it wants, where it does not run."""
    wanted = dict(container.get("resources") or {})
    if latest is None or not latest.running or latest.resources == resizable(container):
        return wanted
    for side in SIDES:
        given, asked = latest.resources.get(side) or {}, wanted.get(side) or {}
        kept = {
            name: given.get(name, amount) for name, amount in asked.items() if name in given or name not in RESIZABLE
        }
        wanted[side] = {**kept, **{name: amount for name, amount in given.items() if name not in kept}}
    return wanted
