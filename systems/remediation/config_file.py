"""The file that the components read in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.errors import RemediationConfigError


def config_of(path: Path | None) -> RemediationConfig:
    """Return the configuration of a file, the built-in one without.

    Raises RemediationConfigError, one line.
    """
    if path is None:
        return RemediationConfig()
    try:
        read: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RemediationConfigError(f"{path}: {' '.join(str(error).split())}") from error
    known = [each.name for each in msgspec.structs.fields(RemediationConfig)]
    if not isinstance(read, dict) or not read.keys() <= set(known):
        raise RemediationConfigError(f"{path}: must be a mapping with {', '.join(known)}")
    try:
        return msgspec.convert(read, RemediationConfig)
    except msgspec.ValidationError as error:
        raise RemediationConfigError(f"{path}: {error}") from error
