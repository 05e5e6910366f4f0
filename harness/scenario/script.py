"""``script``: a program of the user's beside the cluster, as a test's client is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

from mews.harness.ports.cluster import ReachableCluster
from mews.harness.scenario.actions import Step
from mews.harness.scenario.errors import Failure, StepFailedError
from mews.harness.scenario.match import match, show
from mews.harness.scenario.step_context import StepContext
from mews.own_files import write_own

_MOST_BYTES = 1_000_000
"""Of what it prints; the rest is left out."""


async def run_script(stage: StepContext, step: Step) -> Any:
    """Run it to its end: ``{"exitCode", "stdout", "stderr"}``. What it has started ends with it.

    Raises StepFailedError where it does not end as is said, in time, or cannot be started.
    """
    action = step.script
    assert action is not None
    shown = action.content or " ".join(action.argv)
    about = f"script {shown.strip().splitlines()[0][:80]!r}"
    timeout_s = stage.remaining_s(step.timeout if step.timeout is not None else stage.scenario.step_timeout)
    with tempfile.TemporaryDirectory(prefix="mews-script-") as folder:
        env = {**os.environ, **_environment(stage, Path(folder)), **action.env}
        try:
            process = await asyncio.create_subprocess_exec(
                *action.argv,
                cwd=stage.scenario.folder,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise StepFailedError(Failure(f"{about} to start", f"{action.argv[0]}: {error.strerror}")) from error
        try:
            async with asyncio.timeout(timeout_s):
                out, err = await process.communicate()
        except TimeoutError:
            raise StepFailedError(Failure(f"{about} to end", "it is still running", timeout_s)) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    seen = {"exitCode": process.returncode, "stdout": _text(out), "stderr": _text(err)}
    wanted: dict[str, Any] = {"exitCode": action.exit_code}
    wanted |= {key: p for key, p in (("stdout", action.stdout), ("stderr", action.stderr)) if p is not None}
    wrong = match(wanted, seen)
    if wrong is not None:
        last = _text(err).strip().splitlines()[-5:]
        raise StepFailedError(Failure(f"{about} to end with {show(wanted)}", str(wrong), related=tuple(last)))
    return seen


def _environment(stage: StepContext, folder: Path) -> dict[str, str]:
    """Return what a client needs: the kubeconfig, and as ``mews up`` writes it where everything is (``MEWS_READY``)."""
    cluster: Any = stage.cluster
    reachable: ReachableCluster = cluster
    ready = reachable.ready()
    file = folder / "ready.json"
    write_own(file, json.dumps(ready, indent=1))
    found = {
        "MEWS_READY": str(file),
        "MEWS_API": str(ready["api"]),
        "MEWS_CLUSTER": cluster.name,
        "MEWS_SCENARIO": stage.scenario.name,
        "MEWS_SPEED": f"{cluster.pace.speed:g}",
    }
    if ready.get("kubeconfig"):
        found["KUBECONFIG"] = str(ready["kubeconfig"])
    if ready.get("context"):
        found["MEWS_CONTEXT"] = str(ready["context"])
    return found


def _text(output: bytes) -> str:
    return output[:_MOST_BYTES].decode("utf-8", "replace")
