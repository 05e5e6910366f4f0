"""Rules of what holds data: ConfigMaps and Secrets."""

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
from mews.kube.emulated.kinds.pods.container_errors import config_key_texts, is_config_key

_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
_SSH_KEY = "ssh-privatekey"
_ACCOUNT = "kubernetes.io/service-account.name"
_IN_JSON = (".dockerconfigjson", ".dockercfg")
_FIXED = "field is immutable when `immutable` is set"


def _key_errors(field: str, key: str) -> list[FieldError]:
    return [] if is_config_key(key) else [refusals.bad(f"{field}[{key}]", key, text) for text in config_key_texts(key)]


def _validate_configmap(configmap: Object) -> list[FieldError]:
    binary, found = configmap.get("binaryData") or {}, list[FieldError]()
    for key in sorted(configmap.get("data") or ()):
        found += _key_errors("data", key)
        if key in binary:
            found.append(refusals.bad(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in sorted(binary):
        found += _key_errors("binaryData", key)
    return found + limits.config_map_errors(configmap)


def _configmap_change(new: Object, old: Object, _: str) -> list[FieldError]:
    return [*_fixed_errors(new, old), *_validate_configmap(new)]


def _fixed_errors(new: Object, old: Object) -> list[FieldError]:
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
    data, found = secret.get("data") or {}, list[FieldError]()
    for key in sorted(data):
        found += _key_errors("data", key)
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
    return [*found, *_fixed_errors(new, old), *_validate_secret(new)]


CONFIGMAPS = Rules(
    validate=_validate_configmap,
    validate_update=_configmap_change,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, CHANGE, METADATA, OBJECT)),
)
SECRETS = Rules(
    default=_default_secret,
    validate=_validate_secret,
    validate_update=_secret_change,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, CHANGE, METADATA, OBJECT)),
)
