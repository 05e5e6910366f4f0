"""``python -m ci.elsewhere``: does the installed package judge a chassis on this system? Run where no Linux is.

It serves a chassis of ours, right and wrong, each as a process, and judges it by another one: a guard, a restore file
and all reports included. Exits with 1 and a line for each thing that is not as it must be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MEWS = (sys.executable, "-m", "mews.harness")
CASES: Sequence[tuple[str, int, str]] = (
    ("", 0, "passed"),
    ("byte-order-mark", 1, "failed"),
    ("detach-lies", 1, "failed"),
)
"""What is wrong with the chassis, exit code and verdict."""
REPORTS = ("json", "html", "junit", "sarif")
DEVICE = "000100"
ENDS_S = 30.0
JUDGED_S = 300.0


@contextmanager
def served(wrong: str, folder: Path) -> Iterator[str]:
    """Provide a chassis' address."""
    options = ["--wrong", wrong] if wrong else []
    command = [*MEWS, "serve", "--dialect", "h3api", *options]
    server = subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        yield next((word.rstrip(",") for word in line.split() if word.startswith("http://")), "")
    finally:
        server.terminate()
        server.wait(ENDS_S)
        server.stdout.close()


def environment(folder: Path) -> dict[str, str]:
    """Return this one, with all state below that folder."""
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state")}


def complaints(wrong: str, code: int, verdict: str, folder: Path) -> Iterator[str]:
    """Judge one chassis; what is not as it must be."""
    files = {name: folder / f"report.{name}" for name in REPORTS}
    options = [each for name, file in files.items() for each in (f"--{name}", str(file))]
    with served(wrong, folder) as url:
        if not url:
            yield "mews serve says no address"
            return
        command = [*MEWS, "conform", url, "--allow-changes", "--device", DEVICE, *options]
        done = subprocess.run(command, env=environment(folder), capture_output=True, timeout=JUDGED_S, check=False)
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode != code:
        yield f"exit code {done.returncode}, must be {code}: {said[-2000:]}"
    for name, file in files.items():
        if not file.is_file() or not file.stat().st_size:
            yield f"--{name}: no report"
    if files["json"].is_file():
        report = json.loads(files["json"].read_text(encoding="utf-8"))
        if report["verdict"] != verdict:
            yield f"the verdict is {report['verdict']}, must be {verdict}"
        kept = list((folder / "state").rglob("*.json"))
        if bool(kept) != bool(report["not_restored"]):
            yield f"{len(kept)} restore files are left, and {len(report['not_restored'])} devices not restored"


def main() -> int:
    """Return all cases; 1 where something is not as it must be."""
    wrongs = 0
    for wrong, code, verdict in CASES:
        with tempfile.TemporaryDirectory(prefix="mews-elsewhere-") as folder:
            found = list(complaints(wrong, code, verdict, Path(folder)))
        wrongs += len(found)
        sys.stdout.write(f"{wrong or 'right'}: {'; '.join(found) or 'as it must be'}\n")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
