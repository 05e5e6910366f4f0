"""``continue`` tokens, as upstream writes and reads them (apiserver pkg/storage/continue.go).

A token says at which resourceVersion a list was begun, and from which key on it goes on. The key is a path below that
of the list, so that a token serves any other list, too.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
from typing import Any

from mews.kube.api.errors import BadRequestError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.json_errors import json_error

NOW = -1
"""Instead of a version: what is there when the token is used."""
_FORMAT = "meta.k8s.io/v1"
_TYPES: dict[str, tuple[type, str]] = {"v": (str, "string"), "rv": (int, "int64"), "start": (str, "string")}
_NAMES = ((bool, "bool"), (str, "string"), (int | float, "number"), (dict, "object"), (list, "array"))


def key_of(obj: Object, *, within: bool) -> str:
    """Return an object's path below its list's: ``/namespace/name``, or ``/name`` in a list of one namespace
    (``within``)."""
    metadata = obj["metadata"]
    namespace = "" if within else metadata.get("namespace") or ""
    return f"/{namespace}/{metadata['name']}" if namespace else f"/{metadata['name']}"


def write(version: int, start: str) -> str:
    """Return the token of a list of that version that goes on with the first key from ``start`` on."""
    text = json.dumps({"v": _FORMAT, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(token: str) -> tuple[int, str]:
    """Version and first key of a token; a negative version means ``NOW``.

    Raises BadRequestError in upstream's words.
    """
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except (ValueError, binascii.Error):
        raise _bad_token(": illegal base64 data at input byte 0") from None
    try:
        fields = json.loads(text)
    except ValueError:
        raise _bad_token(f": {json_error(text)}") from None
    wrong = _mistyped(fields)
    if wrong:
        raise _bad_token(f": json: cannot unmarshal {wrong}")
    version, start = fields.get("rv") or 0, fields.get("start") or ""
    if fields.get("v") != _FORMAT:
        raise _bad_token(f": server does not recognize this encoded version {fields.get('v') or ''}")
    if version == 0:
        raise _bad_token(f": incorrect encoded start resourceVersion (version {_FORMAT})")
    if not start:
        raise _bad_token(f": encoded start key empty (version {_FORMAT})")
    key = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(key) != key or key.startswith("//"):
        raise _bad_token(f": {start}")
    return version, key


def _mistyped(fields: Any) -> str:
    """Go's error for a value that does not fit the struct; "" if it fits."""
    if not isinstance(fields, dict):
        return f"{_named(fields)} into Go value of type storage.continueToken"
    for name, (kind, shown) in _TYPES.items():
        value = fields.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            return f"{_named(value)} into Go struct field continueToken.{name} of type {shown}"
    return ""


def _named(value: Any) -> str:
    return next(name for kind, name in _NAMES if isinstance(value, kind))


def _bad_token(text: str) -> BadRequestError:
    return BadRequestError(f"invalid continue token: continue key is not valid{text}")
