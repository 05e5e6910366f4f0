"""Plays cases to the public extender, as a process before a served API, and to ours in virtual time."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.fence import Fence
from mews.harness.ports.services import LocalServices
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.extender import GpuShareExtender
from tests.kube.emulated.apiserver.faces import face
from tests.programs import foreign_program
from tests.systems.gpushare.public.objects import arrive, create, end
from tests.upstream.building import NotBuiltError
from tests.upstream.oracles.model import Answer, Case

_BATCH, _AT_ONCE, _READY_S = 50, 10, 60.0
PROGRAM = "gpushare/gpushare-sche-extender"


def public(cases: Sequence[Case]) -> Sequence[Any]:
    """What the public extender (c0b6141) answers. Raises NotBuiltError where it is not here."""
    try:
        program = foreign_program(PROGRAM)
    except pytest.skip.Exception as missing:
        raise NotBuiltError(str(missing)) from None
    batches = [cases[first : first + _BATCH] for first in range(0, len(cases), _BATCH)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # each program waits most of the time: client-go lets it ask slowly
        return [answer for answers in pool.map(lambda some: _public(program, some), batches) for answer in answers]


def _public(program: Path, cases: Sequence[Case]) -> list[Any]:
    """All cases in one cluster, each with names of its own; the extender is started anew between their two parts."""
    prefixed = [(f"c{number}-", case) for number, case in enumerate(cases)]
    with TemporaryDirectory(prefix="mews-gpushare-") as folder, face(Path(folder), tls=False) as api:
        kube = InProcessKube(api.store, "admin")

        async def made() -> None:
            for prefix, case in prefixed:
                await create(kube, case, prefix)

        async def ended() -> None:
            for prefix, case in prefixed:
                await end(kube, case, prefix)

        async def arrived(url: str, part: str) -> list[list[Any]]:
            async def post(path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
                return await asyncio.to_thread(_posted, f"{url}{path}", body)

            return [await arrive(kube, post, case, case[part], prefix) for prefix, case in prefixed]

        def part(name: str) -> list[list[Any]]:
            with _running(program, api.kubeconfig) as url:
                return asyncio.run_coroutine_threadsafe(arrived(url, name), api.loop).result()

        api.wait(made())
        first = part("arrivals")
        api.wait(ended())
        return [_answer(one, other) for one, other in zip(first, part("late"), strict=True)]


@contextmanager
def _running(program: Path, kubeconfig: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"PATH": os.defpath, "KUBECONFIG": str(kubeconfig), "PORT": str(port), "LOG_LEVEL": "error"}
    process = subprocess.Popen([program], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + _READY_S
        while True:
            try:
                with urllib.request.urlopen(f"{url}/version", timeout=5):
                    break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise NotBuiltError(f"{program.name}: does not serve on port {port}") from None
                time.sleep(0.05)  # the program tells nobody that it serves
        yield url
    finally:
        process.kill()
        process.wait()


def _posted(url: str, body: Mapping[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def ours(case: Case) -> Answer:
    """What our extender answers."""
    parts: list[list[Any]] = []

    async def main() -> None:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store")), "system:admin")
        services = LocalServices(stream(1, "services"))

        async def post(path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
            reply = await services.call("x", "POST", path, json.dumps(body).encode())
            return reply.status, json.loads(reply.body)

        await create(kube, case, "")
        for name in ("arrivals", "late"):
            fence = Fence()
            context = Context(kube, clock, stream(1, "x"), logging.getLogger("gpushare-oracle"))
            extender = GpuShareExtender(context, GpuShareConfig(), services.port("x", fence))
            task = asyncio.create_task(extender.run())
            await asyncio.sleep(1.0)
            parts.append(await arrive(kube, post, case, case[name], ""))
            fence.cut()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if name == "arrivals":
                await end(kube, case, "")

    run_virtual(main)
    return _answer(*parts)


def _answer(first: list[Any], late: list[Any]) -> Answer:
    pods = [*first, *late]
    bound = sum(bool(pod.get("bind", {}).get("node")) for pod in pods)
    verdict = "all bound" if bound == len(pods) else "some bound" if bound else "none bound"
    return {"verdict": verdict, "arrivals": first, "late": late}
