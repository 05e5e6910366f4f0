"""A node that no driver can reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mews.kube.dra.port import CdiSpec, DraSocket


class NoDrivers:
    """A DraRegistry without sockets."""

    def sockets(self) -> Mapping[str, DraSocket]:
        """There are none."""
        return {}

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Nothing ever changes."""
        return lambda: None

    def specs(self) -> Sequence[CdiSpec]:
        """There are none."""
        return ()
