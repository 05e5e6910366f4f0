"""Boxes for the tests of the core: no files, no clock."""

from __future__ import annotations

import random

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.hardware.chassis_profiles import parse_profile
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec


def spec(devices=4, slots=None, profile="instant", ports=None, attached="1"):
    return ChassisSpec(
        name="A",
        index=0,
        pool="pool-0",
        slots=devices if slots is None else slots,
        ports={"1": "host-1", "2": "host-2", "3": None} if ports is None else ports,
        devices=tuple(DeviceSpec(f"d{n}", f"GPU-{n}", port=attached) for n in range(devices)),
        profile=parse_profile(profile, "A"),
    )


TIMED = {"attach": 10, "detach": 5, "read": 2}


def box(heard=None, store=None, seed=1, **options):
    listener = (lambda event: None) if heard is None else (lambda event: heard.append(event))
    return EmulatedChassis(spec(**options), random.Random(seed), listener=listener, store=store)


def ports(made, now_s=0.0):
    return {row.device: row.port for row in made.rows(now_s)}


def done(made, operation):
    """The answer at its time."""
    return made.finish(operation, operation.answer_s)
