"""A cluster in one process whose time stands still, shown by the servers that other clusters are reached by.

It is a copy of the run, in a process of its own: whatever its servers do to it, the run goes on as if nobody had
looked. They answer reads only, since a change would be lost with the copy.
"""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
from copy import copy
from pathlib import Path
from typing import Any

from mews.certificates import make_certificates
from mews.emulator.clock import StoppedClock
from mews.emulator.hostd.standing import StandingHosts
from mews.emulator.rack import Rack
from mews.emulator.serve import ChassisServer
from mews.harness.clock import EPOCH_S
from mews.harness.clusters.ports import WorldInProcess
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.kube.clock import Pace, wall_now
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH
from mews.own_files import write_own


class StoppedPace(Pace):
    """Emulated time that stands."""

    def __init__(self, at_s: float) -> None:
        super().__init__()
        self._at_s = at_s

    def now(self) -> float:
        """Return the same second for ever."""
        return self._at_s


class HaltedWorld:
    """Serves one ``world`` that stands at ``now_s`` of its loop. Its sockets and files lie in ``scratch``; ``folder``
    gets the kubeconfig and the file of whom to trust. ``why`` is the reply to every change.

    Only for a process that makes nothing else of that world: its clocks are stopped for good.
    """

    def __init__(self, world: WorldInProcess, *, scratch: Path, folder: Path, now_s: float, why: str) -> None:
        self._world = world
        self._scratch, self._folder, self._why = scratch, folder, why
        self._token = secrets.token_hex(16)
        world.fleet.pace = world.hosts.pace = StoppedPace(now_s)
        world.store.now = lambda: EPOCH_S + now_s
        alive = copy(world.fleet.fleet)
        alive.boxes = {name: box for name, box in alive.boxes.items() if world.fleet.alive(name)}
        for box in alive.boxes.values():
            box.operations.read_at_once()
        self._now_s = now_s
        self._hardware = world.fleet.hardware
        self._rack = Rack(self._hardware, clock=StoppedClock(now_s), fleet=alive)
        self._api: ApiServer | None = None
        self._chassis: ChassisServer | None = None
        self._hosts: StandingHosts | None = None

    async def start(self) -> None:
        """Listen.

        Raises OSError where something cannot be had.
        """
        tls = self._scratch / "tls"
        tls.mkdir(mode=0o700)
        certificates = await asyncio.to_thread(make_certificates, tls, wall_now())
        authority = certificates.authority.read_text(encoding="ascii")
        write_own(self._folder / "ca.crt", authority)
        self._api = ApiServer(
            self._world.store,
            kubelets=self._world.kubelets,
            tokens={self._token: "admin"},
            ssl_context=certificates.server_context(),
            reads_only=self._why,
        )
        await self._api.start()
        trusted = base64.b64encode(authority.encode()).decode()
        server = {"server": self._api.url, "certificate-authority-data": trusted}
        write_kubeconfig(self._folder / "kubeconfig", server=server, user={"token": self._token})
        self._chassis = ChassisServer(self._hardware, rack=self._rack, control_tls=certificates, reads_only=self._why)
        self._chassis.start()
        telemetry = self._world.fleet.fleet.telemetry.values()
        self._hosts = StandingHosts(
            self._hardware,
            self._world.hosts.hosts,
            self._scratch / "hosts",
            now_s=self._now_s,
            records={uuid: record for each in telemetry for uuid, record in each.records(self._now_s).items()},
            reads_only=self._why,
        )
        await asyncio.to_thread(self._hosts.start)

    def ready(self) -> dict[str, Any]:
        """Return where everything is, as ``mews up`` writes it."""
        assert self._api is not None and self._chassis is not None and self._hosts is not None, "it serves"
        chassis = self._chassis.ready()
        return {
            "api": self._api.url,
            "kubeconfig": str(self._folder / "kubeconfig"),
            "ca": str(self._folder / "ca.crt"),
            **{name: chassis[name] for name in ("chassis", "control", "accounts")},
            "nodes": {name: self._node(files) for name, files in self._hosts.ready().items()},
        }

    def _node(self, files: dict[str, Any]) -> dict[str, Any]:
        env = {"MEWS_HOST_ROOT": files["root"]}
        if files["driver_root"] is not None:
            nvml = files["nvml"]
            env |= {"LD_LIBRARY_PATH": nvml, "PATH": f"{nvml}:{os.environ.get('PATH', SEARCH_PATH)}"}
        sysfs = f"{files['root']}/sys"
        return {"sysfs": sysfs, "root": files["root"], "driver_root": files["driver_root"], "env": env}

    async def stop(self) -> None:
        """Listen no more."""
        if self._api is not None:
            await self._api.stop()
        for server in (self._chassis, self._hosts):
            if server is not None:
                await asyncio.to_thread(server.stop)
