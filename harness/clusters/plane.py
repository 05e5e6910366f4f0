"""The Kubernetes side of a wall-clock world: its API server and what of its control plane is not ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from mews.harness.ports.fence import Fence
from mews.kube.client.port import KubeApi
from mews.kube.component import Runnable
from mews.kube.emulated.apiserver.wire.kubelets import KubeletDirectory

Program = Callable[[Fence], Runnable]
"""Makes one incarnation of a component that is a program of its own."""


class Plane(Protocol):
    """``embedded``: our store and API server; ``control-plane``: the real ones."""

    name: str

    @property
    def url(self) -> str:
        """Where the API server is.

        Raises RuntimeError before it is opened.
        """
        ...

    async def open(self, kubelets: KubeletDirectory, hosts: Sequence[str]) -> None:
        """Make the API answer; it reaches the kubelets of the hosts by that directory.

        Raises Lacks.
        """
        ...

    def kube(self, actor: str) -> KubeApi:
        """A client of its own for each actor; ``close`` closes it."""
        ...

    def write_kubeconfig(self, path: Path) -> None:
        """The administrator's, readable by its owner alone."""
        ...

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Where the API server finds that host's kubelet; None where it needs no address."""
        ...

    def program(
        self, component: str, options: Mapping[str, Any], *, extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """The real program that takes the place of our ``default-scheduler`` or ``controller-manager``; None where
        ours runs, also for options that the real one cannot be given. ``extenders`` are the scheduler's."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


def write_kubeconfig(path: Path, *, server: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    """A kubeconfig of one context, readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mews", "cluster": dict(server)}],
        "users": [{"name": "admin", "user": dict(user)}],
        "contexts": [{"name": "mews", "context": {"cluster": "mews", "user": "admin"}}],
        "current-context": "mews",
    }
    write_own(path, json.dumps(content, indent=2) + "\n")


def write_own(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, also where it was there before."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
