"""Serves all chassis of a hardware file over HTTP: ``python -m mews.emulator.serve --hardware FILE``.

Each chassis has a port of its own that speaks its dialects in plain HTTP, as the boxes do, and another on which those
that ask for a login speak TLS; the back door ``control`` has a port, too, on loopback.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mews.callers import callers
from mews.certificates import Certificates
from mews.dialects import OURS
from mews.emulator.chassis.errors import EmulatorError, HardwareError
from mews.emulator.chassis_store import StateFile
from mews.emulator.clock import EmulatedClock, unix_s
from mews.emulator.control_tls import add_control_tls_arguments, control_certificates, control_identity
from mews.emulator.dialects.app import Answer, route, wire_app
from mews.emulator.dialects.app_control import control_app
from mews.emulator.dialects.control import Control
from mews.emulator.dialects.redfish.service_state import service_uuid
from mews.emulator.dialects.redfish.settings import ADMIN, RedfishSettings
from mews.emulator.dialects.registry import face, face_of
from mews.emulator.dialects.strangers import gate
from mews.emulator.dialects.wire import Dropped, Request, Response
from mews.emulator.hardware.emulation_context import BY_DEFAULT, EmulationContext
from mews.emulator.hardware.inventory import ChassisSpec, Hardware
from mews.emulator.http_quick import quick_answer
from mews.emulator.http_server import HttpServer, stop_all
from mews.emulator.inventory_file import load_hardware
from mews.emulator.rack import Rack
from mews.emulator.ready_file import write_ready
from mews.emulator.ssdp import Discoverable, SsdpResponder
from mews.emulator.tls import Identity, add_tls_arguments, identity, made_for_a_while, trust_of
from mews.emulator.waking import watch_lifeline
from mews.emulator.wrongs.front import WrongServer
from mews.emulator.wrongs.registry import played
from mews.emulator.wrongs.wrong import Wrong

LOOPBACK = "127.0.0.1"
CONTROL = "/control"
"""Key of the back door among the servers; no chassis can be named so."""
ENDINGS = (signal.SIGTERM, signal.SIGINT)
INSECURE = "--insecure: Redfish and control speak plain HTTP; whoever can listen to the wire reads passwords and tokens"
BAD_INPUT = 2
ENVIRONMENT = 3


class ChassisServer:
    """All chassis of a hardware file, and ``control``; for use within a process too (``start``, ``stop``).

    Dialects with a login have a port of their own for each chassis, under TLS by ``tls``, or by a certificate that is
    made where none is given; ``insecure`` leaves them in plain HTTP on the port of the others. ``port`` is the first
    port, ``further`` are the next ones; where they end, free ones are taken. ``wrongs``: deviations that stand in front
    of each chassis, with dice by ``context``; ``rack``: one that is there; ``reads_only``: why it is only shown.
    ``speed`` is an old name for that of ``context``.

    Raises ValueError for an unknown dialect, OSError for a port that cannot be had, EmulatorError for a state file
    that cannot be used.
    """

    def __init__(
        self,
        hardware: Hardware,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        dialects: Sequence[str] = tuple(OURS),
        state: str | Path | None = None,
        context: EmulationContext = BY_DEFAULT,
        speed: float | None = None,
        token: str | None = None,
        password: str | None = None,
        tls: Identity | None = None,
        insecure: bool = False,
        control: tuple[str, int] = (LOOPBACK, 0),
        control_tls: Certificates | None = None,
        consecutive: bool = False,
        further: Sequence[int] = (),
        allow_hosts: Sequence[str] = (),
        ssdp: bool = False,
        wrongs: Sequence[Wrong] = (),
        tenant: str = "",
        rack: Rack | None = None,
        reads_only: str = "",
    ) -> None:
        if speed is not None:
            warnings.warn(
                "ChassisServer: speed is now context=EmulationContext(speed=…)", DeprecationWarning, stacklevel=2
            )
            context = EmulationContext(context.seed, speed)
        self._tenant, self._reads_only = tenant, reads_only
        self._wrongs, self._context = tuple(wrongs), context
        self._host, self._control_tls = host, control_tls
        self._dialects = {name: face_of(name) for name in dialects}
        secret = [] if insecure else [name for name, dialect in self._dialects.items() if dialect.login]
        self._secret = frozenset(secret)
        self._tls = (tls or control_identity(control_tls) or made_for_a_while()) if secret else None
        self._trusted = trust_of(identity for identity in (control_identity(control_tls), self._tls) if identity)
        self._allow_hosts = tuple(allow_hosts)
        self._hosts = {each.name: each for each in hardware.hosts}
        self.password = secrets.token_urlsafe(12) if password is None else password
        self._control, self._consecutive, self._further = control, consecutive, list(further)
        self.token = secrets.token_urlsafe(24) if token is None else token
        self._discovery: dict[str, Discoverable] = {}
        self._responder: SsdpResponder | None = None
        clock = self._clock = EmulatedClock(context.speed) if rack is None else rack.clock
        self._servers: dict[str, HttpServer | WrongServer] = {}
        self._secure: dict[str, HttpServer | WrongServer] = {}
        self._state = None if state is None else StateFile(state)
        try:
            kept, names = self._state, [spec.name for spec in hardware.chassis]
            self.rack = rack or Rack(
                hardware,
                clock=clock,
                context=context,
                stores={name: kept.table(name) for name in names} if kept else None,
                telemetry_stores={name: kept.telemetry(name, context.speed) for name in names} if kept else None,
            )
            if ssdp and "redfish" in self._dialects:
                self._discovery = {spec.name: self._discoverable(spec) for spec in hardware.chassis}
                self._responder = SsdpResponder(tuple(self._discovery.values()))
            self._listen(port)
        except (OSError, EmulatorError):
            self._close()
            raise

    def _discoverable(self, spec: ChassisSpec) -> Discoverable:
        return Discoverable(service_uuid(spec), lambda: f"{self._urls(spec.name)['redfish']}/redfish/v1/")

    def _listen(self, port: int) -> None:
        admit = gate(callers(self._host, self._allow_hosts), self._reads_only)
        for servers, tls, names in (
            (self._servers, None, [name for name in self._dialects if name not in self._secret]),
            (self._secure, self._tls, [name for name in self._dialects if name in self._secret]),
        ):
            for chassis in self.rack.names() if names else ():
                whole, quick_only = self._answers(chassis, names)
                if self._wrongs:
                    ask = played(self._wrongs, whole, seed=f"{self._context.seed}/{chassis}", wait=self._wait)
                    servers[chassis] = WrongServer(ask, self._host, port, tls=tls, admit=admit)
                else:
                    app, quick = wire_app(whole, admit), quick_answer(quick_only, admit)
                    servers[chassis] = HttpServer(app, self._host, port, tls=tls, quick=quick)
                port = port + 1 if self._consecutive else self._further.pop(0) if self._further else 0
        host, port = self._control
        control = Control(self.rack, self.token, remote=host != LOOPBACK)
        admit = gate(callers(host, self._allow_hosts), self._reads_only)
        identity = control_identity(self._control_tls)
        self._servers[CONTROL] = HttpServer(control_app(control, self.rack.feed, admit), host, port, tls=identity)

    def _wait(self, seconds: float) -> None:
        """Let emulated time pass."""
        due_s = self._clock.now() + seconds
        self._clock.wait_until(lambda: due_s)

    def _answers(self, chassis: str, names: Sequence[str]) -> tuple[Answer, Answer]:
        """Return the answer to requests read the long way and to those read the short way, whose streams the long way
        answers again."""
        faces: dict[str, Answer] = {}
        settings = RedfishSettings(
            self.password,
            lambda: secrets.token_hex(16),
            epoch_s=unix_s(),
            certificate=self._tls.certificate_text() if self._tls else None,
            install=(lambda text: self._secure[chassis].install(text)) if self._tls else None,
            address=self._host,
            discovery=self._discovery.get(chassis),
            hosts=self._hosts,
            port=lambda: (self._secure if self._secret else self._servers)[chassis].port,
            plain_logins=not self._secret,
            wall_s=unix_s,
            tenant=self._tenant,
        )
        for name in names:
            dialect = self.rack.speak(chassis, partial(face, name, settings=settings))

            def answer(request: Request, dialect: Any = dialect) -> Response | Dropped:
                return self.rack.answer(chassis, dialect, request)

            faces[name] = answer
        prefixes = {name: self._dialects[name].prefix for name in names}

        def logged(*, streams: bool) -> Answer:
            log = self.rack.requests
            return route({name: log.around(chassis, name, faces[name], streams=streams) for name in names}, prefixes)

        return logged(streams=True), logged(streams=False)

    def start(self) -> None:
        """Serve, on threads of its own."""
        self.rack.start()
        if self._responder is not None:
            self._responder.start()
        for server in (*self._servers.values(), *self._secure.values()):
            server.start()

    def stop(self) -> None:
        """End everything."""
        self.rack.stop()
        self._close()

    def _close(self) -> None:
        if self._responder is not None:
            self._responder.stop()
        stop_all((*self._servers.values(), *self._secure.values()))
        if self._state is not None:
            self._state.close()

    def ready(self) -> dict[str, Any]:
        """``{"chassis": {name: {dialect: url}}, "control": {"url", "token"}, "ca", "accounts", "pid"}``.

        ``ca`` is the file by which to trust the URLs with https, null where there are none or the machine's authorities
        vouch for them; ``accounts`` is ``{dialect: {"user", "password"}}`` for those that ask for a login.
        """
        account = {"user": ADMIN, "password": self.password}
        return {
            "chassis": {name: self._urls(name) for name in self.rack.names()},
            "control": {"url": self._control_url(), "token": self.token},
            "ca": None if self._trusted is None else str(self._trusted),
            "accounts": {name: account for name, dialect in self._dialects.items() if dialect.login},
            "pid": os.getpid(),
        }

    def _control_url(self) -> str:
        scheme = "http" if self._control_tls is None else "https"
        return f"{scheme}://{self._control[0]}:{self._servers[CONTROL].port}"

    def _urls(self, chassis: str) -> dict[str, str]:
        shown = f"[{self._host}]" if ":" in self._host else self._host
        found = {}
        for name in self._dialects:
            scheme, servers = ("https", self._secure) if name in self._secret else ("http", self._servers)
            found[name] = f"{scheme}://{shown}:{servers[chassis].port}"
        return found


@contextlib.contextmanager
def endings_held_back() -> Iterator[None]:
    """Hold SIGTERM and SIGINT back for sigwait, in all threads to come as well: a handler that runs while the main
    thread goes to wait on a lock is lost, or waits for that lock itself. Afterwards they do what they did before; those
    that have come meanwhile are forgotten, as it has ended."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: both interrupt, whatever is going on
        yield from _interrupted_by_endings()
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        while pending := signal.sigpending() & set(ENDINGS):
            signal.sigwait(pending)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupted_by_endings() -> Iterator[None]:
    """SIGTERM interrupts as SIGINT does, and that ends what is done meanwhile without an error."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def await_ending() -> None:
    """Return once SIGTERM or SIGINT has come; within ``endings_held_back``, in the main thread."""
    if hasattr(signal, "sigwait"):
        signal.sigwait(ENDINGS)
        return
    while not threading.Event().wait(0.5):  # Windows: an endless wait could not be interrupted
        continue


@endings_held_back()
def serve(
    hardware: Hardware,
    *,
    listen: tuple[str, int] = (LOOPBACK, 0),
    dialects: Sequence[str] = tuple(OURS),
    ready_file: str | Path | None = None,
    state: str | Path | None = None,
    context: EmulationContext = BY_DEFAULT,
    token: str | None = None,
    control: tuple[str, int] = (LOOPBACK, 0),
    consecutive: bool = False,
    lifeline: bool = False,
    tls: Identity | None = None,
    control_tls: Certificates | None = None,
    insecure: bool = False,
    further: Sequence[int] = (),
    allow_hosts: Sequence[str] = (),
    ssdp: bool = False,
    wrongs: Sequence[Wrong] = (),
) -> None:
    """Serve until SIGTERM or SIGINT; only from a process' main thread.

    ``ready_file`` appears, whole, when all of it serves and is removed at the end. ``state`` is a file in which the
    tables outlive the process. ``control`` is where the back door listens; anywhere but on 127.0.0.1 it lets in callers
    from other machines. ``consecutive``: each chassis listens one port above the one before. With ``lifeline`` the end
    of standard input ends it too, so that it never outlives whoever holds the other end.
    The first Redfish account's password is that of ``MEWS_REDFISH_PASSWORD``, else one is made and printed once.
    Redfish is under TLS by ``tls``, else by ``control_tls`` as control is, else by a certificate that is made; with
    ``insecure`` passwords and tokens go over plain HTTP. Requests of web pages, and those whose Host is none of
    the server's names, are refused (``mews.callers``); ``allow_hosts`` adds names. ``ssdp``: Redfish services
    answer searches of the local network. Raises as ``ChassisServer`` does.
    """
    if lifeline:
        threading.Thread(target=watch_lifeline, daemon=True).start()
    password = os.environ.get("MEWS_REDFISH_PASSWORD") or None
    server = ChassisServer(
        hardware,
        host=listen[0],
        port=listen[1],
        dialects=dialects,
        state=state,
        context=context,
        token=token,
        password=password,
        tls=tls,
        insecure=insecure,
        control=control,
        control_tls=control_tls,
        consecutive=consecutive,
        further=further,
        allow_hosts=allow_hosts,
        ssdp=ssdp,
        wrongs=wrongs,
        tenant=os.environ.get("MEWS_FM_TENANT", ""),
    )
    server.start()
    try:
        ready = server.ready()
        if ready_file is not None:
            write_ready(Path(ready_file), ready)
        for name, urls in ready["chassis"].items():
            sys.stdout.write(f"chassis {name}: {', '.join(f'{dialect} {url}' for dialect, url in urls.items())}\n")
        sys.stdout.write(f"control: {ready['control']['url']}\n")
        if ready["ca"] is not None:
            sys.stdout.write(f"certificate: {ready['ca']}\n")
        if password is None and ready["accounts"]:
            sys.stdout.write(f"{', '.join(ready['accounts'])}: account {ADMIN}, password {server.password}\n")
        sys.stdout.flush()
        await_ending()
    finally:
        server.stop()
        if ready_file is not None:
            Path(ready_file).unlink(missing_ok=True)


def parse_listen(text: str) -> tuple[str, int]:
    """``HOST:PORT``.

    Raises ValueError.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"listen {text!r}: must be HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]"), int(port)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the command line; returns the exit code (0, 2 bad input, 3 the environment lacks something)."""
    parser = argparse.ArgumentParser(prog="mews.emulator.serve", description="Serve emulated chassis over HTTP.")
    parser.add_argument("--hardware", required=True, metavar="FILE")
    parser.add_argument(
        "--listen", default=f"{LOOPBACK}:0", metavar="HOST:PORT", help="listen here with the first chassis"
    )
    parser.add_argument(
        "--further",
        type=int,
        action="append",
        default=[],
        metavar="PORT",
        help="listen on this port with the next chassis",
    )
    parser.add_argument(
        "--dialect",
        action="append",
        help=f"speak this dialect, a name or module:attribute; may be repeated; default: {', '.join(OURS)}",
    )
    parser.add_argument("--ready", metavar="FILE")
    parser.add_argument("--state", metavar="FILE", help="keep the tables in this file across restarts")
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--seed", default="0")
    add_tls_arguments(parser)
    add_control_tls_arguments(parser)
    parser.add_argument(
        "--token", help="require this token for control; default: $MEWS_CONTROL_TOKEN, or a new one in the ready file"
    )
    parser.add_argument(
        "--control", default=f"{LOOPBACK}:0", metavar="HOST:PORT", help="listen here with the control API"
    )
    parser.add_argument(
        "--consecutive", action="store_true", help="give each chassis the port after the previous one's"
    )
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="accept this host name, too")
    parser.add_argument("--ssdp", action="store_true", help="let Redfish services be found by SSDP")
    parser.add_argument("--lifeline", action="store_true", help="exit when standard input closes")
    chosen = parser.parse_args(arguments)
    if chosen.insecure:
        sys.stderr.write(f"{INSECURE}\n")
    try:
        serve(
            load_hardware(chosen.hardware),
            listen=parse_listen(chosen.listen),
            dialects=chosen.dialect or tuple(OURS),
            ready_file=chosen.ready,
            state=chosen.state,
            context=EmulationContext(chosen.seed, chosen.speed),
            token=chosen.token or os.environ.get("MEWS_CONTROL_TOKEN") or None,
            control=parse_listen(chosen.control),
            consecutive=chosen.consecutive,
            allow_hosts=chosen.allow_host,
            ssdp=chosen.ssdp,
            lifeline=chosen.lifeline,
            tls=identity(chosen.certificate, chosen.key),
            control_tls=control_certificates(chosen),
            insecure=chosen.insecure,
            further=chosen.further,
        )
    except (HardwareError, ValueError) as error:
        return _failed(error, BAD_INPUT)
    except (OSError, EmulatorError) as error:
        return _failed(error, ENVIRONMENT)
    return 0


def _failed(error: Exception, code: int) -> int:
    sys.stderr.write(f"{' '.join(str(error).split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
