"""Beside a component in its pod: ``python3 -m mews.harness.clusters.real.api_sidecar SEED SPEED``, which stands between
it and the API and plays the component's faults.

The component's kubeconfig is ``FOLDER/kubeconfig``, there once the proxy listens on the pod's loopback. A harness asks
by files, as it asks the keeper by its own: ``ask-N`` holds ``{"add": spec, "version": V}`` or ``{"clear": true}``, and
``answer-N`` then "" or why not, in one line. What happens is printed, a line of the journal each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.proxy import ApiProxy
from mews.harness.journal import Journal, Line
from mews.kube.client.connection import ApiConnection
from mews.kube.client.in_cluster import in_cluster_access, in_cluster_kube
from mews.kube.clock import Pace, rest
from mews.listening.ports import held_port
from mews.own_files import write_own

FOLDER = Path("/run/mews-api")
KUBECONFIG = FOLDER / "kubeconfig"
READY = ("test", "-e", str(KUBECONFIG))
"""What ends well once the proxy listens."""
_COMPONENT = "component"
"""Who has the faults here; the harness knows its name."""
_LOOK_S = 0.05


def asking(number: int, question: str) -> tuple[str, ...]:
    """Return what is run in the container to ask a question, and prints the answer."""
    ask, answer = f"{FOLDER}/ask-{number}", f"{FOLDER}/answer-{number}"
    wait = f"n=0; while [ ! -e {answer} ] && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.02; done; cat {answer}"
    return ("sh", "-c", f'printf %s "$0" > {ask}.part && mv {ask}.part {ask} && {wait}', question)


class Sidecar:
    """Takes questions out of a folder."""

    def __init__(self, faults: ApiFaults, folder: Path = FOLDER) -> None:
        self._faults = faults
        self._folder = folder
        self._asked = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await rest(_LOOK_S)

    async def look(self) -> None:
        """Answer what has been asked, one question after the other."""
        while (ask := self._folder / f"ask-{self._asked}").exists():
            part = self._folder / f"answer-{self._asked}.part"
            write_own(part, await self._answer(ask.read_text(encoding="utf-8")))
            part.rename(self._folder / f"answer-{self._asked}")
            self._asked += 1

    async def _answer(self, question: str) -> str:
        try:
            asked: dict[str, Any] = json.loads(question)
            if "add" in asked:
                await self._faults.add(_COMPONENT, asked["add"], version=str(asked["version"]))
            else:
                self._faults.clear()
        except ValueError as error:
            return " ".join(str(error).split())
        return ""


def print_line(line: Line) -> None:
    """For whoever follows the container's log."""
    sys.stdout.write(line.as_json() + "\n")
    sys.stdout.flush()


async def serve(seed: str, speed: float) -> None:
    """Until cancelled."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    journal = Journal(lambda: loop.time() - start_s)
    journal.listen(print_line)
    kube = in_cluster_kube("mews-api-faults")
    faults = ApiFaults(kube, journal, Pace(speed), random.Random(seed))
    faults.stand_between(_COMPONENT)
    url, token, trusted = in_cluster_access()
    proxy = ApiProxy(_COMPONENT, faults, ApiConnection(url, token=token, ssl_context=trusted), held_port())
    await proxy.open()
    proxy.write_kubeconfig(KUBECONFIG)
    KUBECONFIG.chmod(0o644)  # it holds no token: who is in the pod may read it, whatever user a component runs as
    try:
        await Sidecar(faults).run()
    finally:
        faults.close()
        await proxy.close()
        await kube.close()


def main(words: Sequence[str]) -> None:
    """The command line."""
    seed, speed = words
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(seed, float(speed)))


if __name__ == "__main__":
    main(sys.argv[1:])
