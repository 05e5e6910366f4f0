"""The single things on this machine: interpreter, extras, kernel features, limits, programs."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mews.descriptors import allowed_descriptors
from mews.emulator.hostd import fuse_mount
from mews.emulator.nvml import library
from mews.harness.clusters.embedded.opening import descriptors_of
from mews.harness.clusters.kind import tools
from mews.harness.clusters.programs import finding
from mews.harness.doctor.finding import PartFinding
from mews.harness.errors import RequirementError
from mews.harness.extras import EXTRA_OF, check_installed, install, missing_of
from mews.harness.leftovers import runtime_folder
from mews.kube.emulated.kubelet.cgroups import lacking as groups_lacking
from mews.kube.emulated.kubelet.errors import EngineUnavailableError
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking, lacking, namespaces_lacking

_EXTRAS = {
    "cluster": ("wall-clock time and every cluster", ("embedded", "control-plane", "kind", "kubeconfig")),
    "containers": ("containers of real images", ()),
    "fixtures": ("generated hardware files", ()),
    "kubeconfig": ("kubeconfigs whose users have an auth-provider", ()),
    "fuse": ("a sysfs that acts on writes", ()),
    "plots": ("plots of experiments", ()),
    "train": ("the trainer in KOD2's pods", ()),
}
"""Extra -> what it is for, and the ways to run that need it; one without a row here fails a test."""

_SCHEDULER_USE = "--scheduler real"
_PROGRAMS = {
    "etcd": ("the real control plane", ("control-plane",), ("--version",)),
    "kube-apiserver": ("the real control plane", ("control-plane",), ("--version",)),
    "openssl": ("keys of the real control plane", ("control-plane",), ("version",)),
    finding.SCHEDULER: (_SCHEDULER_USE, (), ("--version",)),
    finding.CONTROLLERS: ("--controllers real", (), ("--version",)),
    "kubectl": ("your own look at a cluster", (), ("version", "--client", "-o", "json")),
}
"""Program -> what it is for, the ways that need it, and the arguments that print its version."""

_FREE_MIB = 200
"""A run with a real etcd and kube-apiserver was measured to hold 130 MiB."""
_VERSION_S = 10.0
_HOSTS = 4
"""Of a small testbed: what fewer open files do not carry is reported."""


def find_parts() -> Iterator[PartFinding]:
    """Look at everything, in the order in which it is shown. Blocking: starts programs for their versions."""
    yield PartFinding("python", "everything", platform.python_version(), needed_by=("virtual",))
    for extra in dict.fromkeys(EXTRA_OF.values()):
        yield _extra(extra)
    yield _kernel("namespaces", "pods with a root and volumes of their own", namespaces_lacking())
    yield _processes()
    yield _network()
    yield _limits()
    yield _fuse()
    yield _nvml()
    yield _descriptors()
    yield _disk()
    yield _engine()
    yield _tool("docker", "--cluster kind")
    yield _tool("kind", "--cluster kind")
    for program in _PROGRAMS:
        yield _program(program)


def _extra(extra: str) -> PartFinding:
    purpose, needed_by = _EXTRAS[extra]
    missing = missing_of(extra)
    found = "" if missing else "installed"
    return PartFinding(f"extra {extra}", purpose, found, f"run {install(extra)}", needed_by)


def _kernel(name: str, purpose: str, missing: str) -> PartFinding:
    how = f"{missing}; allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
    return PartFinding(name, purpose, "" if missing else "user, mount and host name", how)


def _processes() -> PartFinding:
    missing = {name: why for kind, name in (("pid", "process IDs"), ("ipc", "IPC objects")) if (why := lacking(kind))}
    how = f"pods share this machine's {' and '.join(missing)}: {next(iter(missing.values()), '')}"
    how += "; run Mews where nothing covers parts of /proc (docker run --security-opt systempaths=unconfined)"
    return PartFinding("pod processes", "pods with process IDs and IPC objects of their own",
                       "" if missing else "usable", how)  # fmt: skip


def _network() -> PartFinding:
    missing = filters_lacking()
    how = f"{missing}; needs Linux 5.9 or later, and seccomp filters that no other program listens to"
    found = "" if missing else "usable; ports of nodes (hostPort) from pods alone"
    return PartFinding("pod network", "pods with ports of their own, Services", found, how)


def _limits() -> PartFinding:
    missing = groups_lacking()
    how = f"{missing}: limits are only counted; run Mews as a systemd user service (systemd-run --user --scope mews …)"
    return PartFinding("pod limits", "CPU and memory limits of processes", "" if missing else "usable", how)


def _fuse() -> PartFinding:
    missing = fuse_mount.lacking()
    return PartFinding("FUSE", "a sysfs that acts on writes", "" if missing else "usable", missing or "")


def _nvml() -> PartFinding:
    name, purpose = "NVML library", "nvidia-smi and NVML clients on emulated hosts"
    if library.available():
        return PartFinding(name, purpose, "compiled, or a compiler is found")
    return PartFinding(name, purpose, "", "install gcc (apt install gcc), or run pip install ziglang")


def _descriptors() -> PartFinding:
    """Return up to the hard limit, which a run asks for by itself."""
    most, needed = allowed_descriptors(), descriptors_of(_HOSTS)
    found = "unlimited" if most is None else f"{most}"
    enough = most is None or most >= needed
    how = f"this process may open {found}, {_HOSTS} hosts need {needed}; run ulimit -n {needed}"
    return PartFinding("open files", f"{_HOSTS} hosts in wall-clock time", found if enough else "", how)


def _disk() -> PartFinding:
    folder = Path(runtime_folder() or tempfile.gettempdir())
    free = shutil.disk_usage(folder).free >> 20
    how = f"{folder} has {free} MiB free, a run needs {_FREE_MIB}; set XDG_RUNTIME_DIR or TMPDIR to another folder"
    found = f"{free / 1024:.1f} GiB free in {folder}" if free >= _FREE_MIB else ""
    return PartFinding("runtime folder", "wall-clock time", found, how)


def _engine() -> PartFinding:
    """Return the engine that runs containers of emulated nodes."""
    from mews.kube.emulated.kubelet.engine.client import check_engine

    name, purpose = "container engine", "containers of real images"
    try:
        check_installed("containers")
        check_engine()
    except (RequirementError, EngineUnavailableError) as error:
        return PartFinding(name, purpose, "", f"{error}; start Docker Engine on this machine")
    return PartFinding(name, purpose, "answers")


def _tool(name: str, purpose: str) -> PartFinding:
    try:
        tools.check(name)
    except RequirementError as error:
        return PartFinding(name, purpose, "", str(error).partition(": ")[2], ("kind",))
    return PartFinding(name, purpose, _version([name, "version" if name == "kind" else "--version"]), "", ("kind",))


def _program(name: str) -> PartFinding:
    purpose, needed_by, words = _PROGRAMS[name]
    path = finding.find(name)
    found = "" if path is None else f"{_version([path, *words])} in {Path(path).parent}"
    return PartFinding(name, purpose, found, finding.how_to_get(name), needed_by)


def _version(argv: list[str]) -> str:
    """Return the first line that a program prints of its version; what happened instead where it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_VERSION_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "version unknown"
    text = done.stdout.strip()
    if text.startswith("{"):
        return str(json.loads(text).get("clientVersion", {}).get("gitVersion", "version unknown"))
    return text.partition("\n")[0] or "version unknown"
