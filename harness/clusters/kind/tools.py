"""The programs that a kind cluster needs, and how they are run. Blocking: called in threads."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from mews.harness.errors import RequirementError

NODE_IMAGE = "MEWS_KIND_NODE_IMAGE"
"""Environment: the node image, where kind's own cannot be had or another Kubernetes is wanted."""
BASE_IMAGE = "MEWS_BASE_IMAGE"
"""Environment: what the component image is built on; default ``python:3.12-slim``."""

_GET = {
    "docker": "install Docker Engine (https://docs.docker.com/engine/install) and let this user reach it",
    "kind": "install kind (https://kind.sigs.k8s.io/docs/user/quick-start) and put it on PATH",
}


def needed() -> None:
    """Raise RequirementError with the first thing that a kind cluster lacks here: docker, kind, or the right to use
    Docker."""
    for name in _GET:
        check(name)


def check(name: str) -> None:
    """Raise RequirementError where docker or kind is not on PATH, or Docker does not answer."""
    if shutil.which(name) is None:
        raise RequirementError(f"--cluster kind: {name} is not on PATH: {_GET[name]}")
    if name == "docker":
        _check_docker()


def _check_docker() -> None:
    done = _run(["docker", "info", "--format", "{{.ServerVersion}}"], 30.0)
    if done.returncode != 0:
        words = _last_words(done)
        raise RequirementError(
            f"--cluster kind: Docker does not respond: {words}; start it, or add this user to its group"
        )


def call(argv: Sequence[str], *, timeout_s: float = 120.0, env: Mapping[str, str] | None = None) -> str:
    """Standard output of a program that must succeed.

    Raises RequirementError with its last words.
    """
    done = _run(argv, timeout_s, env)
    if done.returncode != 0:
        raise RequirementError(f"{' '.join(argv[:4])} … failed: {_last_words(done)}")
    return done.stdout


def _run(
    argv: Sequence[str], timeout_s: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    try:
        return subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, env=environment,
            start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RequirementError(f"{' '.join(argv[:4])} … did not end within {timeout_s:g} s") from error
    except OSError as error:
        raise RequirementError(f"{argv[0]}: cannot be started: {error.strerror}") from error


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return where kind names its error, that: a Go stack follows it."""
    output = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    named = [line.removeprefix("ERROR: ") for line in output if line.startswith("ERROR: ")]
    return " / ".join(named or output[-3:]) or f"exit code {done.returncode}"
