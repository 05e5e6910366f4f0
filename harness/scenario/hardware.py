"""The hardware that a scenario names, as the chassis' own model."""

from __future__ import annotations

from typing import Any

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.chassis.inventory import Hardware, parse_hardware
from mews.harness.errors import unreadable
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.yamlfile import read_yaml


def hardware_of(scenario: Scenario) -> Hardware:
    """The inventory that a scenario names.

    Raises ScenarioError, one line.
    """
    document, source = hardware_document(scenario)
    try:
        return parse_hardware(document, source)
    except HardwareError as error:
        raise ScenarioError(str(error)) from None


def hardware_document(scenario: Scenario) -> tuple[Any, str]:
    """The inventory as written, and where: a file, one written in the scenario, or a ``{file: …}`` with other
    top-level keys changed (``{file: demo, profile: falcon-4005}``).

    Raises ScenarioError, one line.
    """
    given = scenario.hardware
    if isinstance(given, str):
        return _read(given), given
    where = f"{scenario.path}: hardware" if scenario.path else "hardware"
    if "file" not in given:
        return {"apiVersion": "mews/v1", "kind": "Hardware", **given}, where
    document = _read(given["file"])
    if not isinstance(document, dict):
        raise ScenarioError(f"{given['file']}: must be a mapping with kind: Hardware")
    return {**document, **{key: value for key, value in given.items() if key != "file"}}, where


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return read_yaml(file.read(), path).value
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(unreadable(path, error)) from None
