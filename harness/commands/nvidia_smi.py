"""``mews nvidia-smi``: the emulated nvidia-smi on a host of a running ``mews up``, or on one of a hardware file."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.hardware.emulation_context import BY_DEFAULT
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml.compile import CompileError, CompilerMissingError
from mews.emulator.nvml.library import SMI, install
from mews.emulator.nvml.state import state_beside, write_state
from mews.harness.catalogue.files import existing_file
from mews.harness.commands.instances import ready_of
from mews.harness.errors import BadInputError, RequirementError
from mews.names import must_be


def nvidia_smi(hardware: Path | None, name: str, host: str | None, arguments: Sequence[str]) -> int:
    """Run it with these arguments; the exit code is its own.

    Raises BadInputError for a host that is not there, RequirementError where no instance runs or the program cannot be
    compiled.
    """
    if host == "":
        raise BadInputError("--host '': must be the name of a host")
    if hardware is None:
        return _run(_folder_of(_nodes(name), host, name), arguments)
    with tempfile.TemporaryDirectory(prefix="mews-smi-") as made:
        _write(hardware, host, Path(made))
        return _run(Path(made), arguments)


def _run(folder: Path, arguments: Sequence[str]) -> int:
    environment = {key: value for key, value in os.environ.items() if key != "MEWS_NVML_STATE"}
    environment["LD_LIBRARY_PATH"] = str(folder)
    return subprocess.run([str(folder / SMI), *arguments], env=environment).returncode


def _write(hardware: Path, host: str | None, folder: Path) -> None:
    """The folder of a host as it is at the start, all its devices up."""
    try:
        known = load_hardware(existing_file("hardware", hardware, "--hardware"))
        hosts = Hosts(known, BY_DEFAULT)
        hosts.begin(0.0)
        wanted = hosts.host(host or known.hosts[0].name)
    except (HardwareError, ValueError) as error:
        raise BadInputError(" ".join(str(error).split())) from error
    try:
        install(folder)
    except (CompilerMissingError, CompileError) as error:
        raise RequirementError(" ".join(str(error).split())) from error
    write_state(state_beside(folder), nvml_host(wanted))


def _nodes(name: str) -> dict[str, Any]:
    """Return the nodes that a running instance told of in its ready.json."""
    nodes: dict[str, Any] = ready_of(name).get("nodes", {})
    return nodes


def _folder_of(nodes: dict[str, Any], host: str | None, name: str) -> Path:
    wanted = host or min(nodes, default="")
    if wanted not in nodes:
        raise BadInputError(f"--host {wanted}: {must_be(wanted, nodes)}: nodes of {name!r}")
    folder = nodes[wanted].get("env", {}).get("LD_LIBRARY_PATH")
    if folder is None:
        raise RequirementError(
            f"--host {wanted}: its GPUs are not shown to programs; see what `mews up` said about the library"
        )
    return Path(folder)
