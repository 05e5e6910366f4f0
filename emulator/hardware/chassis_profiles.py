"""Latency profiles: how chassis behave in time, and how they misbehave by themselves: models in ``chassis_models/``.

``falcon-4005`` is fitted to the timings of two real Falcon 4005 chassis (contract chassis.md 2; ``durations.csv``: ns
clock, ``operations.csv``: 723 calls at 1 s resolution, whose true spread is the observed variance less 1/6 s² of
rounding). tests/emulator/test_falcon_fit.py draws from it and compares mean, p50 and p95 with those files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.latency import Fixed, Latency, parse_latency
from mews.emulator.hardware.model_files import ModelFiles, source_of

Spec = Mapping[str, Any]


class ChassisProfile(Struct, frozen=True):
    """Latencies of one chassis and ``quirks``: specs of the faults it has by nature (they survive ``clear``).

    Attach and detach are serialised by the chassis' one management CPU. Reads are answered beside them: the measured
    operation times were seen by a client while two pollers read the same chassis all the time, so they hold no queue
    of reads. ``reads_queue`` puts reads into the queue too.
    """

    name: str
    source: str
    attach: Latency
    detach: Latency
    read: Latency
    quirks: tuple[Spec, ...] = ()
    reads_queue: bool = False


INSTANT = ChassisProfile("instant", "no latency at all", attach=Fixed(0), detach=Fixed(0), read=Fixed(0))

KEYS = ("attach", "detach", "read", "quirks", "reads_queue")


class ChassisModel(Struct, frozen=True):
    """How the chassis of a model behave: ``named`` those of these names, ``other`` all others."""

    other: ChassisProfile
    named: Mapping[str, ChassisProfile]

    def profile(self, chassis: str) -> ChassisProfile:
        """Return the profile of the chassis of that name."""
        return self.named.get(chassis, self.other)


def _parsed(name: str, source: str, value: Mapping[str, Any]) -> ChassisProfile:
    quirks = value.get("quirks", [])
    if not isinstance(quirks, list) or not all(isinstance(quirk, Mapping) for quirk in quirks):
        raise ValueError(f"quirks {quirks!r}: must be a list of fault specs, such as {{kind: lying-result, count: 1}}")
    reads_queue = value.get("reads_queue", False)
    if not isinstance(reads_queue, bool):
        raise ValueError(f"reads_queue {reads_queue!r}: must be true or false")
    return ChassisProfile(
        name,
        source,
        attach=parse_latency(value.get("attach", 0)),
        detach=parse_latency(value.get("detach", 0)),
        read=parse_latency(value.get("read", 0)),
        quirks=tuple(quirks),
        reads_queue=reads_queue,
    )


def _model(name: str, values: Mapping[str, Any]) -> ChassisModel:
    source, named = source_of(name, values), values.get("named", {})
    of_all = {key: values[key] for key in KEYS if key in values}
    for chassis, own in named.items():
        if unknown := sorted(own.keys() - set(KEYS)):
            raise ValueError(f"{name}: named.{chassis}.{unknown[0]}: unknown field; allowed: {', '.join(KEYS)}")
    return ChassisModel(
        _with_latencies(_parsed(name, source, of_all)),
        {chassis: _with_latencies(_parsed(name, source, {**of_all, **own})) for chassis, own in named.items()},
    )


def _with_latencies(profile: ChassisProfile) -> ChassisProfile:
    """Read the latencies in quirks once, not whenever a chassis is made."""
    quirks = [
        {key: parse_latency(value) if key == "latency" else value for key, value in quirk.items()}
        for quirk in profile.quirks
    ]
    return replace(profile, quirks=tuple(quirks))


def chassis_models(folder: Path) -> ModelFiles[ChassisModel]:
    """Return ``instant``, and the models of a folder."""
    return ModelFiles(
        folder, frozenset({"source", "named", *KEYS}), _model, first={"instant": ChassisModel(INSTANT, {})}
    )


PROFILES: Mapping[str, ChassisModel] = chassis_models(Path(__file__).parent / "chassis_models")


def parse_profile(value: Any, chassis: str) -> ChassisProfile:
    """Return the profile that a hardware file names (``instant``, ``falcon-4005``) or spells out.

    Spelt out: ``{attach, detach, read, quirks, reads_queue}``, all optional; latencies (default 0) and fault specs.
    Raises ValueError naming what is allowed.
    """
    if isinstance(value, str) and value in PROFILES:
        return PROFILES[value].profile(chassis)
    if not isinstance(value, Mapping) or not set(value) <= set(KEYS):
        raise ValueError(f"profile {value!r}: must be one of {', '.join(PROFILES)} or a mapping of {', '.join(KEYS)}")
    return _parsed("custom", "the hardware file", value)
