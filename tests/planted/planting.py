"""Plants a fault in this process, before the module that has it has been imported."""

from __future__ import annotations

from mews.harness.museum.planting import plant_text
from tests.planted.fault import Fault
from tests.planted.rooms import ROOT, module_of


def plant(fault: Fault) -> None:
    """From now on this process has that fault.

    Raises LostFaultError, and RuntimeError where its module has been imported already.
    """
    plant_text(module_of(fault.file), ROOT / fault.file, fault.text())
