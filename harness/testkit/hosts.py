"""Hosts with their files beside chassis, without Kubernetes: for what reads sysfs, /proc or NVML."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from mews.emulator.hostd.mounts import unmount
from mews.harness.catalogue.files import file_of
from mews.harness.testkit.backdoor import BackDoor
from mews.harness.testkit.chassis import Chassis, serve_chassis
from mews.harness.testkit.keeping import keep_texts
from mews.harness.testkit.process import Child, start, started
from mews.harness.testkit.settings import Settings


class HostFiles(Struct, frozen=True):
    """What one host shows. ``root`` has its ``sys``, ``proc`` and ``dev``; ``nvml`` is the folder of libnvidia-ml.so.1
    and nvidia-smi, None where they cannot be compiled; ``env`` is what a process needs to see the host's GPUs."""

    name: str
    root: Path
    nvml: Path | None
    env: Mapping[str, str]


class RunningHosts(Mapping[str, HostFiles]):
    """Running hosts by their names; ``chassis`` are the chassis that they are cabled to. Every method may raise
    ValueError with their answer."""

    def __init__(self, ready: Mapping[str, Any], chassis: Chassis, child: Child | None = None) -> None:
        self.chassis = chassis
        self._door = BackDoor(ready["control"], ready.get("ca"))
        self._child = child
        library = ready.get("without_library") is None
        self._hosts = {name: _files(name, each, library) for name, each in ready["hosts"].items()}

    def __getitem__(self, host: str) -> HostFiles:
        return self._hosts[host]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    def view(self) -> dict[str, Any]:
        """Host -> what it sees: ``{"devices": {gpuid: …}, "holders": […], "log": […], …}``."""
        return self._door.ask("GET", "/v1/hosts")  # type: ignore[no-any-return]

    def fault(self, host: str, kind: str, **spec: Any) -> str:
        """Add a fault to a host, for example ``fault("host-1", "xid", device="000100", xid=79)``; its id."""
        __tracebackhide__ = True
        return str(self._door.ask("POST", "/v1/faults", {"host": host, "spec": {"kind": kind, **spec}})["fault"])

    def clear(self, host: str | None = None) -> None:
        """Undo the faults of one host, or of all."""
        __tracebackhide__ = True
        self._door.ask("DELETE", "/v1/faults" + ("" if host is None else "?" + urlencode({"host": host})))

    def operate(self, host: str, do: str, *, wait_s: float = 0.0, **action: Any) -> str:
        """Return what an operator does there, for example ``operate("host-1", "rescan")``: ``done``, a refusal's code,
        or ``waiting`` where it still blocks after that many emulated seconds."""
        __tracebackhide__ = True
        body = {"host": host, "action": {"do": do, **action}, "wait_s": wait_s}
        return str(self._door.ask("POST", "/v1/operate", body)["result"])

    def reset(self) -> None:
        """No faults, and the chassis as at the start."""
        self.clear()
        self.chassis.reset()

    def keep(self, folder: Path) -> None:
        """Write what there is: what the hosts see, their log, and what the chassis keep.

        Raises OSError, ValueError.
        """
        self.chassis.keep(folder)
        log = "" if self._child is None else self._child.log()
        keep_texts(folder, {"hosts.json": json.dumps(self.view(), indent=1) + "\n", "hosts.log": log})


def _files(name: str, ready: Mapping[str, Any], library: bool) -> HostFiles:
    root = Path(ready["root"])
    env = {"MEWS_HOST_ROOT": str(root)}
    nvml = Path(ready["nvml"]) if library else None
    if nvml is not None:
        env |= {"LD_LIBRARY_PATH": str(nvml), "PATH": f"{nvml}:{os.environ.get('PATH', '/usr/bin:/bin')}"}
    return HostFiles(name, root, nvml, env)


@contextlib.contextmanager
def serve_hosts(settings: Settings) -> Iterator[RunningHosts]:
    """Start chassis and hosts, each as a process, and wait until they are ready.

    Raises RuntimeError with what they said when they do not come up.
    """
    __tracebackhide__ = True
    with tempfile.TemporaryDirectory(prefix="mews-hosts-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        child, chassis = serve_chassis(settings, folder)
        try:
            ready, root = folder / "hosts.json", folder / "h"
            file = file_of("hardware", Path(settings.hardware or "demo"))
            words = ["--hardware", str(file), "--chassis", str(folder / "chassis.json"), "--root", str(root)]
            words += ["--speed", f"{settings.speed or 1.0:g}", "--ready", str(ready)]
            served = start([sys.executable, "-m", "mews.emulator.hostd.serve", *words])
            try:
                yield RunningHosts(started(served, ready), chassis, served)
            finally:
                served.end()
                unmount(root / "fs")
        finally:
            child.end()
