"""Writes the hardware file and the scenario: readable by their owner alone, and never over a file of another kind."""

from __future__ import annotations

from pathlib import Path

from mews.harness.errors import BadInputError
from mews.harness.recording.commented import commented_yaml
from mews.harness.recording.inference import RecordedFiles
from mews.own_files import write_named, write_own

HEAD = "Recorded by mews record"
_STEM = "-hardware.yaml"


def hardware_path(out: Path) -> Path:
    """Return where the hardware file of a scenario goes: next to it."""
    return out.with_name(f"{out.stem}{_STEM}")


def check_out(out: Path) -> None:
    """Raise BadInputError for a place where the files cannot be written: before anything is watched."""
    if str(out) == "-":
        raise BadInputError("--out -: must be a file: a hardware file is written next to it")
    if out.is_dir() or not out.parent.is_dir():
        why = "is a folder" if out.is_dir() else f"no folder {out.parent} exists"
        raise BadInputError(f"--out {out}: cannot be written: {why}")
    beside = hardware_path(out)
    if not beside.exists():
        return
    try:
        is_recorded = beside.read_text(encoding="utf-8").startswith(f"# {HEAD}")
    except (OSError, UnicodeDecodeError):
        is_recorded = False
    if not is_recorded:
        raise BadInputError(f"--out {out}: {beside} exists and was not recorded: choose another --out, or move it away")


def write_files(out: Path, files: RecordedFiles) -> Path:
    """Write both; the hardware file's path.

    Raises BadInputError.
    """
    beside = hardware_path(out)
    hardware = commented_yaml(files.hardware, files.hardware_comments, f"{HEAD}: hosts, chassis, ports and devices.")
    scenario = commented_yaml(files.scenario, files.scenario_comments, f"{HEAD}: what happened, with its times.")
    try:
        write_own(beside, hardware)
        write_named(out, scenario)
    except OSError as error:
        raise BadInputError(f"--out {out}: cannot be written: {error.strerror}") from error
    return beside
