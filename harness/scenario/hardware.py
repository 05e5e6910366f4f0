"""The hardware that a scenario names, as the chassis' own model."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.inventory.reading import parse_hardware
from mews.emulator.inventory_file import inventory_text, parse_inventory, read_inventory
from mews.emulator.yaml_document import Document, Place
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario

Where = Callable[[Place], str]

_KEPT = 8
"""Hardware files whose values are kept, by their content: a run asks three times, a sweep for each of its seeds."""


def hardware_of(scenario: Scenario, file: Document | None = None) -> Hardware:
    """Return the inventory that a scenario names; ``file`` is the scenario as written, whose lines complaints then
    bear. Devices are called by their chassis' own IDs where a component of the stack knows them so (``Stack``).

    Raises ScenarioError, one line.
    """
    try:
        if isinstance(scenario.hardware, str) and not scenario.stack.knows_by_chassis:
            return _of_file(scenario.hardware, inventory_text(scenario.hardware))
        document, where, prefix = _located(scenario, file)
        return parse_hardware(document, "", where=where, prefix=prefix)
    except HardwareError as error:
        raise ScenarioError(str(error)) from None


@lru_cache(maxsize=_KEPT)
def _of_file(path: str, text: str) -> Hardware:
    inventory = parse_inventory(path, text)
    return parse_hardware(inventory.value, "", where=inventory.where)


def hardware_document(scenario: Scenario) -> tuple[Any, str]:
    """Return the inventory as written, and where: a file, one written in the scenario, or a ``{file: …}`` with other
    top-level keys changed (``{file: demo, profile: falcon-4005}``).

    Raises ScenarioError, one line.
    """
    document, where, _ = _located(scenario, None)
    return document, where(())


def _located(scenario: Scenario, file: Document | None) -> tuple[Any, Where, str]:
    """Return the inventory, where its places are, and under which key of that file."""
    document, where, prefix = _written(scenario, file)
    if scenario.stack.knows_by_chassis and isinstance(document, dict) and isinstance(document.get("chassis"), list):
        named = [{"prefixed": False, **each} if isinstance(each, dict) else each for each in document["chassis"]]
        document = {**document, "chassis": named}
    return document, where, prefix


def _written(scenario: Scenario, file: Document | None) -> tuple[Any, Where, str]:
    given = scenario.hardware
    if isinstance(given, str):
        inventory = _read(given)
        return inventory.value, inventory.where, ""
    here = _inside(scenario, file)
    if "file" not in given:
        return {"apiVersion": "mews/v1", "kind": "Hardware", **given}, here, "hardware"
    inventory = _read(given["file"])
    if not isinstance(inventory.value, dict):
        raise ScenarioError(f"{given['file']}: must be a mapping with kind: Hardware")

    def where(place: Place) -> str:
        return here(place) if not place or place[0] in given else inventory.where(place)

    return {**inventory.value, **{key: value for key, value in given.items() if key != "file"}}, where, "hardware"


def _inside(scenario: Scenario, file: Document | None) -> Where:
    if file is None:
        return lambda place: str(scenario.path or scenario.name)
    return lambda place: file.where(("hardware", *place))


def _read(path: str) -> Document:
    try:
        return read_inventory(path)
    except HardwareError as error:
        raise ScenarioError(str(error)) from None
