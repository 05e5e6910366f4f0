"""A host's NVML on disk: the state file beside the library, and the socket on which clients ask for changes."""

from __future__ import annotations

import itertools
import os
import socket
import socketserver
import struct
import threading
from functools import partial
from pathlib import Path

from mews.emulator.host.errors import (
    BadWriteError,
    DeviceInUseError,
    DeviceLostError,
    HostRefusalError,
    NoRoomLeftError,
    NoSuchDeviceError,
    NotSupportedError,
)
from mews.emulator.host.holders import Holder
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.host.tree import HostTree
from mews.emulator.hostd.rack import HostRack
from mews.emulator.hostd.telemetry import KnownTelemetry
from mews.emulator.nvml.requests import (
    LINE_LIMIT,
    ChangeMig,
    Discover,
    Drain,
    Hold,
    NvmlReply,
    Persistence,
    ProtocolError,
    Release,
    Remove,
    Request,
    ResetGpu,
    Return,
    SetGpu,
    decode_request,
    encode_reply,
    socket_path,
)
from mews.emulator.nvml.state import state_beside, write_state
from mews.emulator.waking import wake_while
from mews.listening.local import LocalThreads

_CODES: dict[type[HostRefusalError], Return] = {
    DeviceInUseError: Return.IN_USE,
    DeviceLostError: Return.GPU_IS_LOST,
    NoSuchDeviceError: Return.NOT_FOUND,
    NotSupportedError: Return.NOT_SUPPORTED,
    NoRoomLeftError: Return.INSUFFICIENT_RESOURCES,
    BadWriteError: Return.INVALID_ARGUMENT,
}


class NvmlFolder:
    """One host's folder: library, program, state, socket. ``reads_only``: why nothing can be asked for."""

    def __init__(self, folder: Path, rack: HostRack, host: str, *, dev_root: str, reads_only: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._state = state_beside(folder)
        self._dev_root = dev_root
        self._path = socket_path(self._state)
        self._path.unlink(missing_ok=True)
        self._server = _Server(self._path, _Handler)
        self._server.rack, self._server.host, self._server.reads_only = rack, host, reads_only
        self._thread = threading.Thread(target=self._server.serve_forever, name=f"nvml {host}", daemon=True)

    def write(self, tree: HostTree, known: KnownTelemetry) -> None:
        """Replace the state file."""
        shown = nvml_host(
            tree.host, dev_root=self._dev_root, records=known.records, now_s=known.now_s, clock=known.clock
        )
        write_state(self._state, shown)

    def start(self) -> None:
        """Answer requests, on threads of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Close the socket."""
        wake_while(self._server.shutdown, socket.AF_UNIX, str(self._path))
        self._server.server_close()
        self._path.unlink(missing_ok=True)


class _Server(LocalThreads):
    rack: HostRack
    host: str
    reads_only: str
    numbers = itertools.count(1)


class _Handler(socketserver.StreamRequestHandler):
    """One connection: one client process. What it holds ends with the connection."""

    server: _Server

    def handle(self) -> None:
        key = f"nvml/{next(self.server.numbers)}"
        pid = _peer(self.connection)
        session = _Session(self.server.rack, self.server.host, key, pid)
        refusal = NvmlReply(Return.NO_PERMISSION, self.server.reads_only) if self.server.reads_only else None
        try:
            while line := self.rfile.readline(LINE_LIMIT):
                self.wfile.write(encode_reply(refusal or session.answer(line)))
        except OSError:
            return
        finally:
            if refusal is None:
                session.release()


class _Session:
    def __init__(self, rack: HostRack, host: str, key: str, pid: int) -> None:
        self._rack, self._host, self._key, self._pid = rack, host, key, pid
        self._made = ""
        """What the text of an answer says."""

    def answer(self, line: bytes) -> NvmlReply:
        try:
            return self._answer(decode_request(line))
        except ProtocolError as error:
            return NvmlReply(Return.INVALID_ARGUMENT, str(error))
        except HostRefusalError as refusal:
            return NvmlReply(_CODES.get(type(refusal), Return.UNKNOWN), str(refusal))

    def _answer(self, request: Request) -> NvmlReply:
        rack, host, self._made = self._rack, self._host, ""
        with rack.acting() as now_s:
            calls, pending = rack.tree(host).nvml_calls, None
            match request:
                case Hold():
                    self._hold(request, now_s)
                case Release():
                    rack.host(host).release(self._key, now_s)
                case Drain() | Remove() | ResetGpu() | Persistence() | SetGpu() | ChangeMig():
                    call = partial(self._call, request)
                    removal = isinstance(request, Remove | ResetGpu)
                    pending = calls.called("call of NVML", call, now_s, removal=removal)
                case Discover():
                    pending = calls.discover(now_s, request.bus_id)
        if pending is not None:
            rack.wait(pending)
        return NvmlReply(Return.SUCCESS, self._made)

    def _call(self, request: Drain | Remove | ResetGpu | Persistence | SetGpu | ChangeMig) -> None:
        """The call itself; whoever lets it happen has the rack."""
        host, calls = self._rack.host(self._host), self._rack.tree(self._host).nvml_calls
        match request:
            case Drain():
                calls.drain(request.bus_id, request.draining, host.now_s)
            case Persistence():
                calls.persistence(request.bus_id, request.enabled, host.now_s)
            case SetGpu():
                calls.set_gpu(request.bus_id, request.name, request.numbers, host.now_s)
            case ChangeMig():
                made = calls.mig(request.bus_id, request.act, request.numbers, host.now_s, asker=self._own_holds())
                self._made = str(made)
            case ResetGpu():
                calls.reset_gpu(request.bus_id, host.now_s, asker=self._own_holds())
            case Remove():
                calls.remove_gpu(
                    request.bus_id,
                    host.now_s,
                    detach=request.detach,
                    shut_link=request.shut_link,
                    asker=self._own_holds(),
                )

    def _own_holds(self) -> list[str]:
        holders = self._rack.host(self._host).holders
        return [each.key for each in holders if each.key == self._key or each.pid == self._pid]

    def _hold(self, request: Hold, now_s: float) -> None:
        host = self._rack.host(self._host)
        uuids = tuple(f.device.uuid for f in host.bus.functions() if f.bdf in request.bus_ids)
        pid = self._pid or request.pid
        host.hold(Holder(self._key, uuids, pid=pid, name=program_name(pid)), now_s)

    def release(self) -> None:
        with self._rack.acting() as now_s:
            self._rack.host(self._host).release(self._key, now_s)


def _peer(connection: socket.socket) -> int:
    """Return the client's process, as this machine numbers it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid


def program_name(pid: int) -> str:
    """Return the file that a process of this machine runs; its number where that cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return f"process {pid}"
