"""Secrets: what each type needs, keys, and what is immutable."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.store import limits, refusals
from mews.kube.emulated.core.store.json_errors import json_error
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age
from mews.kube.emulated.kinds.held_data import fixed_errors, key_errors

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}


_SSH_KEY = "ssh-privatekey"


_ACCOUNT = "kubernetes.io/service-account.name"


_IN_JSON = (".dockerconfigjson", ".dockercfg")


def _default_secret(secret: Object) -> None:
    texts = secret.pop("stringData", None)
    if texts:
        coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **coded}


def _validate_secret(secret: Object) -> list[FieldError]:
    data, found = secret.get("data") or {}, list[FieldError]()
    for key in sorted(data):
        found += key_errors("data", key)
    found += limits.secret_errors(secret)
    if secret["type"] == "kubernetes.io/service-account-token" and not annotations_of(secret).get(_ACCOUNT):
        found.append(refusals.required(f"metadata.annotations[{_ACCOUNT}]"))
    if secret["type"] == "kubernetes.io/ssh-auth" and not data.get(_SSH_KEY):
        found.append(refusals.required(f"data[{_SSH_KEY}]"))
    for key in _NEEDED.get(secret["type"], ()):
        if key not in data:
            found.append(refusals.required(f"data[{key}]"))
        elif key in _IN_JSON:
            found += _json_errors(key, data[key])
    if secret["type"] == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found += [refusals.required(f"data[{key}]") for key in ("username", "password")]
    return found


def _json_errors(key: str, coded: str) -> list[FieldError]:
    try:
        text = base64.b64decode(coded)
        json.loads(text)
    except (ValueError, binascii.Error):
        return [refusals.bad(f"data[{key}]", "<secret contents redacted>", json_error(text))]
    return []


def _secret_change(new: Object, old: Object, _: str) -> list[FieldError]:
    changed = new["type"] != old["type"]
    found = [refusals.bad("type", new["type"], "field is immutable")] if changed else []
    return [*found, *fixed_errors(new, old), *_validate_secret(new)]


def _secret(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), meta_age(obj, now_s)]


RULES = Rules(
    printer=Printer(_secret),
    default=_default_secret,
    validate=_validate_secret,
    validate_update=_secret_change,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, CHANGE, METADATA, OBJECT)),
)
