"""``mews proxy --kubeconfig``: faults between any program and the API server of any kubeconfig."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.certificates import make_certificates
from mews.emulator.serve import parse_listen
from mews.harness import terminal
from mews.harness.commands.claims import claim, clean_up
from mews.harness.commands.instances import MARK, forget
from mews.harness.commands.logs import to_stderr
from mews.harness.commands.outputs import check_outputs
from mews.harness.commands.session_words import values_of
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.kubeconfig_file import check_kubeconfig
from mews.harness.termination import TerminationGuard
from mews.own_files import make_own_folder, write_own


class ApiProxyArguments(Struct, frozen=True):
    """The options as given."""

    kubeconfig: Path
    context: str | None
    faults: tuple[str, ...]
    component: str
    name: str
    folder: Path | None
    listen: str
    allow_hosts: tuple[str, ...]
    seed: int
    ready: Path | None
    as_json: bool


def fault_of(text: str) -> dict[str, Any]:
    """``KIND[,NAME=VALUE]…`` as a step of a scenario adds it.

    Raises BadInputError.
    """
    from mews.harness.api_faults.registry import parse_api_fault

    kind, *words = text.split(",")
    try:
        spec = {"kind": kind.strip(), **values_of([word.strip() for word in words])}
        parse_api_fault(spec)
    except ValueError as error:
        raise BadInputError(f"--fault {text}: {error}") from error
    return spec


def stand_before_the_api(given: ApiProxyArguments) -> int:
    """Serve until a signal ends it.

    Raises BadInputError, RequirementError.
    """
    check_kubeconfig(given.kubeconfig, given.context)
    faults = [fault_of(text) for text in given.faults]
    check_outputs({"--ready": given.ready})
    try:
        place = parse_listen(given.listen)
    except ValueError as error:
        raise BadInputError(str(error)) from error
    instance = claim(given.name, given.folder)
    os.environ[MARK] = instance.folder
    to_stderr()
    try:
        with TerminationGuard(f"mews proxy --name {given.name}", lambda: clean_up(instance)) as guard:
            asyncio.run(_serve(given, place, faults, Path(instance.folder), guard))
    finally:
        forget(instance.name)
    return 0


async def _serve(
    given: ApiProxyArguments,
    place: tuple[str, int],
    specs: Sequence[Mapping[str, Any]],
    folder: Path,
    guard: TerminationGuard,
) -> None:
    from mews.harness.api_faults.control import ApiFaults
    from mews.harness.api_faults.proxy import ApiProxy, connection_of
    from mews.harness.journal import LINES_KEPT, Journal
    from mews.harness.live.journal_file import JournalFile
    from mews.harness.live.proxy_session import ProxySession
    from mews.harness.live.server import SessionServer
    from mews.kube.api.errors import ApiError, UnavailableError
    from mews.kube.client.http import HttpKube
    from mews.kube.clock import Pace, wall_now

    ended, loop = guard.watch(), asyncio.get_running_loop()
    start_s = loop.time()
    journal = Journal(lambda: loop.time() - start_s)
    journal.keep_latest(LINES_KEPT)
    kube = HttpKube.from_kubeconfig(str(given.kubeconfig), given.context)
    faults = ApiFaults(kube, journal, Pace(), random.Random(given.seed))
    faults.stand_between(given.component)
    tls = folder / "tls"
    make_own_folder(tls)
    certificates = await asyncio.to_thread(make_certificates, tls, wall_now(), given.allow_hosts)
    upstream = connection_of(given.kubeconfig, given.context)
    proxy = ApiProxy(given.component, faults, upstream, _held(place), certificates, names=given.allow_hosts)
    proxy.write_kubeconfig(folder / "kubeconfig")
    file = JournalFile(folder, journal)
    server = SessionServer(ProxySession(given.name, given.component, kube.base_url, faults, journal))
    written = [folder / "ready.json", *([given.ready] if given.ready is not None else [])]
    try:
        try:
            for spec in specs:
                await faults.add(given.component, spec)
        except (ApiError, UnavailableError) as error:
            raise RequirementError(f"--kubeconfig {given.kubeconfig}: {error}") from error
        await proxy.open()
        await server.start()
        ready = {
            "api": proxy.url,
            "kubeconfig": str(folder / "kubeconfig"),
            "ca": str(certificates.authority),
            "upstream": kube.base_url,
            "component": given.component,
            "session": server.ready(),
            "pid": os.getpid(),
        }
        for path in written:
            write_own(path, json.dumps(ready, indent=2) + "\n")
        _report(ready, given)
        await ended.wait()
    finally:
        faults.close()
        await server.close()
        await proxy.close()
        await kube.close()
        file.close()
        for path in (*written, folder / "kubeconfig"):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, tls, ignore_errors=True)


def _held(place: tuple[str, int]) -> Any:
    from mews.listening.ports import held_port

    host, port = place
    try:
        return held_port(host, port)
    except OSError as error:
        raise BadInputError(f"--listen {host}:{port}: {error.strerror}") from error


def _report(ready: Mapping[str, Any], given: ApiProxyArguments) -> None:
    if given.as_json:
        terminal.out(json.dumps(ready) + "\n")
    else:
        named = "" if given.name == "mews" else f" --name {given.name}"
        terminal.out(
            f"proxy: {ready['api']} in front of {ready['upstream']}\n"
            f"  for the program: export KUBECONFIG={ready['kubeconfig']}\n"
            f"  add a fault: mews fault add{named} lagging-watch by_s=10\n"
            f"  clear all faults: mews fault clear{named}\n"
            "  all faults: mews list faults component\n"
        )
    sys.stdout.flush()
