"""KubeComp's components as processes: ``python -m mews.systems.kubecomp scheduler|reconfig-manager|device-manager``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.http import HttpTransport
from mews.kube.chassis.port import ChassisApi, RedfishCredentials
from mews.kube.clock import Clock
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.kubelet_arguments import add_kubelet_arguments, kubelet_of
from mews.kube.metrics_options import add_metrics_arguments, metrics_options
from mews.kube.process import add_kubeconfig_arguments, kube_of, run_component
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile, load_callable, load_plugin
from mews.kube.scheduling.errors import PluginDefinitionError
from mews.kube.scheduling.scheduler import Scheduler
from mews.kube.system.files import FolderTree
from mews.kube.system.gpu_driver import NvidiaSmi
from mews.kube.system.host_steps import HostSteps
from mews.kube.system.sysfs import SysfsConfirm
from mews.systems.kubecomp.config import ChassisConfig, KubeCompConfig
from mews.systems.kubecomp.config_file import load_config
from mews.systems.kubecomp.device_manager import ChassisDeviceManager
from mews.systems.kubecomp.errors import KubeCompConfigError
from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics, KubeCompMetrics
from mews.systems.kubecomp.plugin import NODE_SCORE, kubecomp_profile, profile_with
from mews.systems.kubecomp.reconfig_manager import ReconfigManager

COMPONENTS = ("scheduler", "reconfig-manager", "device-manager")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.kubecomp", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument("--config", required=True, type=Path, help="read the configuration from this YAML file")
    add_kubeconfig_arguments(made)
    made.add_argument(
        "--node", default=os.environ.get("NODE_NAME", ""), help="run on this node (device-manager); default: $NODE_NAME"
    )
    add_kubelet_arguments(made)
    made.add_argument("--plugin", metavar="MODULE:CALLABLE", help="use this plugin instead of KubeComp's (scheduler)")
    made.add_argument(
        "--plugin-options", type=_options, default={}, metavar="JSON", help="pass these keyword arguments to the plugin"
    )
    made.add_argument("--score", metavar="MODULE:CALLABLE", help="use this node score instead (scheduler)")
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    add_metrics_arguments(made)
    return made


def _options(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one component until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    options = parser().parse_args(arguments)
    if options.component != "scheduler" and (options.plugin or options.score):
        parser().error(f"--plugin and --score are the scheduler's, not {options.component}'s")
    return run_component(options, _configured, _made, KubeCompConfigError, PluginDefinitionError)


def _configured(options: argparse.Namespace) -> KubeCompConfig:
    config = load_config(options.config)
    if options.component == "device-manager" and config.node(options.node) is None:
        known = ", ".join(node.name for node in config.nodes)
        raise KubeCompConfigError(f"--node {options.node!r}: must be one of the configuration's nodes ({known})")
    return config


async def _made(options: argparse.Namespace, config: KubeCompConfig, stack: AsyncExitStack) -> Runnable:
    metrics = _metrics(options, stack)
    scheduling = profile(options, config, metrics) if options.component == "scheduler" else None
    kube = kube_of(options, f"kubecomp-{options.component}")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
    if scheduling is not None:
        return Scheduler(context, SchedulerConfig(profiles=(scheduling,)))
    chassis = {entry.name: _chassis(entry, config, stack) for entry in config.chassis}
    if options.component == "reconfig-manager":
        return ReconfigManager(context, config, chassis, metrics)
    return _device_manager(options, config, context, chassis, stack)


def _metrics(options: argparse.Namespace, stack: AsyncExitStack) -> KubeCompMetrics:
    try:
        wanted = metrics_options(options)
    except ValueError as error:
        raise KubeCompConfigError(str(error)) from error
    if wanted is None:
        return KubeCompMemoryMetrics()
    from mews.kube.metrics_server import MetricsServer
    from mews.systems.kubecomp.prometheus import KubeCompPrometheusMetrics

    metrics = KubeCompPrometheusMetrics()
    try:
        stack.callback(MetricsServer(metrics.registry, wanted).stop)
    except OSError as error:
        place = f"--metrics-port {wanted.port}: cannot listen on {wanted.host}"
        raise KubeCompConfigError(f"{place}: {error.strerror or error}") from error
    return metrics


def _device_manager(
    options: argparse.Namespace,
    config: KubeCompConfig,
    context: Context,
    chassis: Mapping[str, ChassisApi],
    stack: AsyncExitStack,
) -> ChassisDeviceManager:
    tree = FolderTree(Path(config.sysfs_root)) if config.sysfs_root else None
    driver = NvidiaSmi(config.nvidia_smi) if config.nvidia_smi else None
    link, pod_resources = kubelet_of(options, stack)
    return ChassisDeviceManager(
        context,
        config,
        options.node,
        chassis=chassis,
        link=link,
        pod_resources=pod_resources,
        confirm=SysfsConfirm(tree) if tree is not None else None,
        steps=HostSteps(tree, driver, config.timing) if tree is not None else None,
    )


def profile(options: argparse.Namespace, config: KubeCompConfig, metrics: KubeCompMetrics) -> SchedulerProfile:
    """Return the scheduler's, with the plugin or the score that the options name.

    Raises PluginDefinitionError.
    """
    if options.plugin:
        return profile_with(config, load_plugin(options.plugin, options.plugin_options))
    score = load_callable(options.score, NODE_SCORE) if options.score else None
    return kubecomp_profile(config, metrics=metrics, score=score)


def _chassis(entry: ChassisConfig, config: KubeCompConfig, stack: AsyncExitStack) -> ChassisApi:
    timeout_s = config.timing.chassis_timeout_s
    transport = HttpTransport(entry.endpoint, timeout_s, ca_file=entry.ca_file or None)
    stack.push_async_callback(transport.close)
    account = None
    if entry.password_file:
        account = RedfishCredentials(entry.user, _password(entry))
    return client_of(entry.dialect, transport, account, patience_s=timeout_s)


def _password(entry: ChassisConfig) -> str:
    try:
        return Path(entry.password_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KubeCompConfigError(f"chassis {entry.name}: password_file {entry.password_file}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
