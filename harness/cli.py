"""The command ``mews``. Exit codes: 0 passed, 1 something failed, 2 bad input, 3 the environment lacks something,
4 nothing failed and not all could be judged.

Everything that a command needs is imported when it runs, so that a virtual run starts in a fraction of a second.
"""

# No annotations from __future__: typer would have to read each of them from its text again.
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mews.descriptors import exhausted, exhausted_line
from mews.dialects import DEFAULT
from mews.harness import terminal
from mews.harness.backends import DEFAULT_BACKEND, backend_of, backends_that
from mews.harness.commands import arguments as given
from mews.harness.commands import collecting
from mews.harness.commands.global_options import global_options
from mews.harness.commands.help_layout import MewsTyper
from mews.harness.commands.of_systems import MewsGroup
from mews.harness.commands.serving import check_serves, serving_options
from mews.harness.commands.usage_errors import usage
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.extras import lacking
from mews.harness.options import (
    RunOptions,
    check_choice,
    check_dialect,
    check_pace,
    check_run_options,
    seeds_wanted,
    time_of,
)
from mews.project import DOCUMENTATION, ISSUES

app = MewsTyper(name="mews", cls=MewsGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
app.callback(invoke_without_command=True)(global_options)

ClickError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Of the click that this typer brings along."""

INTERRUPTED = 130
MISTAKE = f"This is a mistake in Mews. Please report it with these lines: {ISSUES}"


@app.command()
def run(
    paths: given.PathsOrNone = None,
    cluster: given.ClusterOption = DEFAULT_BACKEND,
    time: given.TimeOption = None,
    speed: given.SpeedOption = 1.0,
    seed: Annotated[int | None, typer.Option("--seed", help="use this seed instead of the scenario's")] = None,
    seeds: given.SeedsOption = None,
    dialect: given.DialectOption = None,
    kubernetes: given.KubernetesOption = None,
    feature_gates: given.FeatureGatesOption = None,
    runtime_config: given.RuntimeConfigOption = None,
    set_: given.SetOption = None,
    json: given.JsonOption = None,
    junit: given.JunitOption = None,
    html: given.HtmlOption = None,
    journal: given.JournalOption = None,
    keep: Annotated[bool, typer.Option("--keep", help="keep a wall-clock cluster running afterwards")] = False,
    kubeconfig: given.KubeconfigOption = None,
    context: Annotated[str | None, typer.Option("--context", help="use this context of the kubeconfig")] = None,
    timeout: Annotated[float | None, typer.Option("--timeout", help="limit each scenario to this many seconds")] = None,
    jobs: given.JobsOption = 1,
    results: given.ResultsOption = None,
    resume: given.ResumeOption = False,
    shard: given.ShardOption = None,
    select: given.SelectOption = None,
    break_at: given.BreakOption = None,
    strict: given.StrictOption = False,
    allow_outside: given.OutsideOption = False,
    allow_host_access: given.HostAccessOption = False,
    insecure: given.InsecureOption = False,
    list_: given.ListOption = False,
    about: given.AboutOption = None,
) -> int:
    """Run scenarios and check their results."""
    if list_ or not (paths or about):
        return given.list_scenarios([*(paths or ()), *map(Path, about or ())], asked=list_)
    paths = [*(paths or ()), *given.scenarios_about(about or ())]
    check_pace(dialect, speed)
    time = time_of(cluster, time)
    check_serves(insecure, served=backend_of(cluster).emulates_nodes and time == "wall", cluster=cluster, time=time)
    options = RunOptions(
        cluster=cluster,
        time=time,
        speed=speed,
        dialect=dialect,
        kubeconfig=kubeconfig,
        context=context,
        timeout_s=timeout,
        keep=keep,
        serving=serving_options(insecure=insecure, host_access=allow_host_access),
    )
    check_run_options(options, jobs)

    from mews.harness.commands.run import GivenSweep, RunOutputs, WantedRuns
    from mews.harness.commands.run import run as run_all

    sweep = GivenSweep(results, resume, shard)
    outputs = RunOutputs(json, junit, html, journal, sweep)
    sets = [*(set_ or ()), *given.kubernetes_options(kubernetes, feature_gates, runtime_config).overrides()]
    wanted = WantedRuns(seeds_wanted(seed, seeds), sets, jobs, select, strict, allow_outside, break_at)
    return run_all(paths, options, outputs, wanted)


@app.command()
def validate(
    paths: given.CheckedPaths = None,
    schema: given.SchemaOption = False,
    allow_outside: given.OutsideOption = False,
) -> int:
    """Check scenario and hardware files without running anything."""
    from mews.harness.commands import validate as commands

    if schema:
        return commands.print_schema([str(path) for path in paths or ()])
    if not paths:
        raise BadInputError("PATH: missing; give scenario or hardware files or folders, or --schema")
    return commands.validate(paths, allow_outside=allow_outside)


@app.command()
def demo(
    dialect: Annotated[str, typer.Option("--dialect", help=given.SPEAK)] = DEFAULT,
    speed: given.SpeedOption = 20.0,
) -> int:
    """Show a GPU move because a pod asked for it."""
    check_pace(dialect, speed)

    from mews.harness.commands.demo import demo as show

    return show(dialect, speed)


@app.command()
def up(
    hardware: given.HardwareOption = None,
    dir_: given.DirOption = None,
    json: Annotated[bool, typer.Option("--json", help="print only ready.json")] = False,
    cluster: given.UpClusterOption = DEFAULT_BACKEND,
    scenario: given.ScenarioOption = None,
    speed: given.SpeedOption = 1.0,
    dialect: given.DialectOption = None,
    name: Annotated[str, typer.Option("--name", help="name the session, for `mews down`")] = "mews",
    tls: Annotated[bool, typer.Option("--tls", help="use TLS and require a token; the default")] = False,
    api_port: given.ApiPortOption = 0,
    stack: given.StackOption = None,
    images: given.ImagesOption = None,
    unknown_images: given.UnknownImagesOption = None,
    metrics: given.MetricsOption = None,
    scheduler: given.SchedulerOption = None,
    controllers: given.ControllersOption = None,
    kubernetes: given.KubernetesOption = None,
    feature_gates: given.FeatureGatesOption = None,
    runtime_config: given.RuntimeConfigOption = None,
    allow_host_access: given.HostAccessOption = False,
    wait: given.WaitOption = "nodes",
    allow_outside: given.OutsideOption = False,
    insecure: given.InsecureOption = False,
    allow_host: given.AllowHostOption = None,
    web: given.WebOption = False,
    snapshot: given.SnapshotOption = None,
) -> int:
    """Bring up a cluster with its chassis, and keep it in the foreground until it is stopped."""
    check_choice("--cluster", cluster, backends_that(lambda backend: backend.stays_up))
    check_pace(dialect, speed)

    from mews.harness.commands.up import UpArguments, UpImages, UpPrograms, waited_for
    from mews.harness.commands.up import up as bring_up

    serving = serving_options(
        insecure=insecure, tls=tls, port=api_port, allow_hosts=allow_host, host_access=allow_host_access
    )
    release = given.kubernetes_options(kubernetes, feature_gates, runtime_config)
    seen = (waited_for(wait), web, snapshot, metrics, UpPrograms(scheduler, controllers), release)
    brought = (stack, allow_outside, UpImages(images, unknown_images), *seen)
    arguments = UpArguments(hardware, dir_, cluster, scenario, speed, dialect, name, serving, *brought)
    return bring_up(arguments, as_json=json)


@app.command()
def down(
    name: Annotated[str | None, typer.Option("--name", help="stop the session of this name; default: mews")] = None,
    all_: Annotated[bool, typer.Option("--all", help="stop every session that `mews up` recorded")] = False,
) -> int:
    """Stop sessions of `mews up`, and remove what killed runs left behind."""
    if name is not None and all_:
        raise BadInputError(f"--name {name} --all: only one of the two")

    from mews.harness.commands.down import down as end

    return end(name, everything=all_)


@app.command(name="diff-clusters")
def diff_clusters(
    paths: given.Paths,
    clusters: given.ClustersOption = "embedded,control-plane",
    speed: given.SpeedOption = 10.0,
    dialect: given.DialectOption = None,
    json: given.DifferencesOption = None,
    keep: Annotated[bool, typer.Option("--keep", help="keep the kind cluster for later runs")] = False,
    allow_outside: given.OutsideOption = False,
) -> int:
    """Run scenarios on several clusters and report the differences."""
    check_pace(dialect, speed)

    from mews.harness.commands.diff_clusters import diff_clusters as compare

    names = list(dict.fromkeys(name.strip() for name in clusters.split(",")))
    options = RunOptions(speed=speed, dialect=dialect, keep=keep)
    return compare(paths, names, options, json_file=json, allow_outside=allow_outside)


@app.command()
def serve(
    hardware: given.HardwareOption = None,
    listen: given.ListenOption = "127.0.0.1:0",
    dialect: given.DialectOption = None,
    ready: given.ReadyOption = None,
    state: given.StateOption = None,
    speed: given.SpeedOption = 1.0,
    openapi: given.OpenapiOption = None,
    recording: given.RecordingOption = None,
    tls: given.ChassisTlsOption = False,
    certificate: given.CertificateOption = None,
    key: Annotated[Path | None, typer.Option("--key", metavar="FILE", help="use this private key, in PEM")] = None,
    insecure: given.InsecureOption = False,
    allow_host: given.AllowHostOption = None,
    ssdp: given.SsdpOption = False,
    wrong: given.WrongOption = None,
    seed: Annotated[int, typer.Option("--seed", help="use this seed for --wrong and for faults")] = 0,
) -> int:
    """Serve a chassis without Kubernetes."""
    if openapi is not None:
        from mews.emulator.dialects.openapi import DESCRIBED, description

        check_choice("--openapi", openapi, DESCRIBED)
        terminal.out(description(openapi))
        return 0
    check_pace(dialect, speed)

    from mews.harness.commands.serve import ServeFiles, Tls, WrongChassis, serve_recorded
    from mews.harness.commands.serve import serve as serve_chassis

    if recording is not None:
        beside = {"--hardware": hardware, "--dialect": dialect, "--state": state, "--certificate": certificate}
        beside |= {"--wrong": wrong[0] if wrong else None, "--ssdp": "" if ssdp else None}
        return serve_recorded(recording, listen, ready, beside, allow_host or ())
    serving = serving_options(insecure=insecure, tls=tls, allow_hosts=allow_host)
    shown = ServeFiles(ready, state, ssdp), WrongChassis(tuple(wrong or ()), seed), Tls(certificate, key)
    return serve_chassis(hardware, listen, *shown, dialect=dialect, speed=speed, serving=serving)


@app.command()
def conform(
    url: given.UrlOption = None,
    dialect: Annotated[str, typer.Option("--dialect", help=given.SPEAK)] = DEFAULT,
    allow_changes: given.ChangesOption = False,
    device: given.DeviceOption = None,
    port: given.PortOption = None,
    quirks: given.QuirksOption = None,
    waivers: given.WaiversOption = None,
    credentials: given.CredentialsOption = None,
    ca: given.CaOption = None,
    cert: given.ClientCertificateOption = None,
    key: given.ClientKeyOption = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="trust any certificate")] = False,
    patience: given.PatienceOption = 60.0,
    json: given.JsonOption = None,
    junit: given.JunitOption = None,
    html: given.HtmlOption = None,
    record: given.RecordOption = None,
    diff: Annotated[Path | None, typer.Option("--diff", metavar="DIR", help="compare with this recording")] = None,
    profile: given.ProfileOption = "stack",
    explain: given.ExplainOption = None,
    restore_file: given.RestoreFileOption = None,
    restore: given.RestoreOption = None,
    budget: given.BudgetOption = "2m",
    baseline: given.BaselineOption = None,
    sarif: given.SarifOption = None,
    list_: Annotated[bool, typer.Option("--list", help="list the clauses of the dialect, and exit")] = False,
    self_test: given.SelfTestOption = False,
) -> int:
    """Test a chassis against its API contract; read-only unless --allow-changes is given."""
    if restore is not None:
        from mews.harness.commands.conform import restore as put_back

        return put_back(restore, credentials)
    check_dialect(dialect)
    from mews.harness.commands.conform_asides import ConformAsides, run_aside

    asides = ConformAsides(explain, list_, self_test)
    if url is None or any(asides.given().values()):
        return run_aside(asides, url, dialect, profile, json, changes=allow_changes)

    from mews.harness.commands import conform as commands
    from mews.harness.conformance.certificates import TlsArguments

    moved = commands.ConformChanges(allow_changes, device or (), port or (), restore_file)
    known = commands.ConformExpectations(profile, quirks, waivers)
    trust = commands.ConformTrust(credentials, TlsArguments(ca, insecure, cert, key))
    given_ = (url, dialect, moved, known, trust, patience, commands.seconds_of("--budget", budget))
    outputs = commands.ConformOutputs(json, junit, html, record, diff, baseline, sarif)
    return commands.conform(commands.ConformArguments(*given_), outputs)


@app.command(
    "nvidia-smi",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    options_metavar="[OPTIONS] [OPTIONS OF NVIDIA-SMI]",
)
def nvidia_smi(
    context: typer.Context,
    hardware: given.ShownHardwareOption = None,
    name: Annotated[str, typer.Option("--name", help="show a host of this session of `mews up`")] = "mews",
    host: Annotated[str | None, typer.Option("--host", help="show this host; default: the first")] = None,
) -> int:
    """Run the emulated nvidia-smi on a host."""
    from mews.harness.commands.nvidia_smi import nvidia_smi as run_smi

    return run_smi(hardware, name, host, context.args)


@app.command()
def manifests(
    hardware: given.HardwareOption = None,
    scenario: given.ScenarioOption = None,
    out: given.ManifestsFolderOption = None,
    namespace: given.NamespaceOption = None,
    image: Annotated[
        str, typer.Option("--image", help="use this image for Mews' components")
    ] = "mews.local/components:latest",
    node: given.NodeOption = None,
    dialect: given.DialectOption = None,
    allow_outside: given.OutsideOption = False,
) -> int:
    """Write the Kubernetes manifests of chassis and stack, as --cluster kind applies them."""
    check_dialect(dialect)

    from mews.harness.commands.manifests import ManifestsOptions, write_manifests

    options = ManifestsOptions(hardware, scenario, out, namespace, image, node or (), dialect, allow_outside)
    return write_manifests(options)


@app.command()
def experiment(
    name: Annotated[str | None, typer.Argument(help="run this experiment; see --list", metavar="NAME")] = None,
    seeds: given.CellSeedsOption = None,
    jobs: Annotated[int, typer.Option("--jobs", help="run this many processes at a time")] = 2,
    out: given.ResultsFolderOption = None,
    json: Annotated[str | None, typer.Option("--json", metavar="FILE|-", help="write all rows as JSON")] = None,
    markdown: given.MarkdownOption = None,
    plots: given.PlotsOption = None,
    trace: given.LogOption = None,
    settings: given.AxisOption = None,
    sweep: given.SweepOption = None,
    resume: given.ResumeExperimentOption = False,
    list_: Annotated[bool, typer.Option("--list", help="list all experiments, what each assumes, and exit")] = False,
) -> int:
    """Repeat an experiment of a system's paper."""
    from mews.harness.commands import experiment as commands

    if list_ and name is not None:
        raise BadInputError(f"--list {name}: only one of the two: --list only lists experiments")
    if list_:
        return commands.list_experiments()
    if name is None:
        raise BadInputError("NAME: missing; give an experiment, or --list")
    outputs = commands.ExperimentOutputs(out, json, markdown, plots, resume)
    changes = commands.ExperimentChanges(settings or (), sweep or (), trace)
    return commands.run(name, seeds or (), jobs, outputs, changes)


@app.command()
def version() -> int:
    """Print the version."""
    from mews import __version__

    terminal.out(f"mews {__version__}\n")
    return 0


# Complex: one branch for each way in which a command ends.
def exit_code(arguments: Sequence[str] | None = None) -> int:  # noqa: C901
    """Run a command line; errors become one line on standard error and a code."""
    try:
        code = int(_call(arguments) or 0)
        return _fail(code, "interrupted") if code == INTERRUPTED else code  # typer makes that number of Ctrl-C
    except typer.Exit as leave:
        return leave.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _fail(INTERRUPTED, "interrupted")
    except ClickError as error:
        return _fail(2, usage(error))
    except BadInputError as error:
        return _fail(2, str(error))
    except RequirementError as error:
        return _fail(2, exhausted_line("mews")) if exhausted(error) else _lacks(error)
    except ModuleNotFoundError as error:
        if (lacks := lacking(error)) is None:
            error.add_note(MISTAKE)
            raise
        return _lacks(lacks)
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except Exception as error:
        if exhausted(error):
            return _fail(2, exhausted_line("mews"))
        error.add_note(MISTAKE)
        raise


def _lacks(error: RequirementError) -> int:
    return _fail(3, f"{error} (see {DOCUMENTATION})")


def _call(arguments: Sequence[str] | None) -> Any:
    words = sys.argv[1:] if arguments is None else list(arguments)
    return app.with_only(words[0] if words else "")(args=words, prog_name="mews", standalone_mode=False)


def _fail(code: int, message: str) -> int:
    terminal.err(f"{message}\n")
    return code


def main() -> None:
    """The entry point."""
    collecting.begin()
    terminal.write_anything()
    try:
        sys.exit(exit_code())
    finally:
        collecting.end()


if __name__ == "__main__":
    main()
