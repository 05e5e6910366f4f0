"""What one node's host shows of its devices: ``python -m mews.harness.clusters.real.host``, beside DisagGPU-DevMgr.

Follows the chassis over their back door and keeps, below a folder of the node's own, the host's files (sysfs, /proc)
and its NVML: library, nvidia-smi, state. ``ROOT/this`` is the NVML folder whichever host the node is, so that every
DevMgr can be told the same path to mount into containers; ``ROOT/fs/this`` likewise are its files.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec.structs import replace

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.hostd.chassis_control import ControlLostError
from mews.emulator.hostd.serve import FILES, HostServer
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml import library
from mews.emulator.nvml.compile import CompileError, CompilerMissingError
from mews.emulator.serve import ENDINGS, endings_held_back
from mews.harness.clusters.real.agent import TOKEN
from mews.own_files import write_own

THIS = "this"
_ANYWHERE = "0.0.0.0"
_PATIENCE_S, _AGAIN_S = 60.0, 0.5
_LINKS = ("libnvidia-ml.so.1", "libnvidia-ml.so", "nvidia-smi")


def serve(
    hardware: Hardware,
    host: str,
    *,
    chassis: str,
    root: Path,
    speed: float,
    seed: str,
    tidy: bool,
    port: int,
    allow_hosts: Sequence[str],
) -> None:
    """Serve that host until SIGTERM or SIGINT; ``chassis`` is the URL of the chassis' control API. ``tidy``: leave the
    folder empty. Its own back door is at ``port``, by the names ``allow_hosts`` or any address.

    Raises ControlLostError where that does not answer.
    """
    alone = replace(hardware, hosts=tuple(spec for spec in hardware.hosts if spec.name == host))
    with tempfile.TemporaryDirectory(dir="/run/mews") as folder:
        ready = Path(folder) / "chassis.json"
        write_own(ready, json.dumps({"control": {"url": chassis, "token": os.environ.get(TOKEN, "")}}))
        await_chassis(chassis)
        server = HostServer(
            alone,
            chassis=ready,
            root=root,
            fuse="no",
            context=EmulationContext(seed, speed),
            token=os.environ.get(TOKEN) or None,
            control=(_ANYWHERE, port),
            allow_hosts=allow_hosts,
        )
        bring(root / host)
        point(root / THIS, host)
        point(root / FILES / THIS, host)
        server.start()
        try:
            signal.sigwait(ENDINGS)
        finally:
            server.stop()
            if tidy:
                clear(root)


def clear(folder: Path) -> None:
    """Remove all that is in it."""
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def await_chassis(url: str) -> None:
    """Return once something listens there, or after a minute: both start at the same time."""
    where, pause = urlsplit(url), threading.Event()
    for _ in range(int(_PATIENCE_S / _AGAIN_S)):
        with contextlib.suppress(OSError):
            socket.create_connection((where.hostname or "", where.port or 80), timeout=_AGAIN_S).close()
            return
        pause.wait(_AGAIN_S)


def bring(folder: Path) -> None:
    """Library and program as files of the folder's own: it is mounted where links lead nowhere. Nothing where this
    image has none."""
    for name in _LINKS:
        (folder / name).unlink(missing_ok=True)
    try:
        library.install_copies(folder)
    except (CompilerMissingError, CompileError):
        return
    (folder / "libnvidia-ml.so").symlink_to("libnvidia-ml.so.1")


def point(link: Path, target: str) -> None:
    """Let the link name the target, whatever it named before."""
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


@endings_held_back()
def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command line; 3 where the chassis do not answer (the kubelet tries again)."""
    parser = argparse.ArgumentParser(prog="mews.harness.clusters.real.host", description="Show a host's devices.")
    parser.add_argument("--hardware", required=True, metavar="FILE")
    parser.add_argument(
        "--hosts", required=True, type=json.loads, metavar="JSON", help="map nodes to hosts by this JSON object"
    )
    parser.add_argument("--node", default=os.environ.get("NODE_NAME", ""))
    parser.add_argument(
        "--chassis", required=True, metavar="URL", help="use the control API of the chassis at this URL"
    )
    parser.add_argument("--root", required=True, type=Path, metavar="DIR")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--port", type=int, default=0, help="serve the control API on this port")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="accept this host name, too")
    parser.add_argument("--tidy", action="store_true", help="empty the folder on exit")
    chosen = parser.parse_args(arguments)
    host = chosen.hosts.get(chosen.node)
    if host is None:
        sys.stderr.write(f"--node {chosen.node}: must be one of {', '.join(chosen.hosts)}\n")
        return 2
    try:
        serve(
            load_hardware(chosen.hardware),
            host,
            chassis=chosen.chassis,
            root=chosen.root,
            speed=chosen.speed,
            seed=chosen.seed,
            tidy=chosen.tidy,
            port=chosen.port,
            allow_hosts=chosen.allow_host,
        )
    except (OSError, ControlLostError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
