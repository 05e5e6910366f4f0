"""Options whose words take more than a line: what the command line's functions are annotated with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mews.dialects import OURS
from mews.harness.backends import BACKENDS
from mews.harness.errors import BadInputError

if TYPE_CHECKING:
    from mews.harness.commands.kubernetes_options import KubernetesOptions

InsecureOption = Annotated[bool, typer.Option("--insecure", help="use plain HTTP; anyone on this machine gets access")]
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="accept this host name, too; may be repeated"),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="override a value of the scenario")
]
SnapshotOption = Annotated[
    Path | None, typer.Option("--snapshot", metavar="FILE", help="restore this file of `mews snapshot save`")
]
StackOption = Annotated[
    str | None,
    typer.Option("--stack", metavar="NAME[,NAME]|none", help="run these systems; none: a bare cluster"),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ours|real",
        help="run ours or kube-scheduler; default: the cluster's",
    ),
]
ControllersOption = Annotated[
    str | None,
    typer.Option(
        "--controllers",
        metavar="ours|real",
        help="run ours or kube-controller-manager; default: the cluster's",
    ),
]
KubernetesOption = Annotated[
    str | None,
    typer.Option("--kubernetes", metavar="RELEASE", help="run this release of Kubernetes, such as 1.36; default: 1.34"),
]
FeatureGatesOption = Annotated[
    str | None,
    typer.Option("--feature-gates", metavar="NAME=BOOL,…", help="set features of that release to true or false"),
]
RuntimeConfigOption = Annotated[
    str | None,
    typer.Option("--runtime-config", metavar="GROUP/VERSION=BOOL,…", help="serve API versions that are off by default"),
]
MetricsOption = Annotated[
    str | None, typer.Option("--metrics", metavar="on|off", help="serve metrics.k8s.io, or not; default: on")
]
ImagesOption = Annotated[
    Path | None,
    typer.Option(
        "--images", metavar="FILE", help="read your images from this file, in the format of a scenario's images"
    ),
]
UnknownImagesOption = Annotated[
    str | None,
    typer.Option(
        "--unknown-images",
        metavar="fail|idle|container",
        help="choose how other images run; default: idle",
    ),
]
DIALECTS = f"{', '.join(OURS)}, an installed one, or module:attribute"

ClusterOption = Annotated[
    str, typer.Option("--cluster", help="choose the cluster: " + " or ".join(", ".join(BACKENDS).rsplit(", ", 1)))
]
SpeedOption = Annotated[
    float, typer.Option("--speed", help="run this many emulated seconds per second of wall-clock time")
]
SPEAK = f"use this dialect of the chassis API: {DIALECTS}"
DialectOption = Annotated[str | None, typer.Option("--dialect", help=SPEAK)]
OutsideOption = Annotated[bool, typer.Option("--allow-outside", help="let scenarios name files outside their folders")]
DirOption = Annotated[
    Path | None,
    typer.Option("--dir", help="write kubeconfig and ready.json here; default: a folder named after the session"),
]
HostAccessOption = Annotated[
    bool,
    typer.Option(
        "--allow-host-access",
        help="let containers of real images be privileged, share this machine's namespaces and mount its paths",
    ),
]
WaitOption = Annotated[
    str,
    typer.Option(
        "--wait",
        metavar="nodes|devices",
        help="wait until nodes are Ready, or until their devices are allocatable, too",
    ),
]
WebOption = Annotated[bool, typer.Option("--web", help="print the address of the live page")]
ProfileOption = Annotated[
    str,
    typer.Option("--profile", metavar="NAME|FILE", help="require this profile: stack, newest, or a DSP0272 profile"),
]
ExplainOption = Annotated[
    str | None, typer.Option("--explain", metavar="CLAUSE", help="print a clause's text and source, and exit")
]
RestoreFileOption = Annotated[
    Path | None, typer.Option("--restore-file", metavar="FILE", help="keep notes in this file on how to undo the run")
]
RestoreOption = Annotated[
    Path | None, typer.Option("--restore", metavar="FILE", help="undo an interrupted run, and exit")
]
RecordingOption = Annotated[
    Path | None,
    typer.Option("--recording", metavar="DIR", help="replay a recording of `mews conform`, or a DSP2043 mockup folder"),
]
StateOption = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="keep the table in this file across restarts")
]
OpenapiOption = Annotated[
    str | None, typer.Option("--openapi", metavar="DIALECT", help="print the OpenAPI description and exit")
]
ChassisTlsOption = Annotated[
    bool, typer.Option("--tls", help="use TLS where passwords and tokens are required; the default")
]
ChangesOption = Annotated[bool, typer.Option("--allow-changes", help="move idle devices, and put them back")]
DeviceOption = Annotated[
    list[str] | None, typer.Option("--device", metavar="ID", help="move only this idle device; default: free devices")
]
PortOption = Annotated[
    list[str] | None, typer.Option("--port", metavar="PORT", help="attach devices only to this port; default: all")
]
QuirksOption = Annotated[
    str | None, typer.Option("--quirks", metavar="NAME|FILE", help="read known quirks of the firmware from this file")
]
WaiversOption = Annotated[
    Path | None, typer.Option("--waivers", metavar="FILE", help="accept the deviations that this file lists")
]
CredentialsOption = Annotated[
    Path | None,
    typer.Option(
        "--credentials", metavar="FILE", help="log in as USER:PASSWORD; default: MEWS_REDFISH_USER, _PASSWORD"
    ),
]
SelectOption = Annotated[
    str | None, typer.Option("--select", metavar="KEY=VALUE,…", help="run only scenarios with these metadata.labels")
]
StrictOption = Annotated[bool, typer.Option("--strict", help="exit with 3 if anything was skipped and nothing failed")]
Paths = Annotated[
    list[Path],
    typer.Argument(help="run these scenario files, folders, or names of included scenarios", metavar="PATH..."),
]
PathsOrNone = Annotated[
    list[Path] | None,
    typer.Argument(help="run these scenario files, folders, or names of included scenarios", metavar="PATH..."),
]
ListOption = Annotated[
    bool, typer.Option("--list", help="list the included scenarios and exit; PATH selects those with that word")
]
AboutOption = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="WORD", help="run the included scenarios that --list WORD lists; may be repeated"),
]
HardwareOption = Annotated[
    Path | None,
    typer.Option("--hardware", help="use this hardware file, or the name of an included one; default: the demo's"),
]
ResultsOption = Annotated[
    str | None, typer.Option("--results", metavar="FILE|-", help="append a line of JSON as each run finishes")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="skip runs whose results --results has already")]
ResumeExperimentOption = Annotated[bool, typer.Option("--resume", help="skip runs whose results --out has already")]


def kubernetes_options(release: str | None, feature_gates: str | None, runtime_config: str | None) -> KubernetesOptions:
    """``--kubernetes``, ``--feature-gates`` and ``--runtime-config`` as given."""
    from mews.harness.commands.kubernetes_options import KubernetesOptions

    return KubernetesOptions(release, feature_gates, runtime_config)


def scenarios_about(words: Sequence[str]) -> list[Path]:
    """Return the names of the included scenarios that have one of these words, by name.

    Raises BadInputError for a word that none has.
    """
    if not words:
        return []

    from mews.harness.commands.listing import found

    return sorted({Path(entry.name) for word in words for entry in found("scenarios", word)})


def list_scenarios(words: Sequence[Path], *, asked: bool) -> int:
    """Return what `run` does without files: list the included scenarios where that is asked for.

    Raises BadInputError where it is not, and for words that no scenario has.
    """
    if not asked:
        raise BadInputError("PATH: missing; give scenario files, folders or names, --about WORD or --list")

    from mews.harness.commands.listing import show

    show("scenarios", " ".join(map(str, words)))
    return 0


ShardOption = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="run every Nth run, starting with the Ith; index/N in an Indexed Job"),
]
TimeOption = Annotated[
    str | None, typer.Option("--time", help="run in virtual time or in wall-clock time: virtual or wall")
]
SeedsOption = Annotated[str | None, typer.Option("--seeds", metavar="A-B", help="run once with each of these seeds")]
JsonOption = Annotated[
    str | None, typer.Option("--json", metavar="FILE|-", help="write the results as JSON; -: to standard output")
]
JunitOption = Annotated[Path | None, typer.Option("--junit", metavar="FILE|-", help="write the results as JUnit XML")]
HtmlOption = Annotated[Path | None, typer.Option("--html", metavar="FILE|-", help="write the results as one HTML page")]
JournalOption = Annotated[
    Path | None, typer.Option("--journal", metavar="FILE|-", help="write the journal, as JSON lines")
]
KubeconfigOption = Annotated[
    Path | None, typer.Option("--kubeconfig", help="use this kubeconfig, with --cluster kubeconfig")
]
JobsOption = Annotated[
    int,
    typer.Option("--jobs", metavar="N", help="run this many scenarios at a time; virtual time only"),
]
BreakOption = Annotated[
    str | None,
    typer.Option(
        "--break-at",
        metavar="LINE|STEP|violation",
        help="stop one run at this journal line, at the step of this name or step:NUMBER, or at the first violation",
    ),
]
CheckedPaths = Annotated[
    list[Path] | None, typer.Argument(help="check these scenario and hardware files, or folders", metavar="PATH...")
]
SchemaOption = Annotated[
    bool, typer.Option("--schema", help="print the JSON Schema of scenario files, or of hardware files")
]
UpClusterOption = Annotated[str, typer.Option("--cluster", help="choose the cluster: embedded, control-plane or kind")]
ScenarioOption = Annotated[Path | None, typer.Option("--scenario", help="take hardware and stack from this scenario")]
ApiPortOption = Annotated[
    int, typer.Option("--api-port", min=0, max=65535, help="serve the API on this port; 0: any free port")
]
ClustersOption = Annotated[
    str, typer.Option("--clusters", help="compare these clusters, separated by commas, with the first")
]
DifferencesOption = Annotated[
    str | None, typer.Option("--json", metavar="FILE|-", help="write the runs and their differences as JSON")
]
ListenOption = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="listen here with the first dialect of the first chassis")
]
ReadyOption = Annotated[
    Path | None, typer.Option("--ready", metavar="FILE", help="write this file once everything is served")
]
CertificateOption = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="use this certificate; default: a generated one")
]
CaOption = Annotated[Path | None, typer.Option("--ca", "--cacert", metavar="FILE", help="trust these CA certificates")]
ClientCertificateOption = Annotated[
    Path | None,
    typer.Option("--cert", metavar="FILE", help="show this client certificate, in PEM; with its key, or with --key"),
]
ClientKeyOption = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="use this private key of --cert, in PEM, unencrypted")
]
UrlOption = Annotated[
    str | None, typer.Argument(help="test the chassis at this URL, such as https://box", metavar="URL")
]
SsdpOption = Annotated[bool, typer.Option("--ssdp", help="let the Redfish services be found by SSDP")]
WrongOption = Annotated[
    list[str] | None,
    typer.Option("--wrong", metavar="NAME", help="add this deviation; `mews proxy --list` lists all; may be repeated"),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", metavar="T", help="stop after this time, and restore the chassis")
]
BaselineOption = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="show what is new or fixed since this JSON report"),
]
SarifOption = Annotated[str | None, typer.Option("--sarif", metavar="FILE|-", help="write the results as SARIF 2.1.0")]
SelfTestOption = Annotated[bool, typer.Option("--self-test", help="test emulated chassis with known faults, and exit")]
PatienceOption = Annotated[float, typer.Option("--patience", metavar="S", help="wait this many seconds for a reply")]
RecordOption = Annotated[Path | None, typer.Option("--record", metavar="DIR", help="record all replies in this folder")]
ShownHardwareOption = Annotated[
    Path | None, typer.Option("--hardware", help="show a host of this hardware file, without a session")
]
ManifestsFolderOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="write a file per component into this folder")
]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", help="deploy into this namespace; default: the default system's")
]
NodeOption = Annotated[
    list[str] | None, typer.Option("--node", metavar="HOST=NODE", help="deploy to this node; may be repeated")
]
CellSeedsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--seeds", metavar="[PART=]N|A-B", help="run each cell with the first N seeds, or A to B; may be repeated"
    ),
]
LogOption = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="read jobs from this log of the cluster that the paper used"),
]
AxisOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="AXIS=VALUE", help="use this value instead of the included one; may be repeated"),
]
SweepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep", metavar="AXIS=VALUE,…", help="run once for each value, and draw a curve of them; may be repeated"
    ),
]
ResultsFolderOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="write results, tables, figures and a page into this folder")
]
MarkdownOption = Annotated[
    str | None, typer.Option("--markdown", metavar="FILE|-", help="write the report as Markdown")
]
PlotsOption = Annotated[
    Path | None, typer.Option("--plots", metavar="DIR", help="draw figures into this folder; requires matplotlib")
]
