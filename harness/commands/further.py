"""All sub-commands that are looked up by name: ours that need no typer, then those of systems."""

from __future__ import annotations

from mews.harness import systems
from mews.harness.commands import (
    continuing,
    doctor,
    env,
    envtest,
    fuzz,
    listing,
    live,
    merge,
    new,
    proxy,
    reproduce,
    simulate,
    snapshots,
    sweep,
    telemetry,
)
from mews.harness.commands.live_group import NAME, live_group
from mews.kube.system.command import Command

OURS = (
    *(*live.LIVE, *snapshots.SNAPSHOTS, envtest.COMMAND, telemetry.COMMAND, env.COMMAND),
    *(simulate.COMMAND, merge.COMMAND, sweep.COMMAND, listing.COMMAND, doctor.COMMAND, proxy.COMMAND, new.COMMAND),
    *(fuzz.COMMAND, reproduce.COMMAND, continuing.COMMAND),
)


def all_commands() -> dict[str, Command]:
    """Return them by name."""
    every = {**{command.name: command for command in OURS}, **systems.all_commands()}
    return {NAME: live_group(every), **every}
