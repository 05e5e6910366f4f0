"""Where a component serves its metrics, and to whom, as its command line says it."""

from __future__ import annotations

import argparse
from pathlib import Path

from msgspec import Struct

from mews.kube.process import port_number

METRICS_HOST, METRICS_ALLOW_HOST = "--metrics-host", "--metrics-allow-host"


class MetricsOptions(Struct, frozen=True):
    """``certificate`` and ``key``, files in PEM, make it TLS; ``token`` is asked of every reader. ``allow_hosts``:
    further names of the server's."""

    port: int
    host: str = "127.0.0.1"
    allow_hosts: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    token: str = ""


def add_metrics_arguments(parser: argparse.ArgumentParser) -> None:
    """``--metrics-port`` and what belongs to it."""
    add = parser.add_argument
    add("--metrics-port", type=port_number, metavar="PORT", help="serve /metrics for Prometheus there")
    add(METRICS_HOST, default="127.0.0.1", metavar="ADDRESS", help="serve metrics at this address (%(default)s)")
    add(METRICS_ALLOW_HOST, action="append", default=[], metavar="NAME", help="accept this host name, too")
    add(
        "--metrics-certificate", type=Path, metavar="FILE", help="serve metrics over TLS, with this certificate, in PEM"
    )
    add("--metrics-key", type=Path, metavar="FILE", help="use this private key, in PEM")
    add("--metrics-token-file", type=Path, metavar="FILE", help="require the bearer token in this file")


def metrics_options(options: argparse.Namespace) -> MetricsOptions | None:
    """Return what the command line asks for; None for no metrics.

    Raises ValueError for what does not go together, or a file that cannot be read.
    """
    given = {
        "--metrics-certificate": options.metrics_certificate,
        "--metrics-key": options.metrics_key,
        "--metrics-token-file": options.metrics_token_file,
    }
    if options.metrics_port is None:
        alone = next((name for name, value in given.items() if value is not None), None)
        if alone is not None:
            raise ValueError(f"{alone}: only with --metrics-port")
        return None
    if (options.metrics_certificate is None) != (options.metrics_key is None):
        raise ValueError("--metrics-certificate and --metrics-key: must be given together")
    return MetricsOptions(
        options.metrics_port,
        options.metrics_host,
        tuple(options.metrics_allow_host),
        options.metrics_certificate,
        options.metrics_key,
        "" if options.metrics_token_file is None else _token(options.metrics_token_file),
    )


def _token(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--metrics-token-file {file}: cannot be read: {error}") from error
    if not token:
        raise ValueError(f"--metrics-token-file {file}: is empty")
    return token
