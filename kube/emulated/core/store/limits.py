"""How large objects may be (contract apiserver.md section 2; measured on Kubernetes 1.34.2)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from mews.kube.api.errors import ServerError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.long_work import LONG_WORK
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.request import WriteRequest

_ANNOTATIONS = 256 * 1024
_DATA = 1024 * 1024
_STORED = 1536 * 1024
"""What etcd takes in one request."""

_LONGEST_LETTER = 4
"""Bytes of UTF-8."""

_ALWAYS_FITS = 128 * 1024
"""A body below that is not worth measuring what it makes."""


def annotation_errors(annotations: Mapping[str, str]) -> list[FieldError]:
    """Return what is wrong with the size of all annotations."""
    if _are_more([*annotations, *annotations.values()], _ANNOTATIONS):
        return [_too_long("metadata.annotations", _ANNOTATIONS)]
    return []


def config_map_errors(obj: Object) -> list[FieldError]:
    """Return what is wrong with the size of a ConfigMap's data."""
    binary = _decoded((obj.get("binaryData") or {}).values())
    return [_too_long("[]", _DATA)] if _are_more((obj.get("data") or {}).values(), _DATA - binary) else []


def secret_errors(obj: Object) -> list[FieldError]:
    """Return what is wrong with the size of a Secret's data."""
    return [_too_long("data", _DATA)] if _decoded((obj.get("data") or {}).values()) > _DATA else []


def _too_long(path: str, limit: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"may not be more than {limit} bytes")


def _are_more(texts: Collection[str], limit: int) -> bool:
    """Return whether the texts are more bytes than that. Nearly all are so few letters that they need not be
    encoded."""
    if _LONGEST_LETTER * sum(map(len, texts)) <= limit:
        return False
    return sum(len(text.encode()) for text in texts) > limit


def _decoded(texts: Iterable[str]) -> int:
    return sum(len(base64.b64decode(text)) for text in texts)


def check_stored_size(
    raw: bytes, attempt: Callable[[WriteRequest], Any], request: WriteRequest, encode: Callable[[Any], bytes]
) -> None:
    """Try a write whose body is large before it is done.

    Raises ``ServerError`` when what it would store is more than etcd takes, in etcd's words.
    """
    if len(raw) <= _ALWAYS_FITS:
        return

    def try_it() -> None:
        try:
            made = attempt(replace(request, dry_run=True, warnings=[]))
        except RuntimeError as error:
            if "changed" not in str(error):
                raise
            return  # the store changed under it: the loop tries anew, as it does in any case
        if len(encode(made)) > _STORED:
            raise ServerError("etcdserver: request is too large", reason="")

    long_work = LONG_WORK.get()
    if long_work is None:
        try_it()
    else:
        long_work.elsewhere(try_it, lambda: raw)
