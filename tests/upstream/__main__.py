"""``python -m tests.upstream``: Kubernetes' own conformance specs before `mews up`; 1 where one fails that is to pass.

``conformance.txt`` has what passes on the real control plane and needs no container, ``pods.txt`` what idle ones are
enough for, ``further.txt`` specs beyond conformance, ``dra.txt`` those of dynamic resource allocation, ``waiting.txt``
those of all that do not pass here yet, with the reason.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from tests.upstream import dra
from tests.upstream.building import DEVICE_PLUGIN, E2E, NotBuiltError
from tests.upstream.specs import SLOW, Outcome, listed, play, reasons, sample
from tests.upstream.up import cluster

LISTS = ("conformance.txt", "pods.txt", "further.txt", dra.LIST)
WAITING = "waiting.txt"


def say(line: str) -> None:
    """Print it at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Print what failed, what passes though it was not to, and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.upstream")
    parser.add_argument("--cluster", default="embedded", help="of mews up; default: %(default)s")
    parser.add_argument("--list", default=",".join(LISTS), help="files here with commas; default: %(default)s")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="so many of each list, drawn by seed; none that wait or are slow"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()) // 86_400, help="default: the day")
    parser.add_argument("--jobs", type=int, default=min(4, 2 * (os.cpu_count() or 1)), help="processes of the suite")
    parser.add_argument("--out", type=Path, help="keep the suite's logs and reports there")
    chosen = parser.parse_args()
    try:
        program, plugin = E2E.built(), DEVICE_PLUGIN.built()
    except NotBuiltError as error:
        say(f"not run: {error}")
        return 0
    waiting = reasons(WAITING) if chosen.cluster == "embedded" else {}
    failed = False
    names = chosen.list.split(",")
    with tempfile.TemporaryDirectory() as folder:
        judge = Judging(program, plugin, chosen, (chosen.out or Path(folder)).absolute(), waiting)
        plain = [name for name in names if name != dra.LIST]
        if plain:
            with cluster(["--cluster", chosen.cluster]) as ready:
                for name in plain:
                    failed |= judge.play(name, judge.specs(name), ready)
        if dra.LIST in names:
            failed |= _judge_dra(judge)
    if chosen.sample is not None:
        say(f"seed {chosen.seed}")
    return 1 if failed else 0


@dataclass(frozen=True, slots=True)
class Judging:
    """What all lists are played with; ``chosen`` are the options."""

    program: Path
    plugin: Path
    chosen: argparse.Namespace
    out: Path
    waiting: Mapping[str, str]

    def specs(self, name: str) -> Sequence[str]:
        """The specs of a list, or a sample of those that are quick and pass."""
        specs = listed(name)
        if self.chosen.sample is None:
            return specs
        quick = [spec for spec in specs if spec not in self.waiting and SLOW not in spec]
        return sample(quick, self.chosen.sample, self.chosen.seed)

    def play(self, name: str, specs: Sequence[str], ready: Mapping[str, Any]) -> bool:
        """Play them on a cluster; whether something is not as listed."""
        begin = time.monotonic()
        out = self.out / f"{Path(name).stem}-{len(list(self.out.glob('*')))}"
        outcomes = play(self.program, Path(ready["kubeconfig"]), specs, out, jobs=self.chosen.jobs)
        return _told(name, outcomes, self.waiting, time.monotonic() - begin)


def _judge_dra(judge: Judging) -> bool:
    lacking = namespaces_lacking()
    if lacking:
        say(f"{dra.LIST}: specs with sockets not run: no mount namespaces here: {lacking}")
    failed = False
    for setting in dra.settings(judge.specs(dra.LIST), judge.plugin):
        with cluster(["--cluster", judge.chosen.cluster, *setting.options], files=setting.files) as ready:
            failed |= judge.play(dra.LIST, setting.specs, ready)
    return failed


def _told(name: str, outcomes: list[Outcome], waiting: Mapping[str, str], took_s: float) -> bool:
    """Whether something is not as listed."""
    bad = [each for each in outcomes if each.verdict != "passed" and each.spec not in waiting]
    late = [each for each in outcomes if each.verdict == "passed" and each.spec in waiting]
    for each in bad:
        say(f"{each.verdict}  {each.spec}: {each.reason[:300]}")
    for each in late:
        say(f"passes  {each.spec}: take it out of {WAITING}")
    passed = sum(each.verdict == "passed" for each in outcomes)
    say(f"{name}: {passed} of {len(outcomes)} passed, {len(bad)} not as listed, {took_s:.0f} s")
    return bool(bad or late)


if __name__ == "__main__":
    raise SystemExit(main())
