"""``mews telemetry``: what the boards of a running ``mews up`` show, and setting it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.commands.instances import ready_of
from mews.harness.commands.session_words import ArgumentWords
from mews.harness.live.client import SessionClient
from mews.kube.system.command import Command, CommandContext
from mews.names import must_be

SUMMARY = (
    "Show telemetry of the GPUs of a running `mews up`; NAME=VALUE sets it (temperature=90, power=none, xid=79, …)."
)
USAGE = "[--name NAME] [--device ID|all] [--json] [NAME=VALUE]…"
_COLUMNS = ("device", "host", "power", "energy", "temperature", "load", "memory", "SM clock", "set")


def run(arguments: Sequence[str], context: CommandContext) -> int:
    """Return the command.

    Raises ValueError for bad arguments and refused values, BadInputError where no such instance runs.
    """
    parser = ArgumentWords("telemetry", allow_abbrev=True)
    parser.add_argument("--device", default="all")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("values", nargs="*")
    chosen = parser.parse_args(arguments)
    values = _values(chosen.values)
    ready = ready_of(chosen.name)
    if values and "session" in ready:  # so that it stands in the journal, and in a recording
        return _set(ready["session"], chosen.device, values)
    table, shown = asyncio.run(_ask(ready, chosen.device, values))
    if values:
        return 0
    if chosen.device != "all":
        shown = {chassis: _only(chosen.device, table[chassis], devices) for chassis, devices in shown.items()}
    if not any(shown.values()):
        known = [device for devices in table.values() for device in devices]
        raise ValueError(f"--device {chosen.device}: {must_be(chosen.device, (*known, 'all'))}")
    context.write(json.dumps(shown) + "\n" if chosen.json else _text(table, shown))
    return 0


def _only(device: str, rows: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the device of that ID or GPUID."""
    return {name: one for name, one in shown.items() if device in (name, rows[name]["gpuid"])}


def _values(words: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r}: must be NAME=VALUE, such as power=100 or power=none")
        values[name] = _number(text)
    return values


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _set(session: Mapping[str, str], device: str, values: Mapping[str, Any]) -> int:
    reason = SessionClient(session).perform({"telemetry": {"device": device, "set": dict(values)}}).reason
    if reason:
        raise ValueError(reason)
    return 0


async def _ask(ready: Mapping[str, Any], device: str, values: Mapping[str, Any]) -> tuple[Any, Any]:
    from mews.harness.ports.hardware_http import HttpHardwareControl
    from mews.harness.ports.hosts_http import HttpHosts
    from mews.harness.ports.telemetry import set_values

    chassis = HttpHardwareControl(ready["control"]["url"], ready["control"]["token"])
    hosts = HttpHosts(ready["hosts"]["url"], ready["hosts"]["token"])

    class Both:
        """Chassis and hosts as one."""

        table = staticmethod(chassis.table)
        set_telemetry = staticmethod(chassis.set_telemetry)
        host_fault = staticmethod(hosts.fault)

    try:
        if values:
            await set_values(Both(), device, values)
        return await chassis.table(), await chassis.telemetry()
    finally:
        await chassis.close()
        await hosts.close()


def _text(table: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    lines = [_COLUMNS]
    for chassis, devices in shown.items():
        for device, one in devices.items():
            lines.append(
                (
                    device,
                    table[chassis][device]["host"] or "-",
                    f"{one['power_mw'] / 1000:.1f} W",
                    f"{one['energy_mj'] / 1e6:.3f} kJ",
                    f"{one['temperature_c']:.1f} C",
                    f"{one['utilization_percent']} %",
                    f"{one['memory_used_mib']} MiB",
                    f"{one['sm_clock_mhz']} MHz",
                    " ".join(f"{name}={value:g}" for name, value in one["set"].items()) or "-",
                )
            )
    widths = [max(len(line[place]) for line in lines) for place in range(len(_COLUMNS))]
    padded = (zip(line, widths, strict=True) for line in lines)
    return "".join("  ".join(word.ljust(width) for word, width in line).rstrip() + "\n" for line in padded)


COMMAND = Command(
    "telemetry",
    SUMMARY,
    run,
    USAGE,
    options={
        "--name NAME": "use the session of this name; default: mews",
        "--device ID|all": "show or set the GPU of this device; default: all",
        "--json": "print JSON",
    },
    examples=("mews telemetry", "mews telemetry --device 000100 temperature=92 power=180.5", "mews telemetry all=none"),
)
