"""Chassis in a process of their own, and a plain synchronous client of their back door."""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from mews.harness.testkit.process import Child, start, started

_TIMEOUT_S = 10.0


class Chassis:
    """Running chassis: ``urls`` is chassis -> dialect -> URL. Every method may raise ValueError with their answer."""

    def __init__(self, ready: Mapping[str, Any]) -> None:
        self.urls: dict[str, dict[str, str]] = {name: dict(urls) for name, urls in ready["chassis"].items()}
        self._control = ready["control"]
        ca = ready.get("ca")
        self._trusted = None if ca is None else ssl.create_default_context(cafile=ca)

    def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> ``{"uuid", "port", "host", "gpuid", …}``; port None while free."""
        return self._ask("GET", "/v1/table")  # type: ignore[no-any-return]

    def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change the table behind every client's back."""
        self._ask("POST", "/v1/edit", {"chassis": chassis, "device": device, "port": port})

    def fault(self, chassis: str, kind: str, **spec: Any) -> str:
        """Add a fault, for example ``fault("A", "lying-result", count=1)``; its id."""
        answer = self._ask("POST", "/v1/faults", {"chassis": chassis, "spec": {"kind": kind, **spec}})
        return str(answer["fault"])

    def clear(self, chassis: str | None = None) -> None:
        """Undo the faults of one chassis, or of all."""
        query = "" if chassis is None else "?" + urlencode({"chassis": chassis})
        self._ask("DELETE", f"/v1/faults{query}")

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """What happened after that event number."""
        return self._ask("GET", f"/v1/events?since={since}")["events"]  # type: ignore[no-any-return]

    def reset(self) -> None:
        """The table, the faults and the operations as they were at the start."""
        self._ask("POST", "/v1/reset")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._control['token']}", "Content-Type": "application/json"}
        request = Request(self._control["url"] + path, data=data, method=method, headers=headers)
        try:
            with urlopen(request, timeout=_TIMEOUT_S, context=self._trusted) as answer:
                return json.loads(answer.read() or b"{}")
        except HTTPError as error:
            with error:
                text = error.read().decode(errors="replace").strip()
            raise ValueError(f"{method} {path}: {error.code} {text}") from None


def serve_chassis(hardware: Path | None, folder: Path) -> tuple[Child, Chassis]:
    """Start ``mews serve`` and wait until it is ready.

    Raises RuntimeError with what it said when it does not come up.
    """
    ready = folder / "chassis.json"
    command = [sys.executable, "-m", "mews.harness.cli", "serve", "--ready", str(ready)]
    if hardware is not None:
        command += ["--hardware", str(hardware)]
    child = start(command)
    return child, Chassis(started(child, ready))
