"""``mews envtest``: a cluster for as long as a command runs, as controller-runtime's envtest has one."""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from mews.harness import terminal
from mews.harness.commands.words import FailingParser
from mews.kube.system.command import Command, CommandContext
from mews.own_files import append_own, write_own

SUMMARY = "Bring up a cluster, run CMD with KUBECONFIG and USE_EXISTING_CLUSTER set, stop it, and exit with CMD's code."
USAGE = (
    "[--cluster embedded|control-plane] [--bare | --scenario FILE | --hardware FILE] [--stack NAME[,NAME]|none] "
    "[--images FILE] [--speed N] [--wait nodes|devices] [--scheduler ours|real] [--controllers ours|real] "
    "[--kubernetes RELEASE] [--feature-gates NAME=BOOL,…] [--runtime-config GROUP/VERSION=BOOL,…] -- CMD…"
)
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_BY_TERMINAL = 0x80
"""si_code of a signal that the kernel sent: the terminal's, which CMD got, too."""
_DEATH_SIGNAL = 1  # prctl(PR_SET_PDEATHSIG)
_KUBERNETES = ("kubernetes", "feature-gates", "runtime-config")
_OPTIONS = ("cluster", "scenario", "hardware", "stack", "images", "speed", "wait", "scheduler", "controllers")
_BARE = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: bare}
hardware:
  apiVersion: mews/v1
  kind: Hardware
  metadata: {name: bare}
  hosts: []
  chassis: [{name: A, ports: {}, devices: []}]
stack: {kubecomp: null, defaultScheduler: null, controllers: {program: ours, run: []}, metrics: "off", storage: none}
"""
"""The API server alone, as controller-runtime's envtest has it: no nodes, no controllers, no scheduler."""


def run(arguments: Sequence[str], context: CommandContext) -> int:
    """Return the command.

    Raises ValueError for bad arguments, RequirementError where the cluster does not come up.
    """
    parser = FailingParser("envtest")
    for name in (*_OPTIONS, *_KUBERNETES):
        parser.add_argument(f"--{name}")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    command = chosen.command[1:] if chosen.command[:1] == ["--"] else chosen.command
    if not command:
        raise ValueError("CMD: missing; say what to run, such as mews envtest -- go test ./...")
    if shutil.which(command[0]) is None:
        raise ValueError(f"{command[0]}: no such program")
    given = {name: getattr(chosen, name.replace("-", "_")) for name in (*_OPTIONS, *_KUBERNETES)}
    options = {name: value for name, value in given.items() if value is not None}
    beside = [
        name
        for name in ("scenario", "hardware", "stack", "scheduler", "controllers")
        if chosen.bare and name in options
    ]
    if beside:
        raise ValueError(f"--bare --{beside[0]}: only one of the two")
    if "stack" not in options and "scenario" not in options and not chosen.bare:
        options["stack"] = "none"
    with tempfile.TemporaryDirectory(prefix="mews-envtest-") as folder:
        if chosen.bare:
            scenario = Path(folder) / "bare.yaml"
            write_own(scenario, _BARE)
            options["scenario"] = str(scenario)
        return _with_cluster(options, command, Path(folder))


def _with_cluster(options: Mapping[str, str], command: Sequence[str], folder: Path) -> int:
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    argv = [sys.executable, "-m", "mews.harness.cli", "up", "--dir", str(folder), "--name", f"envtest-{os.getpid()}"]
    watched: set[int | signal.Signals] = {*_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        with append_own(folder / "errors") as errors:
            cluster = subprocess.Popen(
                [*argv, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C is CMD's; it ends after that
                preexec_fn=lambda: _dies_with_parent(before),
            )
            try:
                stopped = _await_ready(cluster, folder / "ready.json", watched)
                if stopped is not None:
                    return _not_up(cluster, folder / "errors") if stopped == 0 else 128 + stopped
                return _run(command, _environment(folder), before, watched)
            finally:
                cluster.terminate()
                cluster.wait()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _dies_with_parent(mask: set[int | signal.Signals]) -> None:
    """In the child: it is told to end when this process is killed, and takes signals as this one did."""
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


def _await_ready(cluster: subprocess.Popen[bytes], ready: Path, watched: set[int | signal.Signals]) -> int | None:
    """Return None once it serves; else the number of the signal that came before, 0 when it ended."""
    while not ready.exists():
        if cluster.poll() is not None:
            return 0
        came = signal.sigtimedwait(watched, 0.05)
        if came is not None and came.si_signo in _PASSED_ON:
            return came.si_signo
    return None


def _not_up(cluster: subprocess.Popen[bytes], errors: Path) -> int:
    terminal.err(errors.read_text(encoding="utf-8"))
    return cluster.returncode or 3


def _environment(folder: Path) -> dict[str, str]:
    """Return what client-go, controller-runtime's envtest and kubebuilder's suites look at."""
    found = {
        "KUBECONFIG": str(folder / "kubeconfig"),
        "USE_EXISTING_CLUSTER": "true",
        "MEWS_READY": str(folder / "ready.json"),
    }
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets is None:  # a folder in its place, with what there is: suites ask whether it is set
        own = folder / "assets"
        own.mkdir()
        kubectl = shutil.which("kubectl")
        if kubectl is not None:
            (own / "kubectl").symlink_to(kubectl)
        found["KUBEBUILDER_ASSETS"] = str(own)
    kubectl = shutil.which("kubectl", path=assets or found["KUBEBUILDER_ASSETS"])
    return {**os.environ, **found, **({"TEST_ASSET_KUBECTL": kubectl} if kubectl is not None else {})}


def _run(
    command: Sequence[str], env: Mapping[str, str], mask: set[int | signal.Signals], watched: set[int | signal.Signals]
) -> int:
    """CMD's exit code, 128 + n where signal n ended it; signals are passed on to it."""
    unblocked = mask
    try:
        running = subprocess.Popen(
            command, env=dict(env), preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        )
    except OSError as error:
        raise ValueError(f"{command[0]}: {error.strerror}") from error
    while (code := running.poll()) is None:
        came = signal.sigtimedwait(watched, 1.0)
        if came is None or came.si_signo not in _PASSED_ON:
            continue
        if came.si_code != _BY_TERMINAL:
            running.send_signal(came.si_signo)
    return code if code >= 0 else 128 - code


COMMAND = Command(
    "envtest",
    SUMMARY,
    run,
    USAGE,
    passes_on=True,
    options={
        "--cluster embedded|control-plane": "choose the API server; default: embedded",
        "--bare": "run only the API server: no nodes, controllers or scheduler",
        "--scenario FILE": "take hardware and stack from this scenario",
        "--hardware FILE": "use this hardware file; default: the demo's",
        "--stack NAME[,NAME]|none": "run these systems; none: a bare cluster",
        "--images FILE": "read your images from this file, in the format of a scenario's images",
        "--speed N": "run this many emulated seconds per second of wall-clock time",
        "--wait nodes|devices": "start CMD when nodes are Ready, or also when devices are allocatable",
        "--scheduler ours|real": "run our scheduler, or this machine's kube-scheduler",
        "--controllers ours|real": "run our controllers, or this machine's kube-controller-manager",
        "--kubernetes RELEASE": "run this release of Kubernetes, such as 1.36; default: 1.34",
        "--feature-gates NAME=BOOL,…": "set features of that release to true or false",
        "--runtime-config GROUP/VERSION=BOOL,…": "serve API versions that are off by default",
    },
    examples=("mews envtest -- go test ./...", "mews envtest --bare --cluster control-plane -- go test ./..."),
)
