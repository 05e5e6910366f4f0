"""A node's drivers where there are sockets: those of others in its folders, and ours in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mews.kube.dra.port import CdiSpec, DraRegistry, DraSocket


class JoinedDraRegistry:
    """A DraRegistry of several."""

    def __init__(self, *parts: DraRegistry) -> None:
        self._parts = parts

    def sockets(self) -> Mapping[str, DraSocket]:
        """Path -> who serves there."""
        return {path: socket for part in self._parts for path, socket in part.sockets().items()}

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have it called whenever a socket or a connection comes or goes in any of them."""
        ends = [part.listen(changed) for part in self._parts]

        def unlisten() -> None:
            for end in ends:
                end()

        return unlisten

    def specs(self) -> Sequence[CdiSpec]:
        """Return all specifications."""
        return [spec for part in self._parts for spec in part.specs()]
