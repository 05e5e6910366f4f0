"""The specs of upstream's suite that are played here: the lists, and one run of them."""

from __future__ import annotations

import os
import random
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SERIAL = "[Serial]"
SLOW = "[Slow]"
"""Minutes long: no daily sample has them."""
_TAGS = re.compile(r" \[(It|BeforeEach|AfterEach|DeferCleanup[^\]]*)\] ")
_LABELS = re.compile(r" \[sig-[^\]]*\]$")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the suite itself reports of a spec: ``passed``, ``failed`` or ``skipped``."""

    spec: str
    verdict: str
    reason: str = ""


def listed(file: str) -> tuple[str, ...]:
    """The specs of a list: one a line; ``#`` begins a remark."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    return tuple(line.partition("  #")[0].strip() for line in lines if line.strip() and not line.startswith("#"))


def reasons(file: str) -> dict[str, str]:
    """Spec -> the remark behind it."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    parts = (line.partition("  #") for line in lines if line.strip() and not line.startswith("#"))
    return {name.strip(): remark.strip() for name, _, remark in parts}


def sample(specs: Sequence[str], count: int, seed: int) -> list[str]:
    """So many of them, drawn by seed, in the list's order."""
    drawn = set(random.Random(seed).sample(list(specs), min(count, len(specs))))
    return [spec for spec in specs if spec in drawn]


def focus(specs: Sequence[str]) -> str:
    """The regular expression by which ginkgo runs these alone."""
    return "|".join(re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", spec) + r"(?: |$)" for spec in specs)


def play(program: Path, kubeconfig: Path, specs: Sequence[str], out: Path, *, jobs: int = 1) -> list[Outcome]:
    """Run them with nothing but KUBECONFIG: those that may run beside others in that many processes, then the rest."""
    beside, alone = [s for s in specs if SERIAL not in s], [s for s in specs if SERIAL in s]
    parts = [part for part in (beside[number::jobs] for number in range(jobs)) if part]
    found: list[Outcome] = []
    with ThreadPoolExecutor(max(len(parts), 1)) as pool:
        folders = [out / f"beside-{number}" for number in range(len(parts))]
        for outcomes in pool.map(lambda each: _play(program, kubeconfig, *each), zip(parts, folders, strict=True)):
            found += outcomes
    if alone:
        found += _play(program, kubeconfig, alone, out / "alone")
    return found


def _play(program: Path, kubeconfig: Path, specs: Sequence[str], out: Path) -> list[Outcome]:
    out.mkdir(parents=True, exist_ok=True)
    report = out / "report.xml"
    words = ["--ginkgo.focus", focus(specs), "--ginkgo.junit-report", str(report), "--ginkgo.no-color", "--ginkgo.v"]
    env = {"KUBECONFIG": str(kubeconfig), "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", str(out))}
    with (out / "log.txt").open("w", encoding="utf-8") as log:
        subprocess.run([program, *words], env=env, cwd=out, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    if not report.is_file():
        text = (out / "log.txt").read_text(encoding="utf-8", errors="replace").strip()
        return [Outcome(spec, "failed", f"the suite ended: {text.splitlines()[-1:]}") for spec in specs]
    return read_report(report.read_text(encoding="utf-8", errors="replace"), specs)


def read_report(text: str, specs: Sequence[str]) -> list[Outcome]:
    """What a JUnit report of ginkgo says of these; one that it does not name counts as failed."""
    said: dict[str, Outcome] = {}
    suite_failure = ""
    for case in ElementTree.fromstring(text).iter("testcase"):
        name, status = case.get("name", ""), case.get("status", "")
        failure = case.find("failure") if case.find("failure") is not None else case.find("error")
        reason = "" if failure is None else (failure.get("message") or failure.text or "").strip().split("\n")[0]
        if not name.startswith("[It] "):
            suite_failure = suite_failure or (f"{name}: {reason}" if failure is not None else "")
            continue
        spec = _LABELS.sub("", name.removeprefix("[It] ")).strip()
        verdict = "failed" if failure is not None else "passed" if status == "passed" else "skipped"
        said[spec] = Outcome(spec, verdict, reason)
    absent = suite_failure or "the suite does not report it"
    found = []
    for spec in specs:
        one = said.get(spec, Outcome(spec, "failed", absent))
        found.append(Outcome(spec, "failed", suite_failure) if suite_failure and one.verdict == "skipped" else one)
    return found
