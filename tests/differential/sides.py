"""The two servers: a real etcd and kube-apiserver, and the embedded one, each behind TLS and a token."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import ssl
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mews.harness.kubeconfig_file import write_kubeconfig
from tests.contract.kube_backends import ControlPlane, control_plane_binaries
from tests.differential.ask import Side, ask
from tests.differential.model import Answer, Case, Pair

Cases = Mapping[str, tuple[Case, ...]]
Answers = dict[tuple[str, str], Answer]
_LONGER = 5.0
RECORDED = "1.34"
"""The release whose answers are recorded."""
_LOG = logging.getLogger(__name__)


def lacking() -> str:
    """Why the suite cannot run here; "" when it can."""
    folder = control_plane_binaries()
    if folder is None:
        return "KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver"
    return "" if (folder / "kubectl").exists() else f"{folder} has no kubectl"


@cache
def release() -> str:
    """The release of the real server, which the embedded one then is, too; without one that of its recorded answers."""
    folder = control_plane_binaries()
    if folder is None:
        return RECORDED
    told = subprocess.run([folder / "kube-apiserver", "--version"], capture_output=True, text=True, check=True).stdout
    return ".".join(told.split()[-1].removeprefix("v").split(".")[:2])


def compare(cases: Cases, files: Mapping[str, str], *, namespace: str, pauses: float = 1.0) -> list[Pair]:
    """Put all cases to both servers at once; ``pauses`` lengthens those that cases name."""
    real, ours = asyncio.run(_ask_both(cases, files, namespace, pauses))
    return [Pair(area, case, real[area, case.name], ours[area, case.name]) for area in cases for case in cases[area]]


def compare_settled(
    cases: Cases, files: Mapping[str, str], *, namespace: str, known: Collection[str] = ()
) -> list[Pair]:
    """The same; areas with an unknown difference are asked once more, of new servers and with longer pauses.

    The real server shows what was written to it (definitions, quotas, policies) to its own checks only when its
    informers have it, after a moment that has no end on a busy machine. An answer of before is no difference; one that
    stays with pauses of this length is."""
    pairs = compare(cases, files, namespace=namespace)
    unsettled = {pair.area for pair in pairs if not pair.same and pair.id not in known}
    if not unsettled:
        return pairs
    _LOG.warning("asked again with longer pauses: %s", ", ".join(sorted(unsettled)))
    chosen = {area: members for area, members in cases.items() if area in unsettled}
    again = compare(chosen, files, namespace=namespace, pauses=_LONGER)
    return [pair for pair in pairs if pair.area not in unsettled] + again


def compare_recorded(cases: Cases, files: Mapping[str, str], recorded: Answers, *, namespace: str) -> list[Pair]:
    """Put all cases, which are requests, to ours alone, and compare with what the real server answered once."""
    with tempfile.TemporaryDirectory(prefix="mews-differential-") as folder:
        lay_out(Path(folder, "ours"), files)
        ours = asyncio.run(_ask_ours(cases, Path(folder, "ours"), 0.0)(namespace))
    return [
        Pair(area, case, recorded[area, case.name], plain(ours[area, case.name]))
        for area in cases
        for case in cases[area]
    ]


def plain(answer: Answer) -> Answer:
    """Return an answer as it is written down: tuples are lists there, and ages of many days, which grow by one each
    day, are none."""
    read: Answer = json.loads(json.dumps(answer), object_hook=_without_ages)
    return read


_MANY_DAYS = re.compile(r"(?<![\w.])(\d+y(\d+d)?|\d{3,}d)(?!\w)")


def _without_ages(value: dict[str, Any]) -> dict[str, Any]:
    cells = value.get("cells")
    if isinstance(cells, list):
        shown = [_MANY_DAYS.sub("<days>", cell) if isinstance(cell, str) else cell for cell in cells]
        return {**value, "cells": shown}
    return value


async def _ask_both(cases: Cases, files: Mapping[str, str], namespace: str, pauses: float) -> tuple[Answers, Answers]:
    with tempfile.TemporaryDirectory(prefix="mews-differential-") as folder:
        asked = [_ask_real(cases, Path(folder, "real"), pauses), _ask_ours(cases, Path(folder, "ours"), pauses)]
        for side in ("real", "ours"):
            lay_out(Path(folder, side), files)
        real, ours = await asyncio.gather(*(each(namespace) for each in asked))
        return real, ours


def lay_out(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files that kubectl reads; scripts may be run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755 if name.endswith(".sh") else 0o644)


def real_documents(read: Callable[[Callable[[str], Any]], Any]) -> Any:
    """What ``read`` makes of a real server; it is given what fetches the JSON of a path."""
    binaries = control_plane_binaries()
    assert binaries is not None, lacking()
    plane = ControlPlane(binaries)
    context = ssl._create_unverified_context()
    headers = {"Authorization": f"Bearer {plane.token}", "Accept": "application/json"}

    def fetch(path: str) -> Any:
        request = urllib.request.Request(plane.base_url + path, headers=headers)
        with urllib.request.urlopen(request, context=context) as response:
            return json.load(response)

    try:
        plane.start()
        return read(fetch)
    finally:
        plane.stop()


def _ask_real(cases: Cases, folder: Path, pauses: float) -> Any:
    async def main(namespace: str) -> Answers:
        binaries = control_plane_binaries()
        assert binaries is not None, lacking()
        plane = ControlPlane(binaries)
        try:
            await asyncio.to_thread(plane.start)
            return await _ask(cases, folder, plane.base_url, plane.token, namespace, pauses)
        finally:
            await asyncio.to_thread(plane.stop)

    return main


def _ask_ours(cases: Cases, folder: Path, pauses: float) -> Any:
    async def main(namespace: str) -> Answers:
        from mews.harness.clusters.control_plane.identity import make_identity
        from mews.kube.clock import Clock
        from mews.kube.emulated.apiserver.bootstrap import fresh_store
        from mews.kube.emulated.apiserver.server import ApiServer
        from mews.kube.releases.cluster_release import cluster_release

        identity = make_identity(folder, "openssl")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.certificate, identity.key)
        token = "suite-token"
        store = fresh_store(Clock.wall().now, random.Random(1), release=cluster_release(release()))
        server = ApiServer(store, tokens={token: "admin"}, ssl_context=context)
        await server.start()
        try:
            return await _ask(cases, folder, server.url, token, namespace, pauses)
        finally:
            await server.stop()

    return main


def settle(kubeconfig: Path, namespace: str) -> None:
    """Make that the namespace of its context."""
    settings = json.loads(kubeconfig.read_text(encoding="utf-8"))
    settings["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(json.dumps(settings), encoding="utf-8")


async def _ask(cases: Cases, folder: Path, url: str, token: str, namespace: str, pauses: float) -> Answers:
    import aiohttp

    server = {"server": url, "insecure-skip-tls-verify": True}
    write_kubeconfig(folder / "kubeconfig", server=server, user={"token": token})
    settle(folder / "kubeconfig", namespace)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    binaries = control_plane_binaries() or folder  # requests need no kubectl
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        return await ask(Side(url, token, folder, binaries / "kubectl", session), cases, pauses=pauses)
