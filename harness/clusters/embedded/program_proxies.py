"""The proxies between programs of their own and the API of a cluster of emulated nodes, each with its kubeconfig."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.harness.api_faults.control import ApiFaults
from mews.harness.clusters.ports import ProcessesPort

if TYPE_CHECKING:
    from mews.harness.api_faults.proxy import ApiProxy


class ProgramProxies:
    """``wanted`` says which components' programs get one: whoever cannot have faults talks to the API itself.

    A proxy is made with the program, which needs the kubeconfig, and listens from ``open`` on.
    """

    def __init__(
        self,
        faults: ApiFaults,
        processes: ProcessesPort | None,
        wanted: Callable[[str], bool] = lambda component: False,
    ) -> None:
        self._faults = faults
        self._processes = processes
        self._wanted = wanted
        self._proxies: dict[str, ApiProxy] = {}

    def kubeconfig(self, component: str) -> Path | None:
        """Return where that component's kubeconfig lies once a proxy stands between; None where none will."""
        if self._processes is None or not self._wanted(component):
            return None
        return self._processes.scratch / "proxies" / f"{component.replace('/', '-')}.kubeconfig"

    def stand_between(self, component: str) -> None:
        """Make the proxy, where one is wanted, and write its kubeconfig."""
        path = self.kubeconfig(component)
        if path is None or self._processes is None or component in self._proxies:
            return
        # aiohttp: nothing that a virtual run may load.
        from mews.harness.api_faults.proxy import ApiProxy, connection_of
        from mews.listening.ports import held_port

        upstream = connection_of(Path(self._processes.ready()["kubeconfig"]))
        proxy = ApiProxy(component, self._faults, upstream, held_port(), self._processes.certificates)
        proxy.write_kubeconfig(path)
        self._faults.stand_between(component)
        self._proxies[component] = proxy

    def seen_by(self, component: str) -> tuple[dict[str, Any], str | None]:
        """Return what ``ready`` says to that component, and whom it trusts as the API: the proxy, where one stands
        there."""
        assert self._processes is not None
        ready, authority = self._processes.ready(), self._processes.authority()
        self.stand_between(component)
        proxy = self._proxies.get(component)
        if proxy is None:
            return ready, authority
        return {**ready, "api": proxy.url, "kubeconfig": str(self.kubeconfig(component))}, proxy.authority

    def ready(self) -> dict[str, str]:
        """Component -> where its proxy listens."""
        return {component: proxy.url for component, proxy in self._proxies.items()}

    async def open(self) -> None:
        """Listen."""
        for proxy in self._proxies.values():
            await proxy.open()

    async def close(self) -> None:
        """Close all."""
        for proxy in self._proxies.values():
            await proxy.close()
