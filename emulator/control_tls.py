"""Under which certificate a ``control`` is served: the one that is named, one of its own, or in plain HTTP."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from mews.certificates import Certificates, make_certificates
from mews.emulator.clock import EmulatedClock, unix_s
from mews.emulator.short_lived_folders import folder_for_a_while
from mews.emulator.tls import Identity

_PATIENCE_S, _LOOK_S = 30.0, 0.01


def add_control_tls_arguments(parser: argparse.ArgumentParser) -> None:
    """``--control-certificate FILE``, ``--control-key FILE``, ``--ca FILE``, ``--plain-control``."""
    parser.add_argument(
        "--control-certificate",
        type=Path,
        metavar="FILE",
        help="use this certificate, in PEM; default: a generated one",
    )
    parser.add_argument("--control-key", type=Path, metavar="FILE", help="use this private key, in PEM")
    parser.add_argument("--ca", type=Path, metavar="FILE", help="name this CA certificate in the ready file")
    parser.add_argument("--plain-control", action="store_true", help="serve the control API over plain HTTP")


def control_certificates(options: argparse.Namespace) -> Certificates | None:
    """Return what the command line asks for; None for plain HTTP. Whoever starts this process may still be making the
    files: they are waited for.

    Raises ValueError where part of it is missing, or the files do not appear.
    """
    given = (options.ca, options.control_certificate, options.control_key)
    plain = "--plain-control" if options.plain_control else "--insecure" if getattr(options, "insecure", False) else ""
    if plain:
        if any(given):
            raise ValueError(f"{plain}: not together with --control-certificate, --control-key and --ca")
        return None
    if not any(given):
        return own_certificates(options.allow_host)
    if not all(given):
        raise ValueError("--control-certificate, --control-key and --ca: must be given together")
    return _awaited(Certificates(*given))


def own_certificates(names: Iterable[str] = ()) -> Certificates:
    """Made now, in a folder that nobody else may enter and that goes with this process."""
    return make_certificates(folder_for_a_while(), unix_s(), names)


def control_identity(certificates: Certificates | None) -> Identity | None:
    """Return the same as the server takes it."""
    return (
        None if certificates is None else Identity(certificates.certificate, certificates.key, certificates.authority)
    )


def _awaited(certificates: Certificates) -> Certificates:
    clock = EmulatedClock()
    for _ in range(int(_PATIENCE_S / _LOOK_S)):
        if certificates.certificate.exists():  # the last of the three to appear
            break
        clock.pause(_LOOK_S)
    for file in (certificates.authority, certificates.certificate, certificates.key):
        if not file.is_file():
            raise ValueError(f"{file}: no such file; must be a PEM file")
    return certificates
