"""What the systems of a stack need of Kubernetes, and of this machine. Pure but for ``lacking``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from mews.kube.releases.errors import ReleaseError
from mews.kube.system.foreign import KubernetesNeeds
from mews.systems import registry


def check_needs(release: str, systems: Iterable[str], *, gates: Mapping[str, bool], served: Mapping[str, bool]) -> None:
    """Check that a cluster of that release can have what these systems need; ``gates`` and ``served`` are what the
    stack switches on and off.

    Raises ValueError, one line that begins with a key of ``stack``.
    """
    for name, needs in _needs(systems).items():
        off = [gate for gate in needs.gates if gates.get(gate) is False]
        closed = [version for version in needs.served if served.get(version) is False]
        if off or closed:
            key, what = ("featureGates", off[0]) if off else ("runtimeConfig", closed[0])
            raise ValueError(f"{key}: {what}: must not be false: {name} needs it")
        try:
            cluster_release(release, dict.fromkeys(needs.gates, True), dict.fromkeys(needs.served, True))
        except ReleaseError as error:
            raise ValueError(f"kubernetes: {release}: does not have what {name} needs: {error}") from error


def release_with_needs(
    release: str, systems: Iterable[str], *, gates: Mapping[str, bool], served: Mapping[str, bool]
) -> ClusterRelease:
    """Return the release with what the stack says, and with what its systems need switched on."""
    needs = _needs(systems).values()
    needed_gates = {gate: True for each in needs for gate in each.gates}
    needed_versions = {version: True for each in needs for version in each.served}
    return cluster_release(release, {**needed_gates, **gates}, {**needed_versions, **served})


def needed_features(systems: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the feature gates and the API versions (``GROUP/VERSION``) that these systems need switched on."""
    needs = _needs(systems).values()
    gates = {gate for each in needs for gate in each.gates}
    return tuple(sorted(gates)), tuple(sorted({version for each in needs for version in each.served}))


def programs_of(systems: Mapping[str, Any]) -> dict[str, str]:
    """Component -> its system, of the components that are programs of others and run with these options."""
    return {
        component.name: name
        for name, options in systems.items()
        for component in registry.system(name).components
        if component.program is not None and component.wanted(options)
    }


def lacking(systems: Mapping[str, Any], *, emulated_nodes: bool = True) -> str:
    """Return why a program of one of them cannot run on this machine, one line; "" where all of them can."""
    found = ((name, registry.system(name).lacking(options, emulated_nodes)) for name, options in systems.items())
    return next((f"stack.{name}: {reason}" for name, reason in found if reason), "")


def _needs(systems: Iterable[str]) -> dict[str, KubernetesNeeds]:
    found = {name: registry.system(name).needs for name in systems}
    return {name: needs for name, needs in found.items() if needs is not None}
