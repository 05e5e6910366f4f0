"""Options whose words take more than a line: what the command line's functions are annotated with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mews.dialects import OURS
from mews.harness.backends import BACKENDS
from mews.harness.errors import BadInput

InsecureOption = Annotated[bool, typer.Option("--insecure", help="plain HTTP: everybody on this machine is let in")]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="another name that the servers go by; may be repeated"),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a value of the scenario")
]
SnapshotOption = Annotated[
    Path | None, typer.Option("--snapshot", metavar="FILE", help="what `mews snapshot save` wrote, restored")
]
StackOption = Annotated[
    str | None,
    typer.Option("--stack", metavar="NAME[,NAME]|none", help="systems to run; none: a bare cluster"),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ours|real", help="whose default scheduler runs; default: the cluster's own"),
]
ControllersOption = Annotated[
    str | None,
    typer.Option("--controllers", metavar="ours|real", help="whose controllers run; default: the cluster's own"),
]
MetricsOption = Annotated[
    str | None, typer.Option("--metrics", metavar="on|off", help="serve metrics.k8s.io, or not; default: on")
]
ImagesOption = Annotated[
    Path | None, typer.Option("--images", metavar="FILE", help="images of yours, as images: of a scenario has them")
]
UnknownImagesOption = Annotated[
    str | None,
    typer.Option("--unknown-images", metavar="fail|idle|container", help="what other images do; default: idle"),
]
DIALECTS = f"{', '.join(OURS)}, yours, or module:attribute"

ClusterOption = Annotated[str, typer.Option("--cluster", help=" or ".join(", ".join(BACKENDS).rsplit(", ", 1)))]
SpeedOption = Annotated[float, typer.Option("--speed", help="emulated seconds per second of wall-clock time")]
DialectOption = Annotated[str | None, typer.Option("--dialect", help=f"how the chassis is spoken to: {DIALECTS}")]
OutsideOption = Annotated[bool, typer.Option("--allow-outside", help="let scenarios name files outside their folders")]
DirOption = Annotated[
    Path | None, typer.Option("--dir", help="for kubeconfig and ready.json; default: a folder of its name")
]
HostAccessOption = Annotated[
    bool,
    typer.Option(
        "--allow-host-access",
        help="let containers of real images be privileged, share this machine's namespaces and mount its paths",
    ),
]
WaitOption = Annotated[
    str, typer.Option("--wait", metavar="nodes|devices", help="it is up when nodes are Ready, or devices there, too")
]
WebOption = Annotated[bool, typer.Option("--web", help="print the address of its live page")]
ProfileOption = Annotated[
    str,
    typer.Option("--profile", metavar="NAME|FILE", help="what is asked of it: stack, newest, or a DSP0272 profile"),
]
ExplainOption = Annotated[
    str | None, typer.Option("--explain", metavar="CLAUSE", help="print a clause's text and source, nothing else")
]
RestoreFileOption = Annotated[
    Path | None, typer.Option("--restore-file", metavar="FILE", help="where a run notes how to undo it")
]
RestoreOption = Annotated[
    Path | None, typer.Option("--restore", metavar="FILE", help="undo an interrupted run, nothing else")
]
RecordingOption = Annotated[
    Path | None,
    typer.Option("--recording", metavar="DIR", help="replay a recording of `mews conform`, or a DSP2043 mockup folder"),
]
StateOption = Annotated[Path | None, typer.Option("--state", metavar="FILE", help="the table outlives the process")]
OpenapiOption = Annotated[
    str | None, typer.Option("--openapi", metavar="DIALECT", help="print its description and leave")
]
ChassisTlsOption = Annotated[
    bool, typer.Option("--tls", help="the default: TLS where passwords and tokens are asked for")
]
ChangesOption = Annotated[bool, typer.Option("--allow-changes", help="move idle devices, and put them back")]
DeviceOption = Annotated[
    list[str] | None, typer.Option("--device", metavar="ID", help="is idle and may be moved; default: free ones")
]
PortOption = Annotated[
    list[str] | None, typer.Option("--port", metavar="PORT", help="they may be put on; default: all")
]
QuirksOption = Annotated[
    str | None, typer.Option("--quirks", metavar="NAME|FILE", help="what its firmware is known for")
]
WaiversOption = Annotated[Path | None, typer.Option("--waivers", metavar="FILE", help="deviations that are accepted")]
CredentialsOption = Annotated[
    Path | None,
    typer.Option("--credentials", metavar="FILE", help="USER:PASSWORD; default: MEWS_REDFISH_USER, _PASSWORD"),
]
SelectOption = Annotated[
    str | None, typer.Option("--select", metavar="KEY=VALUE,…", help="scenarios with these metadata.labels alone")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="3 where anything was skipped, unless something failed")]
Paths = Annotated[
    list[Path], typer.Argument(help="scenario files, folders of them, or names of shipped ones", metavar="PATH...")
]
PathsOrNone = Annotated[
    list[Path] | None,
    typer.Argument(help="scenario files, folders of them, or names of included ones", metavar="PATH..."),
]
ListOption = Annotated[
    bool, typer.Option("--list", help="list the included scenarios and exit; PATH selects those with that word")
]
HardwareOption = Annotated[
    Path | None, typer.Option("--hardware", help="inventory file, or name of a shipped one; default: the demo's")
]
ResultsOption = Annotated[
    str | None, typer.Option("--results", metavar="FILE|-", help="a line is appended as each run ends")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="leave out what --results has already")]


def list_scenarios(words: Sequence[Path], *, asked: bool) -> int:
    """What `run` does without files: list the included scenarios where that is asked for.

    Raises BadInput where it is not, and for words that no scenario has.
    """
    if not asked:
        raise BadInput("PATH: missing; give scenario files, folders or names, or --list")

    from mews.harness.commands.listing import show

    show("scenarios", " ".join(map(str, words)))
    return 0


ShardOption = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="every Nth run, from the Ith on; index/N in an Indexed Job")
]
