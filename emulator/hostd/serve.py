"""Serves the hosts of a hardware file: ``python -m mews.emulator.hostd.serve --hardware F --chassis F --root DIR``.

``DIR/fs/<host>`` holds its files (``sys``, ``proc``, ``dev``, ``var``), ``DIR/<host>`` its NVML: library, nvidia-smi,
state; ``DIR/<host>/root`` is its driver root, as NVIDIA's container tools want one.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mews.callers import callers
from mews.certificates import Certificates
from mews.emulator.chassis.errors import HardwareError
from mews.emulator.clock import EmulatedClock
from mews.emulator.control_tls import add_control_tls_arguments, control_certificates, control_identity
from mews.emulator.dialects.app_control import control_app
from mews.emulator.dialects.strangers import gate
from mews.emulator.hardware.emulation_context import BY_DEFAULT, EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host.tree import HostTree
from mews.emulator.hostd.chassis_control import ChassisControl, ControlLostError
from mews.emulator.hostd.control import HostControl
from mews.emulator.hostd.driver_root import DriverRoot
from mews.emulator.hostd.follower import ChassisFollower
from mews.emulator.hostd.fuse_mount import FuseMount, lacking
from mews.emulator.hostd.mirror import Mirror
from mews.emulator.hostd.mounts import unmount
from mews.emulator.hostd.nvml_files import NvmlFolder
from mews.emulator.hostd.rack import HostRack
from mews.emulator.hostd.telemetry import TelemetryFollower
from mews.emulator.http_server import HttpServer, stop_all
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml import library
from mews.emulator.nvml.compile import CompileError, CompilerMissingError
from mews.emulator.nvml.state import state_beside
from mews.emulator.ready_file import write_ready
from mews.emulator.serve import (
    BAD_INPUT,
    ENDINGS,
    ENVIRONMENT,
    LOOPBACK,
    endings_held_back,
)
from mews.emulator.waking import watch_lifeline

FILES = "fs"
"""Folder of the hosts' files below the root."""
_LOOK_S = 0.01


class HostServer:
    """The hosts of a hardware file with all their files; ``fuse``: auto, yes or no. ``control`` is where its back door
    listens: beyond loopback it is open to other machines, too, for who has the token.

    Raises OSError where something cannot be had, ControlLostError where the chassis do not answer.
    """

    def __init__(
        self,
        hardware: Hardware,
        *,
        chassis: Path,
        root: Path,
        fuse: str = "auto",
        context: EmulationContext = BY_DEFAULT,
        token: str | None = None,
        control_tls: Certificates | None = None,
        control: tuple[str, int] = (LOOPBACK, 0),
        allow_hosts: Sequence[str] = (),
    ) -> None:
        self._control_tls = control_tls
        self.token = secrets.token_urlsafe(24) if token is None else token
        self.rack = HostRack(hardware, clock=EmulatedClock(context.speed), context=context)
        self._root = root.resolve()
        self.without_fuse = lacking() if fuse != "no" else "switched off"
        if fuse == "yes" and self.without_fuse is not None:
            raise OSError(f"FUSE: {self.without_fuse}")
        self.without_library: str | None = None
        chassis_control = ChassisControl(chassis)
        self._follower = ChassisFollower(chassis_control, self.rack)
        self._telemetry = TelemetryFollower(chassis_control, self.rack, incarnation=secrets.token_hex(4))
        self._drivers: dict[str, DriverRoot] = {}
        self._nvml = {name: self._nvml_folder(name) for name in self.rack.names()}
        files = self._root / FILES
        self._mount = FuseMount(self.rack, files) if self.without_fuse is None else None
        unmount(files)
        self._mirror = Mirror(self.rack, files) if self._mount is None else None
        address, port = control
        admit = gate(callers(address, allow_hosts))
        door = HostControl(self.rack, self.token, remote=address != LOOPBACK)
        face = control_app(door, self.rack.feed, admit)
        self._server = HttpServer(face, address, port, tls=control_identity(control_tls))

    def _nvml_folder(self, host: str) -> NvmlFolder:
        dev_root = str(self._root / FILES / host / "dev")
        folder = NvmlFolder(self._root / host, self.rack, host, dev_root=dev_root)
        try:
            library.install(folder.folder)
            state, files = state_beside(folder.folder), self._root / FILES / host
            self._drivers[host] = DriverRoot(folder.folder / "root", state, files, self.rack.host(host).spec.driver)
        except (CompilerMissingError, CompileError, OSError) as error:
            self.without_library = " ".join(str(error).split())
        return folder

    def start(self) -> None:
        """Boot the hosts with the chassis' table, serve their files, follow the chassis."""
        self.rack.start(self._follower.begin())
        if self._mirror is not None:
            self.rack.publish(self._mirror.write)
            self._mirror.start()
        self.rack.publish(self._write_state)
        self.rack.publish(self._telemetry.note)
        self.rack.on_telemetry(self._write_state)
        if self._mount is not None:
            self._mount.start()
        for folder in self._nvml.values():
            folder.start()
        self._follower.start()
        self._telemetry.start()
        self._server.start()

    def _write_state(self, name: str, tree: HostTree) -> None:
        if name in self._drivers:
            self._drivers[name].write(tree)
        self._nvml[name].write(tree, self._telemetry.known)

    def stop(self) -> None:
        """End everything."""
        self._follower.stop()
        self._telemetry.stop()
        self.rack.stop()
        if self._mount is not None:
            self._mount.stop()
        if self._mirror is not None:
            self._mirror.stop()
        stop_all((*self._nvml.values(), self._server))

    def ready(self) -> dict[str, Any]:
        """``{"control": {"url", "token"}, "ca", "fuse", "without_fuse", "without_library", "hosts": {name: {"root",
        "nvml", "driver_root"}}, "pid"}``; ``ca`` as that of the chassis, ``driver_root`` None without the library."""
        scheme = "http" if self._control_tls is None else "https"
        return {
            "control": {"url": f"{scheme}://{LOOPBACK}:{self._server.port}", "token": self.token},
            "ca": None if self._control_tls is None else str(self._control_tls.authority),
            "fuse": self._mount is not None,
            "without_fuse": self.without_fuse,
            "without_library": self.without_library,
            "hosts": {
                name: {
                    "root": str(self._root / FILES / name),
                    "nvml": str(folder.folder),
                    "driver_root": str(self._drivers[name].root) if name in self._drivers else None,
                }
                for name, folder in self._nvml.items()
            },
            "pid": os.getpid(),
        }


@endings_held_back()
def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command line; returns the exit code (0, 2 bad input, 3 the environment lacks something)."""
    parser = argparse.ArgumentParser(prog="mews.emulator.hostd.serve", description="Serve emulated hosts.")
    parser.add_argument("--hardware", required=True, metavar="FILE")
    parser.add_argument("--chassis", required=True, type=Path, metavar="FILE", help="read the chassis' ready file")
    parser.add_argument(
        "--await-chassis", type=float, default=0.0, metavar="SECONDS", help="wait this long for that file"
    )
    parser.add_argument("--root", required=True, type=Path, metavar="DIR")
    parser.add_argument("--ready", type=Path, metavar="FILE")
    parser.add_argument("--fuse", choices=("auto", "yes", "no"), default="auto")
    parser.add_argument("--lifeline", action="store_true", help="exit when standard input closes")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--seed", default="0")
    add_control_tls_arguments(parser)
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="accept this host name, too")
    chosen = parser.parse_args(arguments)
    if chosen.lifeline:
        threading.Thread(target=watch_lifeline, daemon=True).start()
    try:
        server = HostServer(
            load_hardware(chosen.hardware),
            chassis=chosen.chassis,
            root=chosen.root,
            fuse=chosen.fuse,
            context=EmulationContext(chosen.seed, chosen.speed),
            control_tls=control_certificates(chosen),
            allow_hosts=chosen.allow_host,
        )
        if not appears(chosen.chassis, chosen.await_chassis):
            return 0
        server.start()
    except (HardwareError, ValueError) as error:
        return _failed(error, BAD_INPUT)
    except (OSError, ControlLostError) as error:
        return _failed(error, ENVIRONMENT)
    try:
        if chosen.ready is not None:
            write_ready(chosen.ready, server.ready())
        signal.sigwait(ENDINGS)
    except OSError as error:
        return _failed(error, ENVIRONMENT)
    finally:
        server.stop()
        if chosen.ready is not None:
            chosen.ready.unlink(missing_ok=True)
    return 0


def appears(file: Path, patience_s: float) -> bool:
    """Wait for a file for as long as that; False when this process is told to end meanwhile."""
    clock = EmulatedClock()
    for _ in range(int(patience_s / _LOOK_S)):
        if file.exists():
            break
        if signal.sigpending() & set(ENDINGS):
            return False
        clock.pause(_LOOK_S)
    return True


def _failed(error: Exception, code: int) -> int:
    sys.stderr.write(f"{' '.join(str(error).split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
