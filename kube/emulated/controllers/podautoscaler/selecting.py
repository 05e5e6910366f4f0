"""Which autoscalers select which pods: two that select the same pod would undo each other's work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mews.kube.api.objects import Object, labels_of

Select = Callable[[Mapping[str, str]], bool]


class Selectors:
    """The selector of each autoscaler by its key; one whose target was not read yet selects nothing."""

    def __init__(self) -> None:
        self._known: dict[str, Select | None] = {}

    def register(self, key: str) -> None:
        """An autoscaler came; what is known of it stays."""
        self._known.setdefault(key, None)

    def forget(self, key: str) -> None:
        """An autoscaler went."""
        self._known.pop(key, None)

    def put(self, key: str, select: Select) -> None:
        """Note what a registered autoscaler selects."""
        if key in self._known:
            self._known[key] = select

    def selecting(self, namespace: str, pods: Iterable[Object]) -> list[str]:
        """Return the keys of the namespace's autoscalers that select any of the pods, in order."""
        labels = [labels_of(pod) for pod in pods]
        own = ((key, select) for key, select in self._known.items() if key.partition("/")[0] == namespace)
        return sorted(key for key, select in own if select is not None and any(select(each) for each in labels))
