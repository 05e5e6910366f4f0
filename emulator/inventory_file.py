"""Reads hardware files."""

from __future__ import annotations

from pathlib import Path

import yaml

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.chassis.inventory import Hardware, parse_hardware
from mews.emulator.start_file import read_start_file
from mews.yaml_text import check_extent

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_hardware(path: str | Path) -> Hardware:
    """The hardware of a YAML file, or of a start file (``.csv``, see ``mews.emulator.start_file``).

    Raises HardwareError: one line naming file, path in the file, value, and what is allowed.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise HardwareError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise HardwareError(f"{path}: not a text file in UTF-8") from error
    if Path(path).suffix == ".csv":
        return parse_hardware(read_start_file(text, str(path)), str(path))
    try:
        check_extent(text)
        document = yaml.load(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise HardwareError(f"{path}{f':{mark.line + 1}' if mark else ''}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise HardwareError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    return parse_hardware(document, str(path))
