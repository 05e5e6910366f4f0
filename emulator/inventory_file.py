"""Reads hardware files."""

from __future__ import annotations

from pathlib import Path

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.inventory.reading import parse_hardware
from mews.emulator.start_file import read_start_file
from mews.emulator.yaml_document import Document, DocumentError, read_document


def load_hardware(path: str | Path) -> Hardware:
    """Return the hardware of a YAML file, or of a start file (``.csv``, see ``mews.emulator.start_file``).

    Raises HardwareError: one line naming file, line, path in the file, value, and what is allowed.
    """
    document = read_inventory(path)
    return parse_hardware(document.value, str(path), where=document.where)


def read_inventory(path: str | Path) -> Document:
    """Return the content of a hardware file as written, unchecked, with the lines of its places.

    Raises HardwareError, one line.
    """
    return parse_inventory(path, inventory_text(path))


def inventory_text(path: str | Path) -> str:
    """Return the text of a hardware file.

    Raises HardwareError, one line.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise HardwareError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise HardwareError(f"{path}: not a text file in UTF-8") from error


def parse_inventory(path: str | Path, text: str) -> Document:
    """Return what that text of a hardware file says, unchecked, with the lines of its places.

    Raises HardwareError, one line.
    """
    if Path(path).suffix == ".csv":
        return Document(str(path), read_start_file(text, str(path)))
    try:
        return read_document(text, str(path))
    except DocumentError as error:
        raise HardwareError(str(error)) from None
