"""Makes hardware files: ``python -m mews.emulator.fixture_tool --hosts 3 --chassis 1 --gpus 12 --seed 7``.

Host names, UUIDs and serial numbers come from Faker; the same arguments give the same file.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.hardware.chassis_profiles import PROFILES
from mews.emulator.inventory.reading import parse_hardware
from mews.yaml_text import written_yaml

if TYPE_CHECKING:
    from faker import Faker


class FixturePlan(Struct, frozen=True):
    """What to make. ``gpus`` and ``free`` count over all chassis; ``slots`` are per chassis, None = as needed."""

    hosts: int = 3
    chassis: int = 1
    gpus: int = 12
    free: int = 0
    pools: int = 1
    slots: int | None = None
    cpus: int = 192
    memory_mib: int = 1_048_576
    model: str = "V100"
    profile: str = "instant"
    name: str = "made"
    seed: int = 0


def make(plan: FixturePlan) -> dict[str, Any]:
    """Return the document of a hardware file: GPUs spread evenly over the chassis, then over the hosts of their pool.

    Raises HardwareError where no such hardware can be.
    """
    if not 1 <= plan.pools <= min(plan.chassis, plan.hosts) or not 0 <= plan.free <= plan.gpus:
        raise HardwareError(
            f"plan: {plan.pools} pools, {plan.chassis} chassis, {plan.hosts} hosts, {plan.free} of "
            f"{plan.gpus} GPUs free: "
            "each pool needs a chassis and a host"
        )
    from faker import Faker

    faker = Faker("en_US")
    faker.seed_instance(plan.seed)
    hosts = _host_names(faker, plan.hosts)
    document = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": plan.name},
        "profile": plan.profile,
        "hosts": [{"name": host, "cpus": plan.cpus, "memory_mib": plan.memory_mib} for host in hosts],
        "chassis": [
            _chassis(faker, plan, number, hosts[number % plan.pools :: plan.pools]) for number in range(plan.chassis)
        ],
    }
    parse_hardware(document, "plan")
    return document


def _host_names(faker: Faker, count: int) -> list[str]:
    """Return the names, each with a number, so that no two are the same."""
    return [f"{re.sub('[^a-z]', '', faker.last_name().lower())}-{number + 1}" for number in range(count)]


def _chassis(faker: Faker, plan: FixturePlan, number: int, hosts: Sequence[str]) -> dict[str, Any]:
    mine = range(number, plan.gpus, plan.chassis)
    attached = [gpu for gpu in mine if gpu < plan.gpus - plan.free]
    ports = [str(port + 1) for port in range(len(hosts))]
    devices = []
    for place, gpu in enumerate(mine):
        port = ports[place * len(ports) // len(attached)] if gpu in attached else None
        devices.append(
            {
                "id": f"{(place + 1) << 8:06X}",
                "uuid": f"GPU-{faker.uuid4()}",
                "kind": "GPU",
                "model": plan.model,
                "serial": faker.numerify("13##########"),
                "port": port,
            }
        )
    return {
        "name": _letters(number),
        "index": number,
        "pool": f"pool-{number % plan.pools}",
        "slots": max(len(devices), 1) if plan.slots is None else plan.slots,
        "ports": dict(zip(ports, hosts, strict=True)),
        "devices": devices,
    }


def _letters(number: int) -> str:
    """Return a, B, … Z, AA, AB, …"""
    name = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def render(document: dict[str, Any]) -> str:
    """Return the document as YAML, a line per host and device."""
    return written_yaml(document, width=10_000, flow=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command line; returns the exit code (0, 2 bad input, 3 without Faker)."""
    parser = argparse.ArgumentParser(prog="mews.emulator.fixture_tool", description="Make a hardware file.")
    for name in ("hosts", "chassis", "gpus", "free", "pools", "slots", "cpus", "memory_mib", "seed"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=_default(name))
    parser.add_argument("--model", default=_default("model"))
    parser.add_argument("--profile", choices=sorted(PROFILES), default=_default("profile"))
    parser.add_argument("--name", default=_default("name"))
    parser.add_argument("--output", metavar="FILE", help="write to this file; default: standard output")
    chosen = vars(parser.parse_args(arguments))
    output = chosen.pop("output")
    try:
        text = render(make(FixturePlan(**chosen)))
    except HardwareError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except ModuleNotFoundError as error:
        if error.name != "faker":
            raise
        sys.stderr.write("faker is not installed; pip install 'falcon-mews[fixtures]' provides it\n")
        return 3
    if output is None:
        sys.stdout.write(text)
    else:
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            sys.stderr.write(f"--output {output}: cannot be written: {error.strerror}\n")
            return 2
    return 0


def _default(name: str) -> Any:
    return getattr(FixturePlan(), name)


if __name__ == "__main__":
    sys.exit(main())
