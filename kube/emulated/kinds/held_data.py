"""What ConfigMaps and Secrets share."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.container_errors import config_key_texts, is_config_key

FIXED = "field is immutable when `immutable` is set"


def key_errors(field: str, key: str) -> list[FieldError]:
    """Return what is wrong with a key of the data."""
    return [] if is_config_key(key) else [refusals.bad(f"{field}[{key}]", key, text) for text in config_key_texts(key)]


def fixed_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what changed of an object that is immutable."""
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [refusals.forbidden_field("immutable", FIXED)]
    for field in ("data", "binaryData"):
        if (new.get(field) or {}) != (old.get(field) or {}):
            found.append(refusals.forbidden_field(field, FIXED))
    return found
