"""Chassis that are wrong on purpose: what ``--wrong`` takes, and the proxy that plays it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from mews.dialects import OURS
from mews.emulator.ready_file import write_ready
from mews.emulator.serve import await_ending, endings_held_back, parse_listen
from mews.emulator.wrongs.proxy import WrongProxy
from mews.emulator.wrongs.registry import WRONGS, find_wrongs
from mews.emulator.wrongs.wrong import Wrong
from mews.harness import terminal
from mews.harness.commands.outputs import check_outputs
from mews.harness.commands.serving import serving_options
from mews.harness.conformance.certificates import TlsArguments
from mews.harness.conformance.open import check_url
from mews.harness.errors import BadInputError, RequirementError


def wrongs_of(names: Sequence[str], dialect: str | None = None) -> tuple[Wrong, ...]:
    """Return the wrongs that ``--wrong`` names.

    Raises BadInputError.
    """
    try:
        return find_wrongs(names, tuple(OURS) if dialect is None else (dialect,))
    except ValueError as error:
        raise BadInputError(str(error)) from error


def list_wrongs() -> int:
    """Print all wrongs, a line each."""
    for wrong in WRONGS.values():
        kind = "legal" if wrong.legal else "wrong"
        terminal.out(f"{wrong.name:26} {kind}  {wrong.title} ({', '.join(wrong.dialects)})\n")
    return 0


class ProxyArguments(Struct, frozen=True):
    """The options as given."""

    url: str
    wrongs: tuple[str, ...]
    listen: str
    seed: int
    ready: Path | None
    tls: TlsArguments
    allow_hosts: tuple[str, ...]


def stand_in_front(given: ProxyArguments) -> int:
    """Play the wrongs in front of a chassis until a signal ends it.

    Raises BadInputError, RequirementError.
    """
    wrongs = wrongs_of(given.wrongs)
    checked = check_url(given.url)
    check_outputs({"--ready": given.ready})
    try:
        served = WrongProxy(
            checked,
            wrongs,
            listen=parse_listen(given.listen),
            context=given.tls.context(checked),
            seed=given.seed,
            allow_hosts=serving_options(insecure=False, allow_hosts=given.allow_hosts).allow_hosts,
        )
    except ValueError as error:
        raise BadInputError(str(error)) from error
    except OSError as error:
        raise RequirementError(str(error)) from error
    _serve(served, checked, wrongs, given.ready)
    return 0


@endings_held_back()
def _serve(served: WrongProxy, url: str, wrongs: Sequence[Wrong], ready: Path | None) -> None:
    served.start()
    try:
        if ready is not None:
            write_ready(ready, {"proxy": served.url, "ca": None if served.ca is None else str(served.ca)})
        terminal.out(f"proxy: {served.url} in front of {url}\n")
        if served.ca is not None:
            terminal.out(f"certificate: {served.ca}\n")
        for wrong in wrongs:
            terminal.out(f"{wrong.name}: {wrong.title}\n")
        sys.stdout.flush()
        await_ending()
    finally:
        served.stop()
        if ready is not None:
            ready.unlink(missing_ok=True)
