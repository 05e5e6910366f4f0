"""``mews serve``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mews.certificates import Certificates, make_certificates
from mews.descriptors import TooFewDescriptorsError, ensure_descriptors
from mews.dialects import OURS
from mews.emulator import serve as server
from mews.emulator.chassis.errors import EmulatorError, HardwareError
from mews.emulator.clock import unix_s
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.tls import Identity, identity
from mews.harness.catalogue.files import existing_file
from mews.harness.commands.outputs import check_outputs
from mews.harness.commands.serving import OF_CHASSIS, serving_options, warn_insecure
from mews.harness.commands.wrongs import wrongs_of
from mews.harness.errors import BadInputError, RequirementError, unreadable
from mews.harness.leftovers import RuntimeFolder, make_runtime_folder
from mews.harness.options import ServingOptions

_FILES = 128
"""Some for each face, the state and the clients, of which each has one connection or a few."""


class Tls(Struct, frozen=True):
    """By which certificate and key Redfish is served, where the user names one."""

    certificate: Path | None
    key: Path | None

    def identity(self) -> Identity | None:
        """Return who the server is, None for the certificate of the run. Raises ValueError."""
        given = [None if path is None else str(path) for path in (self.certificate, self.key)]
        return identity(*given)


class ServeFiles(Struct, frozen=True):
    """``ready`` appears once all is served; in ``state`` the tables outlive the process. ``ssdp``: it can be found."""

    ready: Path | None = None
    state: Path | None = None
    ssdp: bool = False


class WrongChassis(Struct, frozen=True):
    """In which ways the chassis are wrong on purpose, and the seed of what happens now and then."""

    names: tuple[str, ...] = ()
    seed: int = 0


def serve(
    hardware: Path | None,
    listen: str,
    files: ServeFiles,
    play: WrongChassis,
    tls: Tls,
    *,
    dialect: str | None,
    speed: float,
    serving: ServingOptions,
) -> int:
    """Serve the chassis of a hardware file (the demo's by default) until told to end.

    Raises BadInputError, RequirementError.
    """
    _check_files(files.ready, files.state)
    wrongs = wrongs_of(play.names, dialect)
    if files.ssdp and dialect not in (None, "redfish"):
        raise BadInputError(f"--ssdp --dialect {dialect}: SSDP finds Redfish services only")
    file = existing_file("hardware", hardware or Path("demo"), "--hardware")
    if serving.insecure and tls.certificate is not None:
        raise BadInputError("--insecure --certificate: only one of the two")
    warn_insecure(OF_CHASSIS, serving)
    _ensure_files("mews serve")
    # Its owner is known, so that `mews down` removes it after a kill.
    owned = RuntimeFolder(make_runtime_folder("mews-serve-"))
    try:
        server.serve(
            load_hardware(file),
            listen=server.parse_listen(listen),
            dialects=tuple(OURS) if dialect is None else (dialect,),
            ready_file=files.ready,
            state=files.state,
            context=EmulationContext(play.seed, speed),
            tls=tls.identity(),
            control_tls=None if serving.insecure else _certificates(owned.folder, serving),
            allow_hosts=serving.allow_hosts,
            insecure=serving.insecure,
            ssdp=files.ssdp,
            wrongs=wrongs,
        )
    except (HardwareError, ValueError) as error:
        raise BadInputError(_one_line(error)) from error
    except (OSError, EmulatorError) as error:
        raise RequirementError(_one_line(error)) from error
    finally:
        owned.release()
    return 0


def serve_recorded(
    folder: Path, listen: str, ready: Path | None, beside: Mapping[str, object], allow_hosts: Sequence[str]
) -> int:
    """Serve a recording or a mockup folder until told to end; ``beside``: options that are for chassis only.

    Raises BadInputError, RequirementError.
    """
    from mews.harness.replay.folders import load_replayable
    from mews.harness.replay.server import serve_recording

    for option, value in beside.items():
        if value is not None:
            words = f"--recording {folder} {option} {value}".rstrip()
            raise BadInputError(f"{words}: only one of the two")
    serving = serving_options(insecure=False, allow_hosts=allow_hosts)
    _check_files(ready, None)
    _ensure_files("mews serve --recording")
    replayable = load_replayable(folder)
    try:
        serve_recording(replayable, server.parse_listen(listen), ready=ready, allow_hosts=serving.allow_hosts)
    except ValueError as error:
        raise BadInputError(_one_line(error)) from error
    except OSError as error:
        raise RequirementError(_one_line(error)) from error
    return 0


def _ensure_files(command: str) -> None:
    """Raise BadInputError where this process may have too few files open for faces and their clients."""
    try:
        ensure_descriptors(command, _FILES)
    except TooFewDescriptorsError as error:
        raise BadInputError(str(error)) from error


def _certificates(folder: Path, serving: ServingOptions) -> Certificates:
    return make_certificates(folder, unix_s(), serving.allow_hosts)


def _check_files(ready: Path | None, state: Path | None) -> None:
    check_outputs({"--ready": ready, "--state": state})
    if state is not None and state.is_file() and state.stat().st_size and not _is_sqlite(state):
        raise BadInputError(f"--state {state}: is not a state file of `mews serve`; name such a file, or a new file")


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise BadInputError(f"--state {unreadable(path, error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
