"""The file that the driver reads in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from mews.systems.dra.config import DraConfig
from mews.systems.dra.errors import DraConfigError


def config_of(path: Path | None) -> DraConfig:
    """Return the configuration of a file, the built-in one without.

    Raises DraConfigError, one line.
    """
    if path is None:
        return DraConfig()
    try:
        read: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DraConfigError(f"{path}: {' '.join(str(error).split())}") from error
    known = [each.name for each in msgspec.structs.fields(DraConfig)]
    if not isinstance(read, dict) or not read.keys() <= set(known):
        raise DraConfigError(f"{path}: must be a mapping with {', '.join(known)}")
    try:
        config = msgspec.convert(read, DraConfig)
    except msgspec.ValidationError as error:
        raise DraConfigError(f"{path}: {error}") from error
    if not config.poll_s > 0:
        raise DraConfigError(f"{path}: poll_s: {config.poll_s:g}: must be greater than 0")
    return config
