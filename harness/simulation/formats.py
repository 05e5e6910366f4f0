"""The formats of traces, by the name that ``--format`` has."""

from __future__ import annotations

from collections.abc import Mapping

from mews.harness.simulation.columns import MEWS, PAI2020, TraceFormat
from mews.harness.simulation.helios import HELIOS

FORMATS: Mapping[str, TraceFormat] = {each.name: each for each in (MEWS, PAI2020, HELIOS)}
