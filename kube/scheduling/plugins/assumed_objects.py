"""An informer's objects as they are once what was decided has been written (upstream util/assumecache)."""

from __future__ import annotations

from mews.kube.api.objects import Object, key_of, version_of
from mews.kube.client.informer import Informer


class AssumedObjects:
    """What is assumed of an object holds until the API has a newer one, or it is taken back."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer
        self._assumed: dict[str, Object] = {}
        informer.on_change(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        assumed = self._assumed.get(key_of(obj))
        if assumed is not None and (new is None or version_of(new) > version_of(assumed)):
            del self._assumed[key_of(obj)]

    def get(self, key: str) -> Object | None:
        """Return the object with what is assumed of it."""
        return self._assumed.get(key) or self._informer.at(key)

    def known(self, key: str) -> Object | None:
        """Return the object as the API has it."""
        return self._informer.at(key)

    def items(self) -> list[Object]:
        """Return all of them with what is assumed of each, in order of key."""
        return [self._assumed.get(key_of(obj), obj) for obj in self._informer.items()]

    def assume(self, obj: Object) -> None:
        """Take the object to be written as it is here; it has the version that it was read with."""
        self._assumed[key_of(obj)] = obj

    def restore(self, key: str) -> None:
        """Assume nothing of it any more."""
        self._assumed.pop(key, None)
