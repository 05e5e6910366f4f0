"""The kubelet's checkpoint as the journal sees it: a line for each file that differs from the last."""

from __future__ import annotations

from collections.abc import Callable

from mews.kube.emulated.kubelet.devices import CheckpointStore
from mews.kube.emulated.kubelet.devices.checkpoint import Checkpoint


class JournaledCheckpoint:
    """A CheckpointStore that tells of each save: ``note("checkpoint", entries=[[uid, container, resource, [id]]])``."""

    def __init__(self, store: CheckpointStore, note: Callable[..., object]) -> None:
        self._store = store
        self._note = note

    def load(self) -> Checkpoint:
        """Return the last one saved. Raises CheckpointError."""
        return self._store.load()

    def text(self) -> str:
        """Return the file as others read it. Raises OSError."""
        return self._store.text()

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace it."""
        self._store.save(checkpoint)
        entries = [[held.pod_uid, held.container, held.resource, sorted(held.ids)] for held in checkpoint.holdings]
        self._note("checkpoint", entries=sorted(entries))


class StoredCheckpoint:
    """A KubeletCheckpoint: the same file, as a component on the node reads it."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store

    async def read(self) -> str:
        """Return its text. Raises OSError."""
        return self._store.text()
