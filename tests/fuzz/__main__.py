"""``python -m tests.fuzz --requests 100000 --seed 1``: requests of chance to every face; 1 where one fails."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.fuzz.groups import GROUPS
from tests.fuzz.judge import fuzz


def main() -> int:
    """Print an account of each face, and what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--requests", type=int, default=2000, help="of each face")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="faces whose name has this in it")
    chosen = parser.parse_args()
    logging.getLogger().addHandler(logging.NullHandler())
    found = asked = answered = 0
    for group in GROUPS:
        with group() as served:
            for face in served:
                if chosen.only in face.name:
                    account = fuzz(face, chosen.requests, chosen.seed)
                    sys.stdout.write(f"{account}\n")
                    sys.stdout.flush()
                    for finding in account.findings[:40]:
                        sys.stdout.write(f"  {finding}\n")
                    found += len(account.findings)
                    asked += sum(account.statuses.values())
                    answered += account.answered
    sys.stdout.write(f"all faces: {asked} requests, {answered} answers, {found} findings\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
