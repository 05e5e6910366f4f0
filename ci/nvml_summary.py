"""Write the summary of what is emulated of NVML and nvidia-smi into ``docs/nvml.md``: ``python -m ci.nvml_summary``."""

from __future__ import annotations

import re

from ci.reference.nvml import GUIDE, SUMMARY_HEAD, summary


def main() -> None:
    """Put it in the place of the one that is there."""
    old = re.compile(rf"^{re.escape(SUMMARY_HEAD)}\n(?:\|.*\n)+", re.MULTILINE)
    text, count = old.subn(lambda _: summary(), GUIDE.read_text(encoding="utf-8"), count=1)
    if not count:
        raise SystemExit(f"{GUIDE}: no table begins with {SUMMARY_HEAD}")
    GUIDE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
