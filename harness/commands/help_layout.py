"""How ``--help`` is laid out: commands and options by what they are for, and examples below.

Plain text of click's own formatter: neither colours nor another import, so that asking for help is as fast as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

Function = TypeVar("Function", bound=Callable[..., Any])

ARGUMENTS, OPTIONS, COMPLETION = "Arguments", "Options", "Shell completion"
"""The first panel, that of what is in no other, and the last."""

OPTION_PANELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "What is run": (
            "--hardware",
            "--scenario",
            "--stack",
            "--images",
            "--unknown-images",
            "--scheduler",
            "--controllers",
            "--kubernetes",
            "--feature-gates",
            "--runtime-config",
            "--set",
            "--seed",
            "--seeds",
        ),
        "Where and how fast": (
            *("--cluster", "--clusters", "--time", "--speed", "--dialect", "--kubeconfig", "--context", "--timeout"),
            *("--jobs", "--keep", "--wait", "--name", "--dir", "--break-at"),
        ),
        "Results": (
            "--json",
            "--junit",
            "--html",
            "--sarif",
            "--baseline",
            "--journal",
            "--markdown",
            "--plots",
            "--out",
            "--record",
            "--diff",
        ),
        "Sweeps": ("--results", "--resume", "--shard"),
        "Changes to the chassis": ("--allow-changes", "--device", "--port", "--restore", "--restore-file"),
        "What is expected": ("--profile", "--quirks", "--waivers", "--patience", "--budget", "--explain"),
        "Who may ask": (
            *("--tls", "--insecure", "--allow-host", "--certificate", "--key", "--ca", "--cert", "--credentials"),
            *("--allow-outside", "--allow-host-access", "--listen", "--api-port"),
        ),
        COMPLETION: ("--install-completion", "--show-completion"),
    }
)
"""Panel -> options; one that no command has is an error of the table."""

LIVE_WORDS = (
    *("status", "events", "explain", "get", "fault", "host", "chassis", "step", "telemetry"),
    *("env", "record", "report", "snapshot", "inspect"),
)
"""First words of the commands on a running ``mews up``: `mews live` groups them, and --help shows that alone."""

COMMAND_PANELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Run scenarios": (
            *("list", "run", "continue", "validate", "diff-clusters", "merge", "fuzz", "simulate", "experiment"),
        ),
        "Keep a cluster": ("up", "down", "envtest", "serve", "demo"),
        "Use a running cluster": ("live", "nvidia-smi"),
        "Judge a chassis": ("conform", "proxy"),
        "Write files": ("new", "manifests"),
        "Check this machine": ("doctor",),
    }
)
"""Panel -> commands; those that are in none come last."""

GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "chassis": "Move a device in the table of a chassis, or restore the hardware.",
        "fault": "Add, list or clear the faults of a running `mews up`.",
        "get": "Show which device is attached to which port.",
        "snapshot": "Save the state of a running `mews up` to a file, or restore it.",
    }
)
"""First word of several commands -> what they do together."""

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "run": (
            "mews run demo",
            "mews run scenarios/ --jobs 2 --junit results.xml",
            "mews run mine.yaml --set stack.kubecomp.scheduler.policy=best-fit --seeds 1-20",
            "mews run demo --time wall --speed 20 --html demo.html",
            "mews run demo --break-at violation",
        ),
        "validate": ("mews validate mine.yaml", "mews validate --schema hardware > hardware.schema.json"),
        "demo": ("mews demo", "mews demo --dialect redfish --speed 10"),
        "up": (
            "mews up --hardware demo --speed 10",
            "mews up --stack none --name bare",
            "mews up --scenario mine.yaml --wait devices --web",
        ),
        "down": ("mews down", "mews down --all"),
        "diff-clusters": ("mews diff-clusters demo --clusters embedded,control-plane",),
        "serve": (
            "mews serve --hardware demo --listen 127.0.0.1:8099",
            "mews serve --dialect redfish --state table.json",
            "mews serve --openapi h3api",
            "mews serve --wrong attach-lies --wrong gzip-sometimes --seed 7",
        ),
        "conform": (
            "mews conform http://box",
            "mews conform http://box --allow-changes --device 000C00 --quirks falcon-4005",
            "mews conform https://box --dialect redfish --ca chassis.crt --record box",
            "mews conform https://box --dialect redfish --cacert company.pem --cert lab.crt --key lab.key",
            "mews conform http://box --budget 60s --json new.json --baseline old.json",
        ),
        "nvidia-smi": ("mews nvidia-smi --host host-1 -L", "mews nvidia-smi --hardware demo --host host-2 -q"),
        "manifests": ("mews manifests --hardware demo --image registry.example/mews:1 --out deploy",),
        "experiment": ("mews experiment --list", "mews experiment kubecomp-fig8 --seeds 3 --out fig8"),
        "version": ("mews version",),
    }
)
"""Command -> command lines."""


class MewsCommand(TyperCommand):
    """A command whose help has panels and examples."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        for parameter in self.params:
            _read_only_what_is_given(parameter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options by panel."""
        write_options(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples."""
        write_examples(EXAMPLES.get(self.name or "", ()), formatter)


class MewsTyper(typer.Typer):
    """Makes commands of that class."""

    def command(self, name: str | None = None, **given: Any) -> Callable[[Function], Function]:
        """Return it as typer has it."""
        return super().command(name, cls=MewsCommand, **given)

    def with_only(self, name: str) -> typer.Typer:
        """Return the same with the one command of that name; itself where it has none. typer makes all commands of an
        app with all their options, whichever is to run: a hundredth of a second of every start."""
        alone = copy(self)
        alone.registered_commands = [
            info for info in self.registered_commands if name == (info.name or getattr(info.callback, "__name__", ""))
        ]
        return alone if alone.registered_commands else self


def _read_only_what_is_given(parameter: Any) -> None:
    """For what is not given typer would make a validator, too, and have it say that it is None."""
    process, required = parameter.process_value, parameter.required or parameter.callback is not None
    left_out = () if parameter.multiple or parameter.nargs == -1 else None

    def process_value(ctx: Any, value: Any) -> Any:
        return left_out if value is None and not required else process(ctx, value)

    parameter.process_value = process_value


def write_options(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:
    """What parameters say of themselves, by panel."""
    names = (ARGUMENTS, *(name for name in OPTION_PANELS if name != COMPLETION), OPTIONS, COMPLETION)
    panels: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
    for each in parameters:
        record = each.get_help_record(ctx)
        if record is not None:
            panels[panel_of(each)].append(record)
    for name, records in panels.items():
        if records:
            with formatter.section(name):
                formatter.write_dl(records)


def panel_of(parameter: Any) -> str:
    """Return where it is shown."""
    if parameter.param_type_name == "argument":
        return ARGUMENTS
    return next((name for name, options in OPTION_PANELS.items() if parameter.opts[0] in options), OPTIONS)


def write_examples(examples: Iterable[str], formatter: Any) -> None:
    """Each on a line of its own, as it is typed."""
    lines = list(examples)
    if lines:
        with formatter.section("Examples"):
            formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in lines))
