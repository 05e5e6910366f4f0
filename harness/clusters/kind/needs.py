"""What the systems of a scenario need of a kind cluster: features, and programs of others in it."""

from __future__ import annotations

from pathlib import Path

from mews.emulator.hardware.inventory import Hardware
from mews.harness.clusters.kind.features import ClusterFeatures
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.system_needs import needed_features


def features_of(scenario: Scenario, hardware: Hardware) -> ClusterFeatures:
    """Return what the cluster is created with. Raises ValueError for options that cannot be."""
    gates, served = needed_features(scenario.stack.systems)
    found = [each.system.provider_ids(each.configuration) for each in scenario.stack.configured(facility_of(hardware))]
    return ClusterFeatures(gates, served, {host: name for each in found for host, name in each.items()})


def program_files(scenario: Scenario, hardware: Hardware) -> dict[str, Path]:
    """File name -> file, of the components that are programs of others and that nothing of the user's replaces."""
    found: dict[str, Path] = {}
    for each in scenario.stack.configured(facility_of(hardware)):
        for name, component in each.components():
            if component.program is not None and name not in scenario.stack.replace:
                file = Path(component.program(each.configuration).argv[0])
                found[file.name] = file
    return found
