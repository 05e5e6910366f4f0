"""``mews record``: a running ``mews up`` as a scenario, or a real cluster as a hardware file and a scenario."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mews.harness import terminal
from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.session_words import NAME, NAMED, ArgumentWords, answered, client_of
from mews.harness.errors import BadInputError, RequirementError
from mews.kube.system.command import Command, CommandContext
from mews.names import must_be
from mews.own_files import write_named

if TYPE_CHECKING:
    from mews.harness.recording.observations import ClusterObservations
    from mews.kube.client.http import HttpKube

DEFAULT_FOR = "10m"
_LONGEST_S = 7 * 86_400.0
_OF_CLUSTERS = ("context", "chassis", "dialect", "credentials", "ca", "insecure", "for_")
_SHOWN = 8
"""Notes that are printed; all are in the files."""


@answered
def record(words: Sequence[str], context: CommandContext) -> int:
    """Write what a session, a cluster or collected files show."""
    chosen = _parser().parse_args(words)
    given = [name for name in ("name", "kubeconfig", "from_") if getattr(chosen, name) is not None]
    if len(given) > 1:
        raise BadInputError(f"{' '.join(map(_option, given))}: only one of them")
    if not given or given == ["name"]:
        _refuse(chosen, _OF_CLUSTERS, "--kubeconfig")
        _refuse(chosen, ("redact",), "--kubeconfig and --from")
        return _session(chosen, context)
    if chosen.out is None:
        raise BadInputError(f"{_option(given[0])}: requires --out FILE, the scenario to write")
    from mews.harness.recording.written import check_out

    check_out(Path(chosen.out))
    if given == ["from_"]:
        _refuse(chosen, _OF_CLUSTERS, "--kubeconfig")
        from mews.harness.catalogue.files import recording_folder
        from mews.harness.recording.collected import collected

        return _write(collected(recording_folder(Path(chosen.from_))), chosen, context)
    return _write(_watched(chosen), chosen, context)


def _parser() -> ArgumentWords:
    parser = ArgumentWords("record")
    parser.set_defaults(name=None)
    parser.add_argument("--out", default=None, metavar="FILE")
    parser.add_argument("--as", dest="called", default="")
    parser.add_argument("--kubeconfig", default=None)
    parser.add_argument("--from", dest="from_", default=None)
    parser.add_argument("--context", default=None)
    parser.add_argument("--chassis", action="append", default=None)
    parser.add_argument("--dialect", default=None)
    parser.add_argument("--credentials", type=Path, default=None)
    parser.add_argument("--ca", type=Path, default=None)
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument("--for", dest="for_", default=None)
    parser.add_argument("--redact", action="store_true")
    return parser


def _option(name: str) -> str:
    return f"--{name.rstrip('_')}"


def _refuse(chosen: argparse.Namespace, names: Sequence[str], needed: str) -> None:
    """Raise BadInputError for an option that this way of recording does not use."""
    for name in names:
        if getattr(chosen, name) not in (None, False):
            raise BadInputError(f"{_option(name)}: applies only to {needed}")


def _session(chosen: argparse.Namespace, context: CommandContext) -> int:
    out, session = chosen.out or "-", chosen.name or "mews"
    called = chosen.called or (session if out == "-" else Path(out).stem)
    text = client_of(session).get(f"/v1/recording?name={quote(called, safe='')}")["scenario"]
    if out == "-":
        context.write(text)
        return 0
    try:
        write_named(Path(out), text)
    except OSError as error:
        raise ValueError(f"--out {out}: cannot be written: {error.strerror}") from error
    return 0


def _watched(chosen: argparse.Namespace) -> ClusterObservations:
    from mews.harness.kubeconfig_file import check_kubeconfig

    for_s = _duration_s(DEFAULT_FOR if chosen.for_ is None else chosen.for_)
    file = Path(chosen.kubeconfig)
    check_kubeconfig(file, chosen.context)
    addresses = _addresses(chosen)
    kube = _kube(file, chosen.context)
    if not is_quiet():
        terminal.err(f"recording for {for_s:g} s, read only; Ctrl-C ends it early and writes what was seen\n")
    return asyncio.run(_watch(kube, addresses, for_s))


def _duration_s(text: str) -> float:
    from mews.harness.scenario.quantity import seconds_of

    try:
        found = seconds_of(text)
    except ValueError as error:
        raise BadInputError(f"--for {text}: {error}") from None
    if not 0 < found <= _LONGEST_S:
        raise BadInputError(f"--for {text}: must be above 0, and at most 7 days (168h)")
    return found


def _addresses(chosen: argparse.Namespace) -> list[Any]:
    from mews.dialects import DIALECTS
    from mews.harness.conformance.open import check_url, credentials_of
    from mews.harness.recording.chassis_polls import WatchedChassis

    if chosen.dialect is not None and chosen.dialect not in DIALECTS.names():
        raise BadInputError(f"--dialect {chosen.dialect}: {must_be(chosen.dialect, DIALECTS.names())}")
    if chosen.ca is not None and chosen.insecure:
        raise BadInputError(f"--ca {chosen.ca} --insecure: only one of the two")
    urls = [check_url(url) for url in chosen.chassis or ()]
    unused = [
        name for name in ("dialect", "credentials", "ca", "insecure") if getattr(chosen, name) not in (None, False)
    ]
    if unused and not urls:
        raise BadInputError(f"{_option(unused[0])}: applies only to --chassis URL")
    if len(urls) > 26 or len(set(urls)) < len(urls):
        raise BadInputError(f"--chassis: {len(urls)} URLs; at most 26 are allowed, each given once")
    credentials = credentials_of(chosen.credentials) if urls else None
    return [
        WatchedChassis(chr(ord("A") + number), url, chosen.dialect or "", credentials, chosen.ca, chosen.insecure)
        for number, url in enumerate(urls)
    ]


def _kube(file: Path, context: str | None) -> HttpKube:
    from mews.kube.client.http import HttpKube

    try:
        return HttpKube.from_kubeconfig(str(file), context)
    except (OSError, ValueError) as error:  # a credential plugin that is missing, a certificate
        raise RequirementError(f"--kubeconfig {file}: {' '.join(str(error).split())}") from error


async def _watch(kube: HttpKube, addresses: Sequence[Any], for_s: float) -> ClusterObservations:
    from mews.harness.recording.chassis_polls import ChassisPolls
    from mews.harness.recording.live import watched
    from mews.harness.report.progress import ProgressBar
    from mews.kube.clock import Clock

    now, stop = Clock.wall().now, asyncio.Event()
    bar = ProgressBar(round(for_s), quiet=is_quiet())
    bar.begin("recording")

    def progress(elapsed_s: float, seen: str) -> None:
        bar.reached(round(elapsed_s))
        bar.print(seen)

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    try:
        polls = [ChassisPolls(each, now) for each in addresses]
        return await watched(kube, kube.base_url, polls, for_s=for_s, now=now, stop=stop, progress=progress)
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        bar.close()
        await kube.close()


def _write(seen: ClusterObservations, chosen: argparse.Namespace, context: CommandContext) -> int:
    from mews.emulator.chassis.errors import HardwareError
    from mews.harness.clusters.real.systems import default_namespaces
    from mews.harness.recording.inference import NothingRecordedError, recorded_files
    from mews.harness.recording.redaction import redacted
    from mews.harness.recording.written import hardware_path, write_files

    out, own = Path(chosen.out), default_namespaces()
    if chosen.redact:
        seen = redacted(seen, own)
    try:
        files = recorded_files(seen, name=chosen.called or out.stem, hardware_file=hardware_path(out).name, own=own)
    except (NothingRecordedError, HardwareError) as error:
        raise BadInputError(f"nothing to write: {error}") from error
    beside = write_files(out, files)
    for note in files.notes[:_SHOWN]:
        terminal.err(f"not known: {note}\n")
    if len(files.notes) > _SHOWN:
        terminal.err(f"{len(files.notes) - _SHOWN} more comments are at the beginning of {out}\n")
    for reason in files.red:
        context.write(f"went wrong: {reason}\n")
    context.write(f"written: {out}, {beside}\n")
    return 0


RECORD = Command(
    "record",
    "Record a session, a real cluster or collected files as a scenario that replays.",
    record,
    f"{NAME} [--out FILE] [--as NAME]"
    " | --kubeconfig FILE [--context NAME] [--chassis URL]… [--dialect NAME] [--credentials FILE] [--ca FILE]"
    " [--insecure] --for T --out FILE [--redact] | --from DIR --out FILE [--redact]",
    options={
        **NAMED,
        "--kubeconfig FILE": "read the cluster of this kubeconfig, and change nothing",
        "--context NAME": "use this context of the kubeconfig",
        "--chassis URL": "read this chassis too; repeat for several",
        "--dialect NAME": "use this dialect of the chassis; default: try each",
        "--credentials FILE": "log in to the chassis with USER:PASSWORD from this file",
        "--ca FILE": "trust these certificates of the chassis",
        "--insecure": "trust any certificate of the chassis",
        "--for T": f"stop after this time, such as 90s or 10m; default: {DEFAULT_FOR}",
        "--from DIR": "read collected files instead: kubectl output, logs, listings",
        "--out FILE": "write the scenario here; of a cluster, hardware goes to NAME-hardware.yaml",
        "--as NAME": "name the scenario; default: the file's name",
        "--redact": "rename namespaces, pods, hosts and images",
    },
    examples=(
        "mews record --name lab --out lab.yaml",
        "mews record --kubeconfig ~/.kube/config --chassis http://10.0.0.5 --for 10m --out bug.yaml",
        "mews record --from collected --out bug.yaml --redact",
    ),
)
