"""Hold decisions of ours against those of the published systems.

``python -m tests.upstream.oracles [--system NAME] [--cases N] [--seed N] [--write]``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from tests.systems.gpushare.public.oracle import GPU_SHARE
from tests.systems.kod2.kubeflow.oracle import TFJOBS
from tests.systems.koordinator.upstream.oracle import DEVICE_SHARE
from tests.systems.koordinator.webhooks.oracle import MUTATING, VALIDATING
from tests.systems.kubecomp.equation.oracle import EQUATION
from tests.upstream.building import NotBuiltError
from tests.upstream.oracles.model import Oracle

ORACLES: Mapping[str, Oracle] = {
    each.name: each for each in (DEVICE_SHARE, VALIDATING, MUTATING, GPU_SHARE, TFJOBS, EQUATION)
}


def main() -> int:
    """0 where each difference is of a row of its table; 1 with those that are not; 3 where an oracle is not there."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    made.add_argument("--system", choices=["all", *ORACLES], default="all", help="ask this oracle")
    made.add_argument("--cases", type=int, help="draw so many cases")
    made.add_argument("--seed", type=int, default=0, help="begin with this one")
    made.add_argument("--write", action="store_true", help="write the recorded answers anew")
    options = made.parse_args()
    codes = []
    for name, oracle in ORACLES.items():
        if options.system in (name, "all"):
            codes.append(_asked(oracle, options.seed, options.cases or oracle.cases, write=options.write))
    return max(codes)


def _asked(oracle: Oracle, seed: int, cases: int, *, write: bool) -> int:
    try:
        if write and oracle.golden is not None:
            oracle.record()
        found = oracle.compare(range(seed, seed + cases))
    except NotBuiltError as error:
        sys.stderr.write(f"{oracle.name}: {error}\n")
        return 3
    sys.stdout.write("".join(f"{oracle.name}: {line}\n" for line in found.lines()))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
