"""A control plane's store, emptied between two scenarios: what was not there at the start is deleted.

The API server hears of it as of any other change, so its caches, and every watch, follow. It takes milliseconds where
deletion over the API would wait for finalizers, graces and the namespace controller.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

_REGISTRY, _AFTER = b"/registry/", b"/registry0"
_KEPT = (b"/registry/leases/kube-system/", b"/registry/masterleases/", b"/registry/ranges/")
"""What the API server writes for itself."""
_RESTORED = (b"/registry/namespaces/", b"/registry/priorityclasses/", b"/registry/clusterrole", b"/registry/role")
_OPERATIONS = 100
"""In one transaction; etcd allows 128."""


class Etcd:
    """The keys below /registry over etcd's JSON gateway."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        self._url = url
        self._context = context
        self._start: dict[bytes, tuple[str, bytes]] = {}

    def remember(self) -> None:
        """What is there now belongs to an empty cluster."""
        self._start = self._read()

    def empty(self) -> None:
        """Delete what came since ``remember``; put back the namespaces, classes and roles that changed."""
        now = self._read()
        operations = [
            {"request_delete_range": {"key": _text(key)}}
            for key in now
            if key not in self._start and not key.startswith(_KEPT)
        ]
        operations += [
            {"request_put": {"key": _text(key), "value": _text(value)}}
            for key, (version, value) in self._start.items()
            if key.startswith(_RESTORED) and now.get(key, ("",))[0] != version
        ]
        for part in _parts(operations):
            self._call("txn", {"success": part})
        if operations:
            # Versions of what was put back have changed.
            self._start = {**self._start, **{k: v for k, v in self._read().items() if k in self._start}}

    def _read(self) -> dict[bytes, tuple[str, bytes]]:
        answer = self._call("range", {"key": _text(_REGISTRY), "range_end": _text(_AFTER)})
        return {
            base64.b64decode(row["key"]): (row["mod_revision"], base64.b64decode(row.get("value", "")))
            for row in answer.get("kvs", ())
        }

    def _call(self, what: str, body: Any) -> Any:
        request = urllib.request.Request(f"{self._url}/v3/kv/{what}", data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10.0, context=self._context) as answer:
            return json.load(answer)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _parts(operations: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(operations), _OPERATIONS):
        yield operations[start : start + _OPERATIONS]
