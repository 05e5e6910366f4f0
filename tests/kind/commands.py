"""`mews` as a user starts it, and what Docker has."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from mews.harness.clusters.kind.tools import call

PATIENCE_S = 240.0


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    """`mews`, working in a folder."""
    argv = [sys.executable, "-m", "mews.harness.cli", *words]
    return subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def passed(process: subprocess.Popen[str]) -> str:
    """What it said, when it ended well."""
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    return said


def interrupt(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send it that signal; it ends."""
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0


def until(process: subprocess.Popen[str], holds, what: str) -> None:
    """Wait for that while the process lives."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline_s, f"not within {PATIENCE_S:g} s: {what}"
        threading.Event().wait(0.2)


def docker_has(containers_of: str = "") -> dict[str, list[str]]:
    """Containers, volumes and networks; ``containers_of`` a kind cluster: its containers alone. kind keeps its one
    network between clusters."""
    clusters = ["--filter", f"label=io.x-k8s.kind.cluster={containers_of}"] if containers_of else []
    return {
        "containers": sorted(call(["docker", "ps", "--all", "--quiet", *clusters]).split()),
        "volumes": sorted(call(["docker", "volume", "ls", "--quiet"]).split()),
        "networks": sorted({*call(["docker", "network", "ls", "--format", "{{.Name}}"]).split(), "kind"}),
    }
