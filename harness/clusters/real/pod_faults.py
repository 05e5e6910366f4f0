"""The faults between components in pods and the API: what ``ApiFaults`` is where they run here."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from mews.harness.api_faults.registry import parse_api_fault
from mews.harness.clusters.real.api_sidecar import asking
from mews.harness.clusters.real.following import follow_lines
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.api_sidecar import SIDECAR
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.resources import NAMESPACES
from mews.kube.client.port import KubeApi
from mews.names import must_be

_OURS = ("t", "layer", "actor", "event")


class PodFaults:
    """``pods`` finds the pod of each component that is ``struck``; the journal gets what their proxies print."""

    def __init__(
        self,
        kube: KubeApi,
        namespace: str,
        journal: Journal,
        pods: Callable[[], Mapping[str, str]],
        struck: frozenset[str],
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._journal = journal
        self._pods = pods
        self._struck = struck
        self._asked: dict[str, int] = {}
        self._standing: dict[str, dict[str, dict[str, Any]]] = {}
        self._numbers: dict[tuple[str, str], str] = {}
        self._following: list[asyncio.Task[None]] = []

    def clients(self) -> list[str]:
        """Return the components that may have faults, sorted."""
        return sorted(name for name in self._pods() if name.partition("/")[0] in self._struck)

    def follow(self) -> None:
        """Hear what the proxies do from now on."""
        self._following = [asyncio.create_task(self._follow(name)) for name in self.clients()]

    async def add(self, component: str, spec: Mapping[str, Any]) -> None:
        """Put a fault in place.

        Raises ValueError naming what is allowed, RequirementError where its pod cannot be reached.
        """
        if component not in self.clients():
            raise ValueError(f"component {component!r}: {must_be(component, self.clients())}")
        parse_api_fault(spec)
        version = (await self._kube.list(NAMESPACES, limit=1)).resource_version
        await self._ask(component, {"add": dict(spec), "version": version})

    async def clear(self, component: str | None = None) -> None:
        """Take away those of one component, or all."""
        for name in self.clients() if component is None else [component]:
            await self._ask(name, {"clear": True})

    def listed(self) -> dict[str, list[dict[str, Any]]]:
        """Component -> the faults in place there, as a chassis lists its own."""
        return {name: list(found.values()) for name, found in sorted(self._standing.items()) if found}

    async def close(self) -> None:
        """Undo all, and hear no more."""
        with contextlib.suppress(RequirementError, ValueError):
            await self.clear()
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _ask(self, component: str, question: Mapping[str, Any]) -> None:
        number = self._asked[component] = self._asked.get(component, -1) + 1
        command = asking(number, json.dumps(question))
        try:
            done = await self._kube.exec(self._namespace, self._pods()[component], command, container=SIDECAR)
        except (ApiError, UnavailableError) as error:
            raise RequirementError(f"{component}: its proxy cannot be reached: {error}") from error
        if done.exit_code != 0:
            raise RequirementError(
                f"{component}: its proxy does not answer: {done.stderr.decode('utf-8', 'replace').strip()}"
            )
        if refusal := done.stdout.decode("utf-8"):
            raise ValueError(refusal)

    async def _follow(self, component: str) -> None:
        await follow_lines(
            lambda: self._kube.log(self._namespace, self._pods()[component], container=SIDECAR, follow=True),
            lambda line: self._note(component, line),
        )

    def _note(self, component: str, text: bytes) -> None:
        try:
            row: dict[str, Any] = json.loads(text)
            event, own = row["event"], (component, row["fault"])
        except (ValueError, LookupError, TypeError):
            return  # no line of the journal: a warning of the interpreter, perhaps
        # Each proxy counts its own faults: those of one cluster have numbers of their own.
        number = self._numbers.setdefault(own, f"a{len(self._numbers) + 1}")
        fields = {**{key: value for key, value in row.items() if key not in _OURS}, "fault": number}
        standing = self._standing.setdefault(component, {})
        if event == "cleared":
            standing.pop(number, None)
        elif event == "added":
            standing[number] = {key: fields[key] for key in ("fault", "kind", "spec")}
        self._journal.write("fault", component, event, **fields)
