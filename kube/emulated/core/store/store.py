"""The versioned object store: shelves of objects under one growing resourceVersion, with watches.

State only. The verbs that change it are functions beside it: ``creation``, ``update``, ``deletion``, ``pod_actions``.
Everything is synchronous: a verb is one atomic step of the event loop.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mews.kube.api.errors import GoneError
from mews.kube.api.objects import Object, timestamp
from mews.kube.api.sharing import share_parts
from mews.kube.client.port import ObjectList
from mews.kube.emulated.core.store import continue_token, refusals
from mews.kube.emulated.core.store.admission import AdmissionPhases, NoAdmission, WebhookPort
from mews.kube.emulated.core.store.kinds import Kind, Registry
from mews.kube.emulated.core.store.released_kinds import standard_kinds
from mews.kube.emulated.core.store.rules import KindRules
from mews.kube.emulated.core.store.selection import EVERYTHING, Selection
from mews.kube.emulated.core.store.shelf import HISTORY, Key, ResourceShelf, WatchInbox, order_of
from mews.kube.emulated.core.store.views import all_shown, view_of

_SNAPSHOTS = 64
"""Unfinished paged lists remembered; the token of an older one has expired."""

_SNAPSHOT_S = 300.0
"""So long is a list remembered at most: kube-apiserver compacts etcd every five minutes."""

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_Page = tuple[tuple[str, str], int, tuple[str | None, str, str]]

CommitListener = Callable[[Kind, "Object | None", "Object | None"], None]


class Store:
    """All objects of one cluster; empty at first (``bootstrap.fresh_store`` makes one as a cluster has it).

    ``now`` gives unix seconds, ``rng`` uids and generated names; ``rules`` what a kind brings into the life cycle;
    ``kinds`` are those of the first release where None.
    """

    def __init__(
        self,
        now: Callable[[], float],
        rng: random.Random,
        *,
        rules: Callable[[Kind], KindRules[Store]],
        kinds: Registry | None = None,
        history: int = HISTORY,
    ) -> None:
        self.now = now
        self._rules_of = rules
        self._rules: dict[int, tuple[Kind, KindRules[Store]]] = {}
        self.kinds = kinds or Registry(standard_kinds())
        self.admission: AdmissionPhases = NoAdmission()
        """What every write passes."""
        self.webhooks: WebhookPort | None = None
        """How admission reaches webhooks."""
        self.advise: Callable[[Kind, Object], list[str]] | None = None
        """What is warned of besides what upstream warns of, when an object is created; nothing where None."""
        self.keeps_owners = False
        """Whether plain writes tell in managedFields what they own, as over HTTP; applies always do."""
        self.asks_servers = False
        """Whether the servers behind APIServices are asked; that of a served store does."""
        self._rng = rng
        self._reviews = 0
        self._other = random.Random("parts of objects")
        self._history = history
        self._shelves: dict[tuple[str, str], ResourceShelf] = {}
        self._version = 1
        self._snapshots: OrderedDict[_Page, tuple[float, Sequence[Object]]] = OrderedDict()
        self._listeners: list[CommitListener] = []

    @property
    def version(self) -> int:
        """The resourceVersion of the last write."""
        return self._version

    def shelf(self, kind: Kind) -> ResourceShelf:
        """Return where a kind's objects are."""
        shelf = self._shelves.get(kind.storage)
        if shelf is None:
            shelf = self._shelves[kind.storage] = ResourceShelf(self._history)
            if kind.custom:  # before its definition there was nothing to watch
                shelf.compact(self._version)
        return shelf

    def filled(self, group: str, plural: str) -> ResourceShelf | None:
        """Return the shelf of a resource, None where it is empty: admission asks that for each write."""
        shelf = self._shelves.get((group, plural))
        return shelf if shelf is not None and len(shelf) else None

    def shelves(self) -> Iterator[tuple[tuple[str, str], ResourceShelf]]:
        """Yield every resource's key with its objects."""
        yield from list(self._shelves.items())

    def drop_shelf(self, kind: Kind) -> None:
        """A kind is gone: end its watches and forget its history."""
        shelf = self._shelves.pop(kind.storage, None)
        if shelf is not None:
            shelf.disconnect()

    def rules(self, kind: Kind) -> KindRules[Store]:
        """Return what a kind brings into the life cycle."""
        if kind.custom:
            return self._rules_of(kind)
        found = self._rules.get(id(kind))
        if found is None:  # with the kind, so that its id is not given to another
            found = self._rules[id(kind)] = (kind, self._rules_of(kind))
        return found[1]

    # Reading

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return the stored object, in its storage form, or None."""
        shelf = self._shelves.get(kind.storage)
        return None if shelf is None else shelf.get((namespace, name))

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return the object as the kind shows it; 404 when there is none."""
        obj = self.find(kind, namespace, name)
        if obj is None:
            raise refusals.missing(kind, name)
        return view_of(kind).show(obj)

    def list(
        self, kind: Kind, selection: Selection = EVERYTHING, *, limit: int | None = None, token: str = ""
    ) -> ObjectList:
        """Selected objects by namespace and name; with a limit one page, all pages from the first one's state.

        Raises ``GoneError`` when a token has expired.
        """
        version, after = continue_token.read(token) if token else (continue_token.NOW, "")
        if version > self._version:
            raise refusals.future_version(version, self._version)
        found: Sequence[Object]
        if version >= 0:
            found = self._snapshot(version, kind, selection, after)
        else:
            version, found = self._version, list(self.shelf(kind).select(selection))
        within = bool(selection.namespace)
        start = bisect.bisect_left(found, after, key=partial(continue_token.key_of, within=within)) if token else 0
        return self._page(kind, selection, found, version=version, start=start, limit=limit)

    def _snapshot(self, version: int, kind: Kind, selection: Selection, after: str) -> Sequence[Object]:
        """Return the unfinished list of that version.

        Raises ``GoneError`` when it is too old, with a token that goes on from what is there now.
        """
        since_s, found = self._snapshots.get((kind.storage, version, selection.source), (-math.inf, ()))
        if self.now() - since_s <= _SNAPSHOT_S:
            return found
        if since_s == -math.inf:  # a token of another list: what this one was like then, while that is known
            with contextlib.suppress(GoneError):
                return self._at(kind, selection, version)
        error = GoneError(_TOO_OLD)
        error.continue_token = continue_token.write(continue_token.NOW, after)
        raise error

    def list_at(self, kind: Kind, selection: Selection, version: int, *, limit: int | None = None) -> ObjectList:
        """Selected objects as they were at that version.

        Raises ``GoneError`` when the history does not reach back so far.
        """
        found = self._at(kind, selection, version)
        return self._page(kind, selection, found, version=version, start=0, limit=limit)

    def _at(self, kind: Kind, selection: Selection, version: int) -> Sequence[Object]:
        past = self.shelf(kind).at(version)
        return [past[key] for key in sorted(past, key=order_of) if selection.matches(past[key])]

    def _page(
        self, kind: Kind, selection: Selection, found: Sequence[Object], *, version: int, start: int, limit: int | None
    ) -> ObjectList:
        if not limit or start + limit >= len(found):
            return ObjectList(all_shown(kind, found[start:]), str(version))
        self._remember((kind.storage, version, selection.source), found)
        end = start + limit
        remaining = len(found) - end if selection.is_everything else None
        page = all_shown(kind, found[start:end])
        last = continue_token.key_of(found[end - 1], within=bool(selection.namespace))
        return ObjectList(page, str(version), continue_token.write(version, f"{last}\0"), remaining)

    def _remember(self, page_key: _Page, found: Sequence[Object]) -> None:
        since_s, _ = self._snapshots.get(page_key, (self.now(), found))
        self._snapshots[page_key] = (since_s, found)
        self._snapshots.move_to_end(page_key)
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)

    def watch(self, kind: Kind, selection: Selection = EVERYTHING, version: str = "") -> WatchInbox:
        """Changes after ``version``; from "" or "0" first ADDED for all that is there.

        Raises ``GoneError`` when the version is too old, ``BadRequestError`` when it is no number.
        """
        return self.shelf(kind).subscribe(selection, read_version(version) or None)

    # Writing

    def commit(self, kind: Kind, key: Key, new: Object | None) -> Object:
        """Put a finished object on its shelf under a new resourceVersion, or take it off; answers its last state."""
        self._version += 1
        if new is not None:
            new["metadata"]["resourceVersion"] = str(self._version)
            if self.keeps_owners:  # served, for as long as anybody likes
                share_parts(new)
        change = self.shelf(kind).put(key, new, self._version)
        old = change.old
        after_commit = self.rules(kind).after_commit
        if after_commit is not None:
            after_commit(self, old, new)
        for listener in list(self._listeners):
            listener(kind, old, new)
        return new if new is not None else change.left()

    def listen(self, listener: CommitListener) -> Callable[[], None]:
        """Hear every commit (kind, old, new) as it happens; call the result to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def new_uid(self) -> str:
        """Return a version 4 UUID from the store's own chance."""
        bits = self._rng.getrandbits(128) & ~(0xF << 76) | (0x4 << 76)
        bits = bits & ~(0x3 << 62) | (0x2 << 62)
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def review_uid(self) -> str:
        """Return a uid for an AdmissionReview; uids of objects must not depend on webhooks."""
        self._reviews += 1
        return f"00000000-0000-4000-8000-{self._reviews:012x}"

    def other_name(self, prefix: str) -> str:
        """Return a name for a part of an object, drawn from another stream: objects' names must not depend on it."""
        return prefix + "".join(self._other.choice(_NAME_ALPHABET) for _ in range(5))

    def new_name(self, prefix: str) -> str:
        """Make a name with the prefix ``generateName``."""
        return prefix[:58] + "".join(self._rng.choice(_NAME_ALPHABET) for _ in range(5))

    def timestamp(self) -> str:
        """Return the time now as a metav1.Time."""
        return timestamp(self.now())

    # Errors

    def disconnect(self) -> None:
        """End all watches cleanly, as a restarting server would."""
        for shelf in list(self._shelves.values()):
            shelf.disconnect()

    def compact(self) -> None:
        """Forget all history: watches from before now are told 410 Expired."""
        for shelf in self._shelves.values():
            shelf.compact(self._version)
        self._snapshots.clear()


def read_version(text: str) -> int:
    """Return a resourceVersion as a number, 0 for "" and "0"; 400 for garbage."""
    if not text:
        return 0
    if not text.isdecimal():
        raise refusals.bad_version(text)
    version = int(text[:40])
    if version >= 1 << 64:
        raise refusals.bad_version(text)
    return version
