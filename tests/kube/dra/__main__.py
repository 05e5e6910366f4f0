"""``python -m tests.kube.dra``: build the drivers of others, for the tests beside this file."""

from __future__ import annotations

import sys

from tests.kube.dra.programs import PROGRAMS
from tests.upstream.building import NotBuiltError


def main() -> int:
    """0 where all are there; 3 with the reason where one cannot be built."""
    try:
        for program in PROGRAMS:
            sys.stdout.write(f"{program.build()}\n")
    except NotBuiltError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
