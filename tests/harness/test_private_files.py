"""What a failed run leaves may hold users' tokens: its owner alone may read it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from mews.harness.conformance.recording import record
from mews.harness.report.html import write_report
from mews.harness.report.run import Run
from mews.harness.scenario.artefacts import own_folder, write_texts
from mews.harness.scenario.result import Result

PLANTED = "planted-secret-9f1c"
RESULT = Result("s", "s.yaml", "embedded", "virtual", 1, "failed", PLANTED)


def holders(folder: Path) -> dict[str, int]:
    """File -> its mode, of the files that hold the secret."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and PLANTED in path.read_text("utf-8")
    }


def test_files_that_hold_a_secret_are_their_owners_whatever_the_umask_says(tmp_path: Path):
    before = os.umask(0)
    try:
        target = own_folder(tmp_path, RESULT)
        write_texts(target, {"logs/default_a_main.log": PLANTED, "journal.jsonl": PLANTED})
        write_report(Run(RESULT, []), target)
        record(tmp_path / "recording", PLANTED, [])
    finally:
        os.umask(before)
    found = holders(tmp_path)
    assert len(found) == 5
    assert set(found.values()) == {0o600}, found
