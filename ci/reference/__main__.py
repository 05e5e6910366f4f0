"""``python -m ci.reference FOLDER`` writes all pages there."""

from __future__ import annotations

import sys
from pathlib import Path

from ci.reference import PAGES


def main() -> None:
    """Write them."""
    for place, make in PAGES.items():
        file = Path(sys.argv[1]) / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
