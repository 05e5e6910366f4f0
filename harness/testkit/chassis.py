"""Chassis in a process of their own or in this one, and what a test does to them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.inventory_file import load_hardware
from mews.harness.catalogue.files import file_of
from mews.harness.testkit.backdoor import BackDoor
from mews.harness.testkit.keeping import as_json_lines, keep_journal, keep_texts, lines_of_events
from mews.harness.testkit.process import Child, start, started
from mews.harness.testkit.requests import SentRequests
from mews.harness.testkit.settings import Settings
from mews.names import must_be


class Chassis:
    """Running chassis: ``urls`` is chassis -> dialect -> URL, ``requests`` what clients sent to those. ``ca`` is the
    file of the CA certificate for https URLs, None if all are http. ``accounts`` is dialect -> ``{"user",
    "password"}`` for dialects with a login. Every method may raise ValueError with their answer."""

    def __init__(self, ready: Mapping[str, Any], hardware: Hardware | None = None, child: Child | None = None) -> None:
        """``hardware`` is what they were at the start; None where somebody else keeps their journal."""
        self.urls: dict[str, dict[str, str]] = {name: dict(urls) for name, urls in ready["chassis"].items()}
        self.ca: str | None = ready.get("ca")
        self.accounts: dict[str, dict[str, str]] = dict(ready.get("accounts") or {})
        self.requests = SentRequests(lambda since: self._ask("GET", f"/v1/requests?since={since}")["requests"])
        self._door = BackDoor(ready["control"], self.ca)
        self._hardware = hardware
        self._child = child
        self._first_event = 0

    def __repr__(self) -> str:
        return f"Chassis({self.urls})"

    def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> ``{"uuid", "port", "host", "gpuid", …}``; port None while free."""
        return self._ask("GET", "/v1/table")  # type: ignore[no-any-return]

    def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change the table behind every client's back; a port of None frees the device."""
        __tracebackhide__ = True
        self._ask("POST", "/v1/edit", {"chassis": chassis, "device": device, "port": port})

    def move(self, device: str, host: str | None) -> None:
        """Put a device on a host's port (None: on none), behind every client's back.

        Raises ValueError naming the devices, or the hosts that the device's chassis is cabled to.
        """
        __tracebackhide__ = True
        table = self.table()
        name = next((name for name, rows in table.items() if device in rows), None)
        if name is None:
            known = sorted(each for rows in table.values() for each in rows)
            raise ValueError(f"device {device!r}: {must_be(device, known)}")
        chassis = {each["name"]: each for each in self._ask("GET", "/v1/inventory")["chassis"]}
        cabled = {there: port for port, there in chassis[name]["ports"].items() if there is not None}
        if host is not None and host not in cabled:
            raise ValueError(f"host {host!r}: chassis {name} is cabled to {', '.join(sorted(cabled))}")
        self.edit(name, device, None if host is None else cabled[host])

    def fault(self, chassis: str, kind: str, **spec: Any) -> str:
        """Add a fault, for example ``fault("A", "lying-result", count=1)``; its id."""
        __tracebackhide__ = True
        answer = self._ask("POST", "/v1/faults", {"chassis": chassis, "spec": {"kind": kind, **spec}})
        return str(answer["fault"])

    def faults(self) -> dict[str, list[dict[str, Any]]]:
        """Chassis -> the faults in place."""
        return self._ask("GET", "/v1/faults")  # type: ignore[no-any-return]

    def clear(self, chassis: str | None = None) -> None:
        """Undo the faults of one chassis, or of all."""
        __tracebackhide__ = True
        query = "" if chassis is None else "?" + urlencode({"chassis": chassis})
        self._ask("DELETE", f"/v1/faults{query}")

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """Return what happened after that event number."""
        return self._ask("GET", f"/v1/events?since={since}")["events"]  # type: ignore[no-any-return]

    def reset(self) -> None:
        """The table, the faults and the operations as they were at the start; ``requests`` is empty."""
        self._first_event = int(self._ask("GET", f"/v1/events?since={sys.maxsize}")["seq"])
        self._ask("POST", "/v1/reset")
        self.requests.clear()

    def keep(self, folder: Path) -> None:
        """Write what there is since the last reset: journal, report, table, faults, requests, the server's log.

        Raises OSError, ValueError.
        """
        keep_texts(folder, self.texts())
        if self._hardware is not None:
            lines = lines_of_events(self._hardware, self.events(self._first_event))
            keep_journal(folder, "chassis", "chassis", lines)

    def texts(self) -> dict[str, str]:
        """Return the artefacts that are not of the journal, by file name."""
        return {
            "table.json": json.dumps(self.table(), indent=1) + "\n",
            "faults.json": json.dumps(self.faults(), indent=1) + "\n",
            "requests.jsonl": as_json_lines(each.as_dict() for each in self.requests),
            "server.log": "" if self._child is None else self._child.log(),
        }

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        __tracebackhide__ = True
        return self._door.ask(method, path, body)


def serve_chassis(settings: Settings, folder: Path) -> tuple[Child, Chassis]:
    """Start ``mews serve`` and wait until it is ready.

    Raises RuntimeError with what it said when it does not come up.
    """
    __tracebackhide__ = True
    ready = folder / "chassis.json"
    options = ["--ready", str(ready), *settings.of_chassis()]
    child = start([sys.executable, "-m", "mews.harness.cli", "serve", *options])
    return child, Chassis(started(child, ready), _hardware_of(settings), child)


@contextlib.contextmanager
def chassis_in_process(settings: Settings) -> Iterator[Chassis]:
    """Chassis served by threads of this process: up in a tenth of a second, and a debugger sees both sides.

    Raises HardwareError, ValueError.
    """
    from mews.dialects import OURS
    from mews.emulator.serve import ChassisServer

    hardware = _hardware_of(settings)
    server = ChassisServer(
        hardware,
        dialects=tuple(OURS) if settings.dialect is None else (settings.dialect,),
        context=EmulationContext(speed=settings.speed or 1.0),
        insecure=settings.tls is False,
    )
    server.start()
    try:
        yield Chassis(server.ready(), hardware)
    finally:
        server.stop()


def _hardware_of(settings: Settings) -> Hardware:
    return load_hardware(file_of("hardware", Path(settings.hardware or "demo")))
