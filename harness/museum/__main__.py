"""``python -m mews.harness.museum FOLDER with|without WORDS…``: a command of mews, with the bug of that folder or
without it. `mews reproduce` starts it: what is planted must be there before anything else is imported."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

from mews.harness.museum.bug import read_bug
from mews.harness.museum.planting import plant
from mews.harness.museum.programs import PROGRAM


def main() -> None:
    """Plant the change of the bug, if it is one, and run the command."""
    folder, which, *words = sys.argv[1:]
    bug, has_bug = read_bug(Path(folder)), which == "with"
    change = bug.switch(has_bug=has_bug).change
    if bug.program is not None:
        os.environ[PROGRAM] = str(bug.program.path(has_bug=has_bug))
    if change is not None:
        plant(change)
    sys.argv = ["mews", *words]
    runpy.run_module("mews.harness", run_name="__main__")


if __name__ == "__main__":
    main()
