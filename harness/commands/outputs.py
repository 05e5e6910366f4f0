"""Where a command's reports go: files, or standard output for one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mews.harness import terminal
from mews.harness.errors import BadInputError, RequirementError
from mews.own_files import write_named

STDOUT = "-"


def check_outputs(wanted: Mapping[str, str | Path | None]) -> bool:
    """Option -> file; whether one of them is standard output, which is then its alone.

    Raises BadInputError for what cannot be a file, and for two on standard output.
    """
    given = {option: str(path) for option, path in wanted.items() if path is not None}
    for option, path in given.items():
        if path != STDOUT and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
            raise BadInputError(f"{option} {path}: must be a file in an existing folder")
    shown = [option for option, path in given.items() if path == STDOUT]
    if len(shown) > 1:
        raise BadInputError(f"{' and '.join(shown)}: only one of them can be standard output")
    files = [(option, Path(path).resolve()) for option, path in given.items() if _is_a_file_of_its_own(path)]
    for number, (option, file) in enumerate(files):
        before = next((one for one, other in files[:number] if other == file), None)
        if before is not None:
            raise BadInputError(f"{before} and {option} {given[option]}: each must be a different file")
    return bool(shown)


def _is_a_file_of_its_own(path: str) -> bool:
    """Not standard output, and no device such as /dev/null."""
    return path != STDOUT and (Path(path).is_file() or not Path(path).exists())


def check_inputs_kept(wanted: Mapping[str, str | Path | None], inputs: Iterable[Path]) -> None:
    """Raise BadInputError for a report that would be written over what is read."""
    kept = {path.resolve() for path in inputs}
    for option, path in wanted.items():
        if path is not None and str(path) != STDOUT and Path(path).resolve() in kept:
            raise BadInputError(f"{option} {path}: is one of the files to run; name another file")


def write_output(option: str, where: str | Path, text: str) -> None:
    """Write one report.

    Raises RequirementError.
    """
    if str(where) == STDOUT:
        terminal.out(text)
        return
    try:
        write_named(Path(where), text)
    except OSError as error:
        raise RequirementError(f"{option} {where}: cannot be written: {error.strerror}") from error
