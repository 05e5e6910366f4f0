"""What a container asks of its devices: the pod's annotation, else its image. Plain data, for whoever emulates devices;
this module reads it and fetches traces, it does not know what a load means."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mews.kube.api.objects import annotations_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.runtime import Launch
from mews.yaml_text import check_extent

LOAD = "mews.dev/gpu-load"
"""Annotation of a pod: the load of its containers on their GPUs, YAML (``mews.emulator.telemetry.load``)."""
TRACE, CURVE = "trace", "curve"
COLUMNS = ("t_s", "utilization")
REASON = "RunContainerError"
TRACE_BYTES = 8 << 20
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_of(launch: Launch, folder: Path | None) -> Any:
    """Return the load as data, None where nothing is said; a trace is looked for in ``folder`` and becomes a curve.

    Raises StartError, one line.
    """
    text = annotations_of(launch.pod).get(LOAD)
    if text is None:
        return launch.image.load
    try:
        check_extent(text)
        value = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise StartError(REASON, f"annotation {LOAD}: {text!r}: not YAML: {' '.join(str(error).split())}") from error
    if isinstance(value, Mapping) and TRACE in value:
        return {**{key: each for key, each in value.items() if key != TRACE}, CURVE: _trace(value[TRACE], folder)}
    return value


def _trace(name: Any, folder: Path | None) -> list[list[float]]:
    if folder is None:
        raise StartError(REASON, f"annotation {LOAD}: trace {name!r}: only pods of a scenario file can name a trace")
    path = (folder / str(name)).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise StartError(REASON, f"annotation {LOAD}: trace {name!r}: must be a file in the scenario's folder")
    try:
        if path.stat().st_size > TRACE_BYTES:
            raise StartError(REASON, f"annotation {LOAD}: trace {name!r}: larger than {TRACE_BYTES} bytes")
        with path.open(encoding="utf-8", newline="") as file:
            return [_point(row, number, name) for number, row in enumerate(csv.DictReader(file), start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StartError(REASON, f"annotation {LOAD}: trace {name!r}: cannot be read: {error}") from error


def _point(row: Mapping[str, Any], number: int, name: Any) -> list[float]:
    try:
        return [float(row[column]) for column in COLUMNS]
    except (KeyError, TypeError, ValueError):
        columns = " and ".join(COLUMNS)
        raise StartError(
            REASON, f"annotation {LOAD}: trace {name!r}: line {number}: must have numbers in the columns {columns}"
        ) from None
