"""``python -m tests.systems.koordinator.mixed``: build Koordinator's own programs for ``test_replaced.py``."""

from __future__ import annotations

import sys

from tests.systems.koordinator.mixed.programs import PROGRAMS, build
from tests.upstream.building import NotBuiltError


def main() -> int:
    """0 where all are there; 3 with the reason where one cannot be built."""
    try:
        for name in PROGRAMS:
            sys.stdout.write(f"{build(name)}\n")
    except NotBuiltError as error:
        sys.stderr.write(f"{error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
