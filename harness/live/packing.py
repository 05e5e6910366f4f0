"""Objects that are rarely looked at again, kept small: a session may have tens of thousands of them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, MutableMapping

from mews.kube.api.objects import Object

_FASTEST = 1


class PackedObjects(MutableMapping[str, Object]):
    """Key -> object, several times as small as dicts are; each look unpacks it anew."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> Object:
        found: Object = json.loads(zlib.decompress(self._packed[key]))
        return found

    def __setitem__(self, key: str, obj: Object) -> None:
        self._packed[key] = zlib.compress(json.dumps(obj, separators=(",", ":")).encode(), _FASTEST)

    def __delitem__(self, key: str) -> None:
        del self._packed[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def identity_of(obj: Object) -> Object:
    """Return the object with nothing but what says which it is."""
    names = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {name: obj["metadata"][name] for name in names if name in obj["metadata"]}}
