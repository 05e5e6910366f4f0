"""``python -m ci.reference FOLDER`` writes all pages there."""

from __future__ import annotations

import argparse
from pathlib import Path

from ci.reference import PAGES


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(prog="python -m ci.reference", description="Write the pages of the reference.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for place, make in PAGES.items():
        file = folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
