"""KubeComp's components as processes: ``python -m mews.kube.kubecomp scheduler|reconfig-manager|device-manager``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from mews.kube.chassis.dialects import speak
from mews.kube.chassis.http import HttpTransport
from mews.kube.chassis.port import ChassisApi
from mews.kube.chassis.redfish import Account
from mews.kube.client.http import HttpKube
from mews.kube.client.in_cluster import in_cluster_kube, is_in_cluster
from mews.kube.clock import Clock
from mews.kube.component import Component, Context
from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.grpc_link import GrpcLink
from mews.kube.kubecomp.config import ChassisConfig, KubeCompConfig
from mews.kube.kubecomp.config_file import load_config
from mews.kube.kubecomp.device_manager import DeviceManager
from mews.kube.kubecomp.errors import ConfigError
from mews.kube.kubecomp.metrics import Metrics, Recorder
from mews.kube.kubecomp.plugin import kubecomp_profile
from mews.kube.kubecomp.reconfig_manager import ReconfigManager
from mews.kube.kubecomp.sysfs import FolderTree, SysfsConfirm
from mews.kube.records_file import RecordsFile
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler

COMPONENTS = ("scheduler", "reconfig-manager", "device-manager")
_KUBELET = Path("/var/lib/kubelet")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m mews.kube.kubecomp", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument("--config", required=True, type=Path, help="YAML file (mews.kube.kubecomp.config)")
    made.add_argument("--kubeconfig", help="default: the pod's account, $KUBECONFIG, ~/.kube/config")
    made.add_argument("--context", help="of the kubeconfig; default: its current one")
    made.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="device-manager: default $NODE_NAME")
    made.add_argument("--device-plugins", type=Path, default=_KUBELET / "device-plugins", metavar="DIR")
    made.add_argument("--pod-resources", type=Path, default=_KUBELET / "pod-resources", metavar="DIR")
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    made.add_argument("--metrics-port", type=int, help="serve /metrics for Prometheus on this port of loopback")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one component until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.records is not None:
        logging.getLogger().addHandler(RecordsFile(options.records))
    try:
        config = load_config(options.config)
        if options.component == "device-manager" and config.node(options.node) is None:
            known = ", ".join(node.name for node in config.nodes)
            raise ConfigError(f"--node {options.node!r}: must be one of the configuration's nodes ({known})")
        return asyncio.run(_serve(options, config))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2


async def _serve(options: argparse.Namespace, config: KubeCompConfig) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        metrics = _metrics(options.metrics_port, stack)
        kube = _kube(options)
        stack.push_async_callback(kube.close)
        context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
        component = await stack.enter_async_context(_component(options, config, context, metrics))
        return await _until_stopped(component, stop)


def _kube(options: argparse.Namespace) -> HttpKube:
    named = options.kubeconfig or options.context or os.environ.get("KUBECONFIG")
    if not named and is_in_cluster():
        return in_cluster_kube(f"kubecomp-{options.component}")
    return HttpKube.from_kubeconfig(options.kubeconfig, options.context)


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


def _metrics(port: int | None, stack: AsyncExitStack) -> Metrics:
    if port is None:
        return Recorder()
    from mews.kube.kubecomp.prometheus import PrometheusMetrics

    metrics = PrometheusMetrics()
    stack.callback(metrics.serve(port))
    return metrics


@asynccontextmanager
async def _component(
    options: argparse.Namespace, config: KubeCompConfig, context: Context, metrics: Metrics
) -> AsyncIterator[Component]:
    if options.component == "scheduler":
        yield Scheduler(context, SchedulerConfig(profiles=(kubecomp_profile(config, metrics=metrics),)))
        return
    async with AsyncExitStack() as stack:
        chassis = {entry.name: _chassis(entry, config, stack) for entry in config.chassis}
        if options.component == "reconfig-manager":
            yield ReconfigManager(context, config, chassis, metrics)
            return
        pod_resources = GrpcPodResources(options.pod_resources / "kubelet.sock")
        stack.push_async_callback(pod_resources.close)
        link = GrpcLink(options.device_plugins)
        stack.push_async_callback(link.close)
        yield DeviceManager(
            context,
            config,
            options.node,
            chassis=chassis,
            link=link,
            pod_resources=pod_resources,
            confirm=SysfsConfirm(FolderTree(Path(config.sysfs_root))) if config.sysfs_root else None,
        )


def _chassis(entry: ChassisConfig, config: KubeCompConfig, stack: AsyncExitStack) -> ChassisApi:
    timeout_s = config.timing.chassis_timeout_s
    transport = HttpTransport(entry.endpoint, timeout_s, ca_file=entry.ca_file or None)
    stack.push_async_callback(transport.close)
    account = None
    if entry.password_file:
        account = Account(entry.user, Path(entry.password_file).read_text(encoding="utf-8").strip())
    return speak(entry.dialect, transport, account, patience_s=timeout_s)


if __name__ == "__main__":
    sys.exit(main())
