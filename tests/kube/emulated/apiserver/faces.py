"""The served API as foreign programs meet it: in a thread of its own, over http without credentials or over TLS with
a token, with a kubeconfig."""

from __future__ import annotations

import asyncio
import base64
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mews.certificates import make_certificates
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import User
from tests.kube.emulated.apiserver.serving import FakeKubelets

TOKEN = "the-administrators"
DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True)
class Face:
    """Where the API is, and how to be let in. ``authority`` and ``token`` are empty over http."""

    url: str
    kubeconfig: Path
    authority: Path | None
    token: str
    server: ApiServer
    store: Store
    loop: asyncio.AbstractEventLoop

    def run(self, step: Callable[[], Any]) -> Any:
        """Do something on the server's own loop."""

        async def act() -> Any:
            return step()

        return self.wait(act())

    def wait(self, action: Coroutine[Any, Any, Any]) -> Any:
        """Await something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(action, self.loop).result(DEADLINE_S)


@contextmanager
def face(
    folder: Path, *, tls: bool, tokens: dict[str, str | User] | None = None, patience_s: float = 30.0
) -> Iterator[Face]:
    """A server for the length of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        opening = _open(folder, tokens or ({TOKEN: "admin"} if tls else None), tls=tls, patience_s=patience_s)
        opened = asyncio.run_coroutine_threadsafe(opening, loop).result(DEADLINE_S)
        try:
            yield opened
        finally:
            opened.wait(opened.server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_S)
        loop.close()


async def _open(folder: Path, tokens: dict[str, str | User] | None, *, tls: bool, patience_s: float) -> Face:
    clock = Clock.wall()
    certificates = make_certificates(folder, clock.now()) if tls else None
    store = fresh_store(clock.now, random.Random(1))
    context = certificates.server_context() if certificates else None
    server = ApiServer(store, kubelets=FakeKubelets(), tokens=tokens, ssl_context=context, patience_s=patience_s)
    await server.start()
    where: dict[str, Any] = {"server": server.url}
    if certificates is not None:
        where["certificate-authority-data"] = base64.b64encode(certificates.authority.read_bytes()).decode()
    token = next(iter(tokens or ()), "")
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, server=where, user={"token": token} if token else {})
    authority = certificates.authority if certificates else None
    return Face(server.url, kubeconfig, authority, token, server, store, asyncio.get_running_loop())
