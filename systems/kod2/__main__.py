"""The operator as a process: ``python -m mews.systems.kod2 operator --config FILE --kubeconfig FILE``; and files
for it: ``crd``, ``prometheus``, ``grafana``."""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from mews.kube.clock import Clock
from mews.kube.component import Context
from mews.kube.metrics_options import add_metrics_arguments, metrics_options
from mews.kube.process import add_kubeconfig_arguments, kube_of, run_component
from mews.systems.kod2.config import OperatorConfig, config_of, load_config
from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.install import crd_text, install, package_text
from mews.systems.kod2.metrics import Kod2MemoryMetrics, Kod2Metrics
from mews.systems.kod2.operator import Kod2Operator

PRINTED: Mapping[str, Callable[[], str]] = {
    "crd": crd_text,
    "prometheus": lambda: package_text("monitoring/prometheus.yaml"),
    "grafana": lambda: package_text("monitoring/grafana.json"),
}
COMPONENTS = ("operator", *PRINTED)


_HELP = "crd prints the TFJob definition for kubectl apply -f -, prometheus scrapes, grafana a dashboard"


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.kod2", description=__doc__)
    made.add_argument("component", choices=COMPONENTS, help=_HELP)
    made.add_argument(
        "--config", type=Path, help="read the configuration from this YAML file; default: the built-in values"
    )
    add_kubeconfig_arguments(made)
    add_metrics_arguments(made)
    made.add_argument("--no-crd", action="store_true", help="do not install the TFJob definition")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    options = parser().parse_args(arguments)
    if options.component in PRINTED:
        sys.stdout.write(PRINTED[options.component]())
        return 0
    return run_component(options, _configured, _operator, Kod2ConfigError)


def _configured(options: argparse.Namespace) -> OperatorConfig:
    return _in_environment(load_config(options.config) if options.config is not None else OperatorConfig())


def _in_environment(config: OperatorConfig) -> OperatorConfig:
    """Return it with Kubeflow's CUSTOM_CLUSTER_DOMAIN, where the file names no domain.

    Raises ConfigError in one line.
    """
    domain = os.environ.get("CUSTOM_CLUSTER_DOMAIN", "")
    given = config_of({"cluster_domain": domain}, "environment").cluster_domain
    return config if config.cluster_domain else replace(config, cluster_domain=given)


async def _operator(options: argparse.Namespace, config: OperatorConfig, stack: AsyncExitStack) -> Kod2Operator:
    metrics = _metrics(options, stack)
    kube = kube_of(options, "kod2-operator")
    stack.push_async_callback(kube.close)
    if not options.no_crd:
        await install(kube)
    return Kod2Operator(Context(kube, Clock.wall(), random.Random(), logging.getLogger("operator")), config, metrics)


def _metrics(options: argparse.Namespace, stack: AsyncExitStack) -> Kod2Metrics:
    try:
        wanted = metrics_options(options)
    except ValueError as error:
        raise Kod2ConfigError(str(error)) from error
    if wanted is None:
        return Kod2MemoryMetrics()
    from mews.kube.metrics_server import MetricsServer
    from mews.systems.kod2.prometheus import Kod2PrometheusMetrics

    metrics = Kod2PrometheusMetrics()
    try:
        stack.callback(MetricsServer(metrics.registry, wanted).stop)
    except OSError as error:
        place = f"--metrics-port {wanted.port}: cannot listen on {wanted.host}"
        raise Kod2ConfigError(f"{place}: {error.strerror or error}") from error
    return metrics


if __name__ == "__main__":
    sys.exit(main())
