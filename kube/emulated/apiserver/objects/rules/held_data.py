"""Rules of what holds data: ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.json_faults import json_fault
from mews.kube.emulated.apiserver.store.refusals import FieldError

_KEY = "[-._a-zA-Z0-9]+"
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_KEY}')"
)
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_IN_JSON = (".dockerconfigjson", ".dockercfg")
_FIXED = "field is immutable when `immutable` is set"


def _key_faults(obj: Object, field: str) -> list[FieldError]:
    return [
        refusals.bad(f"{field}[{key}]", key, _KEY_TEXT)
        for key in sorted(obj.get(field) or ())
        if not re.fullmatch(_KEY, key)
    ]


def _validate_configmap(configmap: Object) -> list[FieldError]:
    found = _key_faults(configmap, "data")
    for key in sorted(configmap.get("data") or ()):
        if key in (configmap.get("binaryData") or ()):
            found.append(refusals.bad(f"data[{key}]", key, "duplicate of key present in binaryData"))
    return found + _key_faults(configmap, "binaryData")


def _compare_fixed(new: Object, old: Object) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [refusals.forbidden_field("immutable", _FIXED)]
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            found.append(refusals.forbidden_field(field, _FIXED))
    return found


def _default_secret(secret: Object) -> None:
    texts = secret.pop("stringData", None)
    if texts:
        coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **coded}


def _validate_secret(secret: Object) -> list[FieldError]:
    data, found = secret.get("data") or {}, _key_faults(secret, "data")
    for key in _NEEDED.get(secret["type"], ()):
        if key not in data:
            found.append(refusals.required(f"data[{key}]"))
        elif key in _IN_JSON:
            found += _json_faults(key, data[key])
    if secret["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found += [refusals.required(f"data[{key}]") for key in ("username", "password")]
    return found


def _json_faults(key: str, coded: str) -> list[FieldError]:
    try:
        text = base64.b64decode(coded)
        json.loads(text)
    except (ValueError, binascii.Error):
        return [refusals.bad(f"data[{key}]", "<secret contents redacted>", json_fault(text))]
    return []


def _compare_secret(new: Object, old: Object) -> list[FieldError]:
    changed = new["type"] != old["type"]
    found = [refusals.bad("type", new["type"], "field is immutable")] if changed else []
    return found + _compare_fixed(new, old)


CONFIGMAPS = Rules(validate=_validate_configmap, compare=_compare_fixed)
SECRETS = Rules(default=_default_secret, validate=_validate_secret, compare=_compare_secret)
