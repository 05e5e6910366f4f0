"""The operator as a process: ``python -m mews.kube.kod2 operator --config FILE --kubeconfig FILE``, or ``crd``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.resources import files
from pathlib import Path

from mews.kube.client.http import HttpKube
from mews.kube.client.in_cluster import in_cluster_kube, is_in_cluster
from mews.kube.clock import Clock
from mews.kube.component import Component, Context
from mews.kube.kod2.config import OperatorConfig, load_config
from mews.kube.kod2.errors import ConfigError
from mews.kube.kod2.install import install
from mews.kube.kod2.metrics import Metrics, Recorder
from mews.kube.kod2.operator import Operator

COMPONENTS = ("operator", "crd")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m mews.kube.kod2", description=__doc__)
    made.add_argument("component", choices=COMPONENTS, help="crd prints the TFJob definition for kubectl apply -f -")
    made.add_argument("--config", type=Path, help="YAML file (mews.kube.kod2.config); default: all defaults")
    made.add_argument("--kubeconfig", help="default: the pod's account, $KUBECONFIG, ~/.kube/config")
    made.add_argument("--context", help="of the kubeconfig; default: its current one")
    made.add_argument("--metrics-port", type=int, help="serve /metrics for Prometheus on this port")
    made.add_argument("--metrics-host", default="127.0.0.1", metavar="ADDRESS", help="of this address (%(default)s)")
    made.add_argument("--no-crd", action="store_true", help="do not install the TFJob definition")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    options = parser().parse_args(arguments)
    if options.component == "crd":
        sys.stdout.write(files("mews.kube.kod2").joinpath("crd.yaml").read_text("utf-8"))
        return 0
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    try:
        config = load_config(options.config) if options.config is not None else OperatorConfig()
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return asyncio.run(_serve(options, config))


async def _serve(options: argparse.Namespace, config: OperatorConfig) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        metrics = _metrics(options.metrics_host, options.metrics_port, stack)
        kube = _kube(options)
        stack.push_async_callback(kube.close)
        if not options.no_crd:
            await install(kube)
        context = Context(kube, Clock.wall(), random.Random(), logging.getLogger("operator"))
        return await _until_stopped(Operator(context, config, metrics), stop)


def _kube(options: argparse.Namespace) -> HttpKube:
    named = options.kubeconfig or options.context or os.environ.get("KUBECONFIG")
    if not named and is_in_cluster():
        return in_cluster_kube("kod2-operator")
    return HttpKube.from_kubeconfig(options.kubeconfig, options.context)


def _metrics(host: str, port: int | None, stack: AsyncExitStack) -> Metrics:
    if port is None:
        return Recorder()
    from mews.kube.kod2.prometheus import PrometheusMetrics

    metrics = PrometheusMetrics()
    stack.callback(metrics.serve(port, host))
    return metrics


async def _until_stopped(component: Component, stop: asyncio.Event) -> int:
    running = asyncio.create_task(component.run())
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    crashed = running.done()
    for task in (running, stopping):
        task.cancel()
    outcome, _ = await asyncio.gather(running, stopping, return_exceptions=True)
    if crashed and isinstance(outcome, BaseException):
        raise outcome
    return 0


if __name__ == "__main__":
    sys.exit(main())
