"""The line of pods in order of creation, for replays in which no job may start before an earlier one."""

from __future__ import annotations

from mews.kube.api.objects import Object, is_terminal, key_of, node_name_of, uid_of


class PendingQueue:
    """Pending pods of one scheduler: by creation (whole seconds), then in the order in which they were seen."""

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name
        self._places: dict[str, tuple[str, int, str]] = {}
        self._seen = 0

    def on_change(self, old: Object | None, new: Object | None) -> bool:
        """Return a pod changed; whether somebody left the line."""
        uid = uid_of(new or old or {})
        stands = (
            new is not None
            and not node_name_of(new)
            and not is_terminal(new)
            and new.get("spec", {}).get("schedulerName") == self._scheduler_name
        )
        if new is not None and stands:
            if uid not in self._places:
                self._seen += 1
                created = str(new.get("metadata", {}).get("creationTimestamp", ""))
                self._places[uid] = (created, self._seen, key_of(new))
            return False
        return self._places.pop(uid, None) is not None

    def ahead_of(self, uid: str) -> str | None:
        """Return the first pod in the line when it stands before this one, else None."""
        first = min(self._places.values(), default=None)
        own = self._places.get(uid)
        return first[2] if first is not None and own is not None and first < own else None

    def first(self) -> str | None:
        """Return the uid of the first, None when nobody stands in line."""
        return min(self._places, key=lambda uid: self._places[uid], default=None)
