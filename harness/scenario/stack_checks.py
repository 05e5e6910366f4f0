"""What of a stack only shows when it is looked at beside the rest: its hardware, the user's modules and files."""

from __future__ import annotations

from itertools import combinations

from mews.emulator.hardware.inventory import Hardware
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.loaded_replacements import LoadedReplacements
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.unscaled import seconds_of
from mews.names import must_be
from mews.systems import registry


def check_stack(scenario: Scenario, hardware: Hardware) -> None:
    """Configure every system and load every replacement, as the run will; look for the times that it depends on.

    Raises ScenarioError.
    """
    try:
        scenario.stack.configured(facility_of(hardware))
    except ValueError as error:
        system, _, reason = str(error).partition(": ")
        raise scenario.refusal(("stack", system), _given(scenario, system), reason) from error
    for one, other in combinations(scenario.stack.systems, 2):
        if both := registry.system(one).sole & registry.system(other).sole:
            default = next((f" ({name}: null)" for name in (one, other) if name in registry.DEFAULT), "")
            reason = f"only one system may {min(both)}: remove {one} or {other}{default}"
            raise scenario.refusal(("stack", other), _given(scenario, other), reason)
    known = seconds_of(scenario.stack)
    for number, key in enumerate(scenario.requires.unscaled):
        if key not in known:
            raise scenario.refusal(("requires", "unscaled", number), key, must_be(key, known))
    if scenario.stack.replace:
        LoadedReplacements(scenario).check()


def _given(scenario: Scenario, system: str) -> object:
    return scenario.stack.systems[system].model_dump(exclude_unset=True)
