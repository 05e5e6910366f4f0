"""``python -m tests.upstream``: Kubernetes' own conformance specs before `mews up`; 1 where one fails that is to pass.

``conformance.txt`` has what passes on the real control plane and needs no container, ``pods.txt`` what idle ones are
enough for, ``further.txt`` specs beyond conformance, ``waiting.txt`` those of all that do not pass here yet, with the
reason.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.upstream.building import E2E, NotBuilt
from tests.upstream.specs import SLOW, Outcome, listed, play, reasons, sample
from tests.upstream.up import cluster

LISTS = ("conformance.txt", "pods.txt", "further.txt")
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
        program = E2E.built()
    except NotBuilt as error:
        say(f"not run: {error}")
        return 0
    waiting = reasons(WAITING) if chosen.cluster == "embedded" else {}
    failed = False
    with tempfile.TemporaryDirectory() as folder, cluster(["--cluster", chosen.cluster]) as ready:
        for name in chosen.list.split(","):
            specs = listed(name)
            if chosen.sample is not None:
                quick = [spec for spec in specs if spec not in waiting and SLOW not in spec]
                specs = tuple(sample(quick, chosen.sample, chosen.seed))
            begin = time.monotonic()
            out = (chosen.out or Path(folder)) / Path(name).stem
            outcomes = play(program, Path(ready["kubeconfig"]), specs, out.absolute(), jobs=chosen.jobs)
            failed |= _told(name, outcomes, waiting, time.monotonic() - begin)
    if chosen.sample is not None:
        say(f"seed {chosen.seed}")
    return 1 if failed else 0


def _told(name: str, outcomes: list[Outcome], waiting: dict[str, str], took_s: float) -> bool:
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
