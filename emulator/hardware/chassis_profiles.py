"""Latency profiles: how a model of chassis behaves in time, and how it misbehaves by itself. Data with their source.

``falcon-4005`` is fitted to the timings of two real Falcon 4005 chassis (contract chassis.md 2; ``durations.csv``: ns
clock, ``operations.csv``: 723 calls at 1 s resolution, whose true spread is the observed variance less 1/6 s² of
rounding). tests/emulator/test_falcon_fit.py draws from it and compares mean, p50 and p95 with those files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.emulator.hardware.latency import Fixed, Gamma, Latency, Normal, parse_latency

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

FALCON_SOURCE = "two Falcon 4005, autumn 2023: durations.csv and operations.csv of the KubeComp experiments"

FALCON_DETACH = Gamma(shift=4.5, shape=4.0, scale=0.698, max=13.4)
"""72 detaches, ns clock: mean 7.29, p50 7.01, p95 9.81."""

FALCON_READ = Normal(mean=2.45, sd=1.5, min=1.0, max=8.8)
"""One chassis. The larger of two draws is what was measured, 74 reads of both in parallel: mean 3.33, p50 3.12,
p95 5.37."""

FALCON_ATTACH: dict[str, tuple[Normal, Normal, float]] = {
    "A": (Normal(10.12, 1.56, 7.0, 12.5), Normal(15.37, 0.77, 12.5, 18.2), 155 / 171),
    "B": (Normal(9.27, 0.88, 5.0, 12.5), Normal(15.24, 0.92, 11.0, 18.2), 95 / 190),
    "": (Normal(9.39, 1.04, 5.0, 12.5), Normal(15.32, 0.83, 11.0, 18.2), 250 / 361),
}
"""Chassis -> latency of a ``true`` reply, of a ``false`` one though attached, share of the latter. "" = any other."""

FALCON_READ_EOF: dict[str, float] = {"A": 0.0, "B": 4 / 190, "": 4 / 361}
"""EOF on one read in the minute after an attach: four, all on B, after its 190 attaches."""

FALCON_POST_EOF = 1 / 362
"""One POST ended in ``unexpected EOF`` with the device attached nowhere; 361 others were answered."""


def falcon_4005(chassis: str) -> ChassisProfile:
    """Return the Falcon 4005 of that name; chassis A and B of the testbed have their own manners, others the
    mixture."""
    key = chassis if chassis in FALCON_ATTACH else ""
    honest, lying, share = FALCON_ATTACH[key]
    quirks: list[Spec] = [
        {"kind": "lying-result", "operation": "attach", "probability": share, "says": False, "latency": lying},
        {"kind": "dropped-connection", "operation": "attach", "when": "before", "probability": FALCON_POST_EOF},
    ]
    if FALCON_READ_EOF[key]:
        quirks.append(
            {"kind": "read-aftermath", "operation": "attach", "probability": FALCON_READ_EOF[key], "partial": 0.5}
        )
    return ChassisProfile(
        "falcon-4005",
        FALCON_SOURCE,
        attach=honest,
        detach=FALCON_DETACH,
        read=FALCON_READ,
        quirks=tuple({**quirk, "count": None} for quirk in quirks),
    )


PROFILES = {"instant": lambda chassis: INSTANT, "falcon-4005": falcon_4005}
KEYS = ("attach", "detach", "read", "quirks", "reads_queue")


def parse_profile(value: Any, chassis: str) -> ChassisProfile:
    """Return the profile that a hardware file names (``instant``, ``falcon-4005``) or spells out.

    Spelt out: ``{attach, detach, read, quirks, reads_queue}``, all optional; latencies (default 0) and fault specs.
    Raises ValueError naming what is allowed.
    """
    if isinstance(value, str) and value in PROFILES:
        return PROFILES[value](chassis)
    if not isinstance(value, Mapping) or not set(value) <= set(KEYS):
        raise ValueError(f"profile {value!r}: must be one of {', '.join(PROFILES)} or a mapping of {', '.join(KEYS)}")
    quirks = value.get("quirks", [])
    if not isinstance(quirks, list) or not all(isinstance(quirk, Mapping) for quirk in quirks):
        raise ValueError(f"quirks {quirks!r}: must be a list of fault specs, such as {{kind: lying-result, count: 1}}")
    reads_queue = value.get("reads_queue", False)
    if not isinstance(reads_queue, bool):
        raise ValueError(f"reads_queue {reads_queue!r}: must be true or false")
    return ChassisProfile(
        "custom",
        "the hardware file",
        attach=parse_latency(value.get("attach", 0)),
        detach=parse_latency(value.get("detach", 0)),
        read=parse_latency(value.get("read", 0)),
        quirks=tuple(quirks),
        reads_queue=reads_queue,
    )
