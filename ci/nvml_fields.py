"""Which field identifiers of NVML each generation of GPUs answers: asked of the library, kept for the documentation.

``python -m ci.nvml_fields --write`` compiles the library, asks it for every identifier of the header, and writes
``nvml-answers.txt``; without ``--write`` it compares. The tests do, too.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.hardware.topology import cube_mesh
from mews.emulator.nvml.library import LIBRARY, install
from mews.emulator.nvml.state import NvmlGpu, NvmlHost, state_beside, write_state

FOLDER = Path(__file__).parent / "nvml-header"
ANSWERS = Path(__file__).parent / "nvml-answers.txt"
GENERATIONS = {
    "Volta": "V100-SXM2-32GB", "Turing": "T4", "Ampere": "A100-SXM4-80GB", "Ada": "L40S", "Hopper": "H100-SXM",
    "Blackwell": "GB200",
}  # fmt: skip
"""A generation -> the model that is asked, beside seven others to which its NVLinks lead, directly or by switches."""
OK, NO_PERMISSION = 0, 4
FOR_ROOT = "root"
"""Said of fields that all who ask are refused."""


class _Field(ctypes.Structure):
    """``nvmlFieldValue_t``."""

    _fields_ = (
        ("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong), ("type", ctypes.c_uint), ("result", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )  # fmt: skip


def names() -> dict[int, str]:
    """Return the header's identifiers by number."""
    lines = (FOLDER / "fields.txt").read_text(encoding="utf-8").splitlines()
    return {int(number): name for number, name in (line.split() for line in lines if line)}


def asked(model: str) -> Iterator[tuple[int, int]]:
    """(identifier, its result) on a board of that model; in a process that has not loaded the library yet."""
    with tempfile.TemporaryDirectory(prefix="mews-fields-") as made:
        folder = Path(made)
        install(folder)
        profile = PROFILES[model]
        boards = tuple(
            NvmlGpu(index=n, minor=n, bus_id=f"0000:{0x40 + n:02x}:00.0", uuid=f"GPU-{n}", profile=profile)
            for n in range(8)
        )
        mesh = cube_mesh() if profile.nvlinks and not profile.nvswitch else None
        write_state(state_beside(folder), NvmlHost(gpus=boards, topology=mesh, switched=profile.nvswitch))
        for word in ("NVIDIA_VISIBLE_DEVICES", "MEWS_NVML_STATE"):
            os.environ.pop(word, None)
        library = ctypes.CDLL(str(folder / LIBRARY))
        device = ctypes.c_void_p()
        if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
            raise RuntimeError(f"{model}: the library does not see it")
        for number in names():
            field = _Field(number)
            library.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(field))
            yield number, field.result
        library.nvmlShutdown()


def answers() -> str:
    """Return a line for each identifier: its name, then the generations that answer it."""
    found: dict[int, list[str]] = {number: [] for number in names()}
    for generation, model in GENERATIONS.items():
        command = [sys.executable, "-m", "ci.nvml_fields", model]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
        for line in done.stdout.splitlines():
            number, result = map(int, line.split())
            if result == OK:
                found[number].append(generation)
            elif result == NO_PERMISSION and FOR_ROOT not in found[number]:
                found[number].append(FOR_ROOT)
    return "".join(" ".join([name, *found[number]]) + "\n" for number, name in names().items())


def main(words: list[str]) -> int:
    """0 when the file is what the library answers; 1 else."""
    if words and words[0] in PROFILES:
        for number, result in asked(words[0]):
            sys.stdout.write(f"{number} {result}\n")
        return 0
    told = answers()
    if words == ["--write"]:
        ANSWERS.write_text(told, encoding="utf-8")
        return 0
    return int(ANSWERS.read_text(encoding="utf-8") != told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
