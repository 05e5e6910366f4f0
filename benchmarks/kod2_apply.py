"""A thousand TFJobs applied at once to the embedded API server, in wall-clock time: how long until each has a
condition, and is any request refused?

``python -m benchmarks.kod2_apply [--jobs 1000] [--clients 16]``: a cluster of three nodes with the elastic operator
(``mews up``), jobs of one worker of a core each, sent over HTTP by so many connections as fast as they are answered. A
server that is too busy may ask for patience (429), as Kubernetes' does: that counts as refused.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.common import progress, report
from benchmarks.kod2_hostile import tfjob
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import name_of
from mews.kube.client.http import HttpKube
from mews.systems.kod2.install import TFJOBS
from tests.upstream.up import cluster

WITHIN_S = 1800.0


def scenario(folder: Path) -> Path:
    """Three nodes and the elastic operator."""
    file = folder / "apply.yaml"
    doc = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": "apply"},
        "hardware": "three-nodes",
        "stack": {"kubecomp": None, "defaultScheduler": None, "kod2": {}},
        "steps": [{"sleep": "1s"}],
    }
    file.write_text(yaml.safe_dump(doc), encoding="utf-8")
    return file


async def apply(kube: HttpKube, jobs: int, clients: int) -> tuple[float, float, list[str]]:
    """Return seconds until all are answered, until all have a condition, and what was refused."""
    left = iter(range(jobs))
    refused: list[str] = []
    begin = time.monotonic()

    async def client() -> None:
        for number in left:
            job = tfjob(f"j-{number}", workers=1, cpu="1", steps=100_000)
            try:
                await kube.create(TFJOBS, job, namespace="default")
            except (ApiError, UnavailableError) as error:
                refused.append(str(error))

    await asyncio.gather(*(client() for _ in range(clients)))
    answered_s = time.monotonic() - begin
    progress(f"{jobs} jobs answered after {answered_s:.1f} s, {len(refused)} refused")
    async with asyncio.timeout(WITHIN_S):
        while without := await _without_condition(kube):
            progress(f"{time.monotonic() - begin:.0f} s: {len(without)} have no condition yet")
            await asyncio.sleep(1.0)
    return answered_s, time.monotonic() - begin, refused


async def _without_condition(kube: HttpKube) -> list[str]:
    found = (await kube.list(TFJOBS, namespace="default")).items
    return [name_of(job) for job in found if not (job.get("status") or {}).get("conditions")]


def main() -> None:
    """Three figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()

    async def work(kubeconfig: str) -> tuple[float, float, list[str]]:
        kube = HttpKube.from_kubeconfig(kubeconfig, None)
        try:
            return await apply(kube, options.jobs, options.clients)
        finally:
            await kube.close()

    with tempfile.TemporaryDirectory() as folder, cluster(["--scenario", str(scenario(Path(folder)))]) as ready:
        answered_s, seen_s, refused = asyncio.run(work(ready["kubeconfig"]))
    for text in refused[:3]:
        progress(text)
    report("kod2_apply_answered", answered_s, "s")
    report("kod2_apply_all_have_a_condition", seen_s, "s")
    report("kod2_apply_refused", len(refused), f"of {options.jobs}")


if __name__ == "__main__":
    main()
