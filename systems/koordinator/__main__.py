"""Koordinator's scheduler as a process: ``python -m mews.systems.koordinator scheduler``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import ssl
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import yaml

from mews.kube.clock import Clock
from mews.kube.component import Context, Runnable
from mews.kube.process import KubeconfigError, add_kubeconfig_arguments, kube_of, port_number, run_until_ended
from mews.kube.records_file import RecordsFile
from mews.kube.serving import HttpService
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.errors import KoordinatorConfigError
from mews.systems.koordinator.policy import Choice
from mews.systems.koordinator.scheduler import KoordScheduler

COMPONENTS = ("scheduler",)
_READ = ("scheduler_name", "namespace", "device_choice", "gang_wait_s")
"""Of the file; the rest of it is koordlet's."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.koordinator", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument(
        "--config", type=Path, help="YAML (mews.systems.koordinator.config); default: its defaults"
    )
    add_kubeconfig_arguments(made)
    made.add_argument("--host", default="127.0.0.1", help="the address to answer questions about its books on")
    made.add_argument("--port", type=port_number, default=10251, help="the port to listen on")
    made.add_argument("--certificate", type=Path, metavar="FILE", help="of a server under TLS, in PEM")
    made.add_argument("--key", type=Path, metavar="FILE", help="of that certificate, in PEM")
    made.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="another name of it")
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def config_of(path: Path | None) -> KoordinatorConfig:
    """The configuration of a file, as far as the scheduler reads it.

    Raises KoordinatorConfigError, one line.
    """
    if path is None:
        return KoordinatorConfig()
    known = [field.name for field in fields(KoordinatorConfig)]
    try:
        read: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise KoordinatorConfigError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(read, dict) or not read.keys() <= set(known):
        raise KoordinatorConfigError(f"{path}: must be a mapping with {', '.join(known)}")
    mine = {name: read[name] for name in _READ if name in read}
    choice, wait_s = mine.get("device_choice", "auto"), mine.get("gang_wait_s", 1.0)
    if choice not in get_args(Choice):
        raise KoordinatorConfigError(f"{path}: device_choice: {choice!r}: must be one of {', '.join(get_args(Choice))}")
    if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or wait_s <= 0:
        raise KoordinatorConfigError(f"{path}: gang_wait_s: {wait_s!r}: must be seconds above 0")
    for name in ("scheduler_name", "namespace"):
        if not isinstance(mine.get(name, ""), str):
            raise KoordinatorConfigError(f"{path}: {name}: {mine[name]!r}: must be a text")
    return KoordinatorConfig(**mine)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.records is not None:
        logging.getLogger().addHandler(RecordsFile(options.records))
    try:
        config = config_of(options.config)
        if (options.certificate is None) != (options.key is None):
            raise KoordinatorConfigError("--certificate and --key: must be given together")
        asyncio.run(run_until_ended(lambda stack: _made(options, config, stack)))
    except (KoordinatorConfigError, KubeconfigError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


async def _made(options: argparse.Namespace, config: KoordinatorConfig, stack: AsyncExitStack) -> Runnable:
    service = _service(options)
    kube = kube_of(options, f"koord-{options.component}")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
    return KoordScheduler(context, config, service)


def _service(options: argparse.Namespace) -> HttpService:
    tls = None
    if options.certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(options.certificate, options.key)
        except OSError as error:  # ssl.SSLError is one
            raise KoordinatorConfigError(f"--certificate {options.certificate}: cannot be used: {error}") from error
    return HttpService(options.host, options.port, tls=tls, names=options.allow_host)


if __name__ == "__main__":
    sys.exit(main())
