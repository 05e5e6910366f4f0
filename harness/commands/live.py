"""Commands that look into a running ``mews up``, and act on it, by its name."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mews.harness import terminal
from mews.harness.commands.recording import RECORD
from mews.harness.commands.session_words import NAME, NAMED, ArgumentWords, answered, as_values, client_of, values_of
from mews.harness.errors import BadInputError
from mews.harness.journal import LAYERS
from mews.harness.live.client import line_of
from mews.harness.live.explanation import pod_named
from mews.harness.report.line import plain
from mews.harness.scenario.yamlfile import read_yaml
from mews.kube.system.command import Command, CommandContext
from mews.own_files import write_named

_OF_A_STEPS_FILE = ("apiVersion", "kind", "metadata", "steps")
"""Keys of a file whose steps are done; of others it is said that they are not played."""


@answered
def status(words: Sequence[str], context: CommandContext) -> int:
    """Return what is up, down and wrong."""
    parser = ArgumentWords("status")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(words)
    seen = client_of(chosen.name).get("/v1/status")
    context.write(json.dumps(seen) + "\n" if chosen.json else _status_text(seen))
    return 0


def _since(seen: Mapping[str, Any]) -> str:
    stopped = seen.get("stopped_at")
    if stopped is None:
        return f"up for {seen['t']:.0f} s"
    return f"stopped at line {stopped['line']}, {stopped['t']:.3f} s"


def _status_text(seen: Mapping[str, Any]) -> str:
    phases = ", ".join(f"{count} {phase}" for phase, count in sorted(seen["pods"].items())) or "none"
    lines = [
        f"{seen['name']}: {seen['cluster']}, {_since(seen)}, API {seen['api']}",
        f"systems: {', '.join(seen['systems']) or 'none'}",
        *(f"node {name}: {state}" for name, state in seen["nodes"].items()),
        *(
            f"chassis {name}: " + (", ".join(f"{place} {count}" for place, count in places.items()) or "empty")
            for name, places in seen["devices"].items()
        ),
        f"pods: {phases}",
        f"operations under way: {seen['operations']}",
        *(f"metrics of {name}: {url}" for name, url in seen["metrics"].items()),
        *(f"down: {name}, {how}" for name, how in seen["down"].items()),
        *(_fault_text(fault) for fault in seen["active_faults"]),
    ]
    return "\n".join(lines) + "\n"


def _fault_text(fault: Mapping[str, Any]) -> str:
    about = "" if fault["device"] is None else f" of {fault['device']}"
    struck = f"triggered {fault['fired']} of {fault['count'] or 'any number of'} times"
    state = "ended" if fault["ended"] else "active"
    what = f"fault {fault['fault']} on {fault['owner']}: {fault['kind']}{about}"
    return f"{what} since {fault['since']:.1f} s, {struck}, {state}"


@answered
def events(words: Sequence[str], context: CommandContext) -> int:
    """Return lines of the journal; -f: and those to come."""
    parser = ArgumentWords("events")
    parser.add_argument("-f", "--follow", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--layer", choices=LAYERS)
    parser.add_argument("--since", type=int, default=0)
    parser.add_argument("text", nargs="?", default="")
    chosen = parser.parse_args(words)
    client = client_of(chosen.name)

    def show(row: dict[str, Any]) -> None:
        line = line_of(row)
        text = line.as_json() if chosen.json else plain(line)
        if chosen.layer in (None, line.layer) and chosen.text in line.as_json():
            context.write(text + "\n")

    if not chosen.follow:
        for row in client.get(f"/v1/journal?since={chosen.since}")["lines"]:
            show(row)
        return 0
    for row in client.events(chosen.since):
        show(row)
        sys.stdout.flush()
    return 0


@answered
def fault_list(words: Sequence[str], context: CommandContext) -> int:
    """Faults that were added and not cleared."""
    parser = ArgumentWords("fault list")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(words)
    found = client_of(chosen.name).get("/v1/faults")["faults"]
    text = "".join(_fault_text(fault) + "\n" for fault in found) or "no faults\n"
    context.write(json.dumps(found) + "\n" if chosen.json else text)
    return 0


@answered
def fault_add(words: Sequence[str], context: CommandContext) -> int:
    """Add a fault to a chassis, a host, or between a component and the API."""
    parser = ArgumentWords("fault add")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--chassis", default=None)
    where.add_argument("--host", default=None)
    where.add_argument("--component", default=None)
    parser.add_argument("kind")
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE")
    chosen = parser.parse_intermixed_args(as_values(words, ("--name", "--chassis", "--host", "--component")))
    named = {"chassis": chosen.chassis, "host": chosen.host, "component": chosen.component}
    place = {owner: name for owner, name in named.items() if name is not None} or {"chassis": "*"}
    return _perform(
        chosen.name, {"fault": {**place, "add": {"kind": chosen.kind, **values_of(chosen.values)}}}, context
    )


@answered
def fault_clear(words: Sequence[str], context: CommandContext) -> int:
    """Undo the faults of a chassis, a host or a component, or all."""
    parser = ArgumentWords("fault clear")
    parser.add_argument("owner", nargs="?", default="all", metavar="CHASSIS|HOST|COMPONENT|all")
    chosen = parser.parse_args(words)
    return _perform(chosen.name, {"fault": {"clear": chosen.owner}}, context)


@answered
def host(words: Sequence[str], context: CommandContext) -> int:
    """Return what an operator does on a host."""
    parser = ArgumentWords("host")
    parser.add_argument("host", metavar="HOST")
    parser.add_argument("do", metavar="ACTION")
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE")
    chosen = parser.parse_intermixed_args(as_values(words, ("--name",)))
    return _perform(chosen.name, {"host": {"host": chosen.host, "do": chosen.do, **values_of(chosen.values)}}, context)


@answered
def chassis_edit(words: Sequence[str], context: CommandContext) -> int:
    """Move a device in the table, behind everybody's back."""
    parser = ArgumentWords("chassis edit")
    parser.add_argument("chassis", metavar="CHASSIS")
    parser.add_argument("device", metavar="DEVICE")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--port", default=None)
    to.add_argument("--host", default=None)
    to.add_argument("--free", action="store_true")
    chosen = parser.parse_args(words)
    place = {"host": chosen.host} if chosen.host is not None else {"port": chosen.port}
    edit = {"chassis": chosen.chassis, "device": chosen.device, **place}
    return _perform(chosen.name, {"chassis": {"edit": edit}}, context)


@answered
def chassis_reset(words: Sequence[str], context: CommandContext) -> int:
    """Return the hardware as it was at the start."""
    chosen = ArgumentWords("chassis reset").parse_args(words)
    return _perform(chosen.name, {"chassis": {"reset": True}}, context)


@answered
def step(words: Sequence[str], context: CommandContext) -> int:
    """Do steps as scenario files have them."""
    parser = ArgumentWords("step")
    parser.add_argument("steps", metavar="FILE|YAML")
    chosen = parser.parse_args(words)
    path = Path(chosen.steps)
    text = path.read_text(encoding="utf-8") if path.is_file() else chosen.steps
    given = read_yaml(text, "-").value
    steps = given.get("steps", [given]) if isinstance(given, dict) else given
    beside = (
        [str(key) for key in given if key not in _OF_A_STEPS_FILE]
        if isinstance(given, dict) and "steps" in given
        else []
    )
    if beside:
        terminal.err(f"{chosen.steps}: not played: {', '.join(beside)} (a session does the steps alone)\n")
    if not isinstance(steps, list) or not steps or not all(isinstance(each, dict) for each in steps):
        raise ValueError(f"{chosen.steps}: neither a file nor a step such as 'kill: scheduler', or a list of them")
    return next((code for each in steps if (code := _perform(chosen.name, each, context))), 0)


def _perform(name: str, given: Mapping[str, Any], context: CommandContext) -> int:
    answer = client_of(name).perform(given)
    context.write(f"failed: {answer.reason}\n" if answer.reason else answer.text or "done\n")
    return 1 if answer.reason else 0


@answered
def explain(words: Sequence[str], context: CommandContext) -> int:
    """Return why a pod waits, or where its devices are."""
    parser = ArgumentWords("explain")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-n", "--namespace", default="default")
    parser.add_argument("pod", nargs="+", metavar="pod/NAME|pod/NAMESPACE/NAME")
    chosen = parser.parse_args(words)
    if len(chosen.pod) > 1 and chosen.pod[0] not in ("po", "pod", "pods"):
        raise ValueError(f"{' '.join(chosen.pod)!r}: must be pod/NAME, pod/NAMESPACE/NAME or pod NAME")
    namespace, pod = pod_named("/".join(chosen.pod), chosen.namespace)
    found = client_of(chosen.name).get(f"/v1/explain/pod/{quote(namespace, safe='')}/{quote(pod, safe='')}")
    missing = found["cause"] == "missing"
    text = f"pod {found['pod']}: {found['cause']}\n" + "".join(f"  {each}\n" for each in found["sentences"])
    if chosen.json:
        context.write(json.dumps(found) + "\n")
    elif missing:
        raise BadInputError(" ".join(found["sentences"]))
    else:
        context.write(text)
    return 2 if missing else 0


@answered
def get_table(words: Sequence[str], context: CommandContext) -> int:
    """Return the chassis' tables: which device is on which port."""
    parser = ArgumentWords("get table")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(words)
    table = client_of(chosen.name).get("/v1/hardware")["table"]
    if chosen.json:
        context.write(json.dumps(table) + "\n")
        return 0
    rows = [("CHASSIS", "DEVICE", "KIND", "POOL", "PORT", "HOST", "UUID")]
    rows += [
        (name, device, row["kind"], row["pool"], row["port"] or "-", row["host"] or "-", row["uuid"])
        for name, devices in table.items()
        for device, row in devices.items()
    ]
    widths = [max(len(str(row[place])) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        padded = (str(word).ljust(width) for word, width in zip(row, widths, strict=True))
        context.write("  ".join(padded).rstrip() + "\n")
    return 0


@answered
def report(words: Sequence[str], context: CommandContext) -> int:
    """Return the session so far as the page of a run."""
    parser = ArgumentWords("report")
    parser.add_argument("--out", required=True, metavar="FILE")
    chosen = parser.parse_args(words)
    client = client_of(chosen.name)
    about, judged = client.get("/v1/session"), client.get("/v1/verdict")
    lines = client.get("/v1/journal")["lines"]

    from mews.harness.report.html import html_page
    from mews.harness.report.run import Run
    from mews.harness.scenario.result import Result

    seen = Result(
        scenario=chosen.name,
        path="",
        cluster=about["cluster"],
        time="wall",
        seed=about["seed"],
        verdict=judged["verdict"],
        reason=judged["reason"],
        wall_s=judged["seconds"]["wall"],
        violations=tuple(judged["violations"]),
        report="\n".join(judged["waiting"]),
    )
    _write_file(chosen.out, html_page([Run(seen, [line_of(row) for row in lines])]))
    context.write(f"{seen.verdict}: {seen.reason} ({seen.wall_s:.0f} s)\n")
    return 0 if seen.verdict == "passed" else 1


def _write_file(out: str, text: str) -> None:
    try:
        write_named(Path(out), text)
    except OSError as error:
        raise ValueError(f"--out {out}: cannot be written: {error.strerror}") from error


_AS_JSON = {"--json": "print JSON"}

LIVE = (
    Command(
        "status",
        "Show which parts of a running `mews up` are up, down or faulty.",
        status,
        f"{NAME} [--json]",
        options={**NAMED, **_AS_JSON},
        examples=("mews status", "mews status --name lab --json"),
    ),
    Command(
        "events",
        "Print the journal of a running `mews up`; -f follows it.",
        events,
        f"{NAME} [-f] [--layer LAYER] [--since LINE] [--json] [TEXT]",
        options={
            **NAMED,
            "-f, --follow": "keep printing new lines",
            "--layer LAYER": f"print only this layer: {', '.join(LAYERS)}",
            "--since LINE": "start at this line number",
            **_AS_JSON,
        },
        examples=("mews events -f", "mews events --layer chassis attached"),
    ),
    Command(
        "fault list",
        "List the faults of a running `mews up`.",
        fault_list,
        f"{NAME} [--json]",
        options={**NAMED, **_AS_JSON},
        examples=("mews fault list",),
    ),
    Command(
        "fault add",
        "Add a fault to a chassis (default: every chassis), to a host, or between a component and the API.",
        fault_add,
        f"{NAME} [--chassis NAME | --host NAME | --component NAME] KIND [NAME=VALUE]…",
        options={
            **NAMED,
            "--chassis NAME": "add it to this chassis; default: to every chassis",
            "--host NAME": "add it to this host",
            "--component NAME": "add it between this component and the API",
        },
        examples=(
            "mews fault add --chassis A lying-result count=1",
            "mews fault add --host host-1 xid device=000100",
            "mews fault add --component scheduler lagging-watch by_s=5",
        ),
    ),
    Command(
        "fault clear",
        "Clear the faults of a running `mews up`.",
        fault_clear,
        f"{NAME} [CHASSIS|HOST|COMPONENT|all]",
        options=NAMED,
        examples=("mews fault clear", "mews fault clear host-1"),
    ),
    Command(
        "host",
        "Run an operator's action on a host.",
        host,
        f"{NAME} HOST ACTION [NAME=VALUE]…",
        options=NAMED,
        examples=("mews host host-1 drain device=0-000100 on=true",),
    ),
    Command(
        "chassis edit",
        "Move a device in the table of a chassis, as another editor would.",
        chassis_edit,
        f"{NAME} CHASSIS DEVICE --port PORT | --host HOST | --free",
        options={
            **NAMED,
            "--port PORT": "attach it to this port",
            "--host HOST": "attach it to this host's port",
            "--free": "detach it",
        },
        examples=("mews chassis edit A 000C00 --host host-2", "mews chassis edit A 000C00 --free"),
    ),
    Command(
        "chassis reset",
        "Restore the hardware to its initial state.",
        chassis_reset,
        NAME,
        options=NAMED,
        examples=("mews chassis reset",),
    ),
    Command(
        "step",
        "Run scenario steps against the session.",
        step,
        f"{NAME} FILE|YAML",
        options=NAMED,
        examples=("mews step 'kill: scheduler'", "mews step steps.yaml"),
    ),
    Command(
        "explain",
        "Explain why a pod is pending, or where its devices are.",
        explain,
        f"{NAME} [--json] [-n NAMESPACE] pod/[NAMESPACE/]NAME",
        options={**NAMED, **_AS_JSON, "-n NAMESPACE": "use this namespace; default: default"},
        examples=("mews explain pod/five", "mews explain -n team pod five"),
    ),
    RECORD,
    Command(
        "report",
        "Write an HTML report of the session so far.",
        report,
        f"{NAME} --out FILE",
        options={**NAMED, "--out FILE": "write to this file"},
        examples=("mews report --out lab.html",),
    ),
    Command(
        "get table",
        "Show which device is attached to which port.",
        get_table,
        f"{NAME} [--json]",
        options={**NAMED, **_AS_JSON},
        examples=("mews get table",),
    ),
)
"""In the order in which --help shows them."""
