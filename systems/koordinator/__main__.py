"""Koordinator's components as processes: ``python -m mews.systems.koordinator COMPONENT``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import fields

from mews.kube.clock import Clock
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.kubelet_arguments import add_kubelet_arguments, kubelet_of
from mews.kube.deviceplugin.port import Mount
from mews.kube.nvml_library import LIBRARY, NvmlLibrary
from mews.kube.process import add_kubeconfig_arguments, kube_of, port_number, run_component
from mews.kube.runtimehook.grpc_hooks import GrpcHookSocket
from mews.kube.runtimehook.places import HOOK_SOCKET
from mews.kube.serving import HttpService, ServedCertificate
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.files import FolderTree
from mews.kube.system.ports import NodeAccess
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.config_file import check_values
from mews.systems.koordinator.device_kinds import KINDS, kinds_of
from mews.systems.koordinator.errors import KoordinatorConfigError
from mews.systems.koordinator.gpu_plugin import GpuDevicePlugin
from mews.systems.koordinator.koordlet import Koordlet
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.scheduler import KoordScheduler
from mews.systems.koordinator.scoring import weights_of
from mews.systems.koordinator.system import WEBHOOK
from mews.systems.koordinator.webhook import KoordWebhook

COMPONENTS = ("scheduler", "webhook", "koordlet", "device-plugin")
_SERVERS = ("scheduler", "webhook")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.koordinator", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument(
        "--config",
        type=Path,
        help="read this YAML or JSON file (mews.systems.koordinator.config); default: the built-in values",
    )
    add_kubeconfig_arguments(made)
    made.add_argument("--host", default="127.0.0.1", help="listen on this address (scheduler and webhook)")
    made.add_argument("--port", type=port_number, default=10251, help="listen on this port (scheduler and webhook)")
    made.add_argument(
        "--certificate", type=Path, metavar="FILE", help="serve with this certificate, in PEM (scheduler and webhook)"
    )
    made.add_argument("--key", type=Path, metavar="FILE", help="use this private key, in PEM (scheduler and webhook)")
    made.add_argument(
        "--authority", type=Path, metavar="FILE", help="give the API server this CA certificate, in PEM (webhook)"
    )
    made.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="accept this host name, too (scheduler and webhook)",
    )
    made.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="run on this node; default: $NODE_NAME")
    add_kubelet_arguments(made)
    made.add_argument(
        "--hooks",
        type=Path,
        default=Path(HOOK_SOCKET),
        metavar="SOCKET",
        help=f"serve hooks on this socket (koordlet); default: {HOOK_SOCKET}",
    )
    made.add_argument(
        "--runtime",
        type=Path,
        metavar="SOCKET",
        help="read environments of containers from this CRI socket (koordlet); default: none",
    )
    made.add_argument(
        "--nvml", metavar="FILE", help=f"load this NVML library; default: the configuration's, or {LIBRARY}"
    )
    made.add_argument("--no-gpus", action="store_true", help="run on a node without NVML (koordlet)")
    made.add_argument(
        "--host-root",
        type=Path,
        metavar="DIR",
        help="read the host's sys and proc from this folder (koordlet); default: the configuration's, or /",
    )
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def config_of(path: Path | None) -> KoordinatorConfig:
    """Return the configuration of a file.

    Raises KoordinatorConfigError, one line.
    """
    if path is None:
        return KoordinatorConfig()
    try:
        read: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise KoordinatorConfigError(f"{path}: {' '.join(str(error).split())}") from error
    given = _known(read, KoordinatorConfig, str(path))
    check_values(given, str(path))
    weights_of(given.get("device_weights"), f"{path}: device_weights")
    koordlet = _known(given.pop("koordlet", {}), KoordletConfig, f"{path}: koordlet")
    check_values(koordlet, f"{path}: koordlet")
    kinds = koordlet.pop("kinds", None)
    if "adopt" in koordlet:
        koordlet["adopt"] = tuple(koordlet["adopt"])
    try:
        mounts = tuple(Mount(**each) for each in given.get("mounts", ()))
    except TypeError as error:
        raise KoordinatorConfigError(f"{path}: mounts: {error}") from error
    own = KoordletConfig(**koordlet, kinds=KINDS if kinds is None else kinds_of(kinds, f"{path}: koordlet.kinds"))
    return KoordinatorConfig(**{**given, "nodes": tuple(given.get("nodes", ())), "mounts": mounts, "koordlet": own})


def _known(read: Any, kind: type, where: str) -> dict[str, Any]:
    known = [field.name for field in fields(kind)]
    if not isinstance(read, Mapping) or not set(read) <= set(known):
        raise KoordinatorConfigError(f"{where}: must be a mapping with {', '.join(known)}")
    return dict(read)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one component until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    return run_component(parser().parse_args(arguments), _configured, _made, KoordinatorConfigError)


def _configured(options: argparse.Namespace) -> KoordinatorConfig:
    config = config_of(options.config)
    if options.component not in _SERVERS and not options.node:
        raise KoordinatorConfigError("--node: must name this node, or $NODE_NAME must")
    if (options.certificate is None) != (options.key is None):
        raise KoordinatorConfigError("--certificate and --key: must be given together")
    if options.component == "webhook" and (options.certificate is None or options.authority is None):
        raise KoordinatorConfigError("webhook: must have --certificate, --key and --authority")
    return config


async def _made(options: argparse.Namespace, config: KoordinatorConfig, stack: AsyncExitStack) -> Runnable:
    kube = kube_of(options, f"koordinator-{options.component}")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
    if options.component == "scheduler":
        return KoordScheduler(context, config, _service(options))
    if options.component == "webhook":
        return KoordWebhook(context, config, _service(options))
    link, pod_resources = kubelet_of(options, stack)
    node = NodeAccess(
        options.node,
        link=link,
        pod_resources=pod_resources,
        files=FolderTree(options.host_root or Path(config.host_files or "/")),
        nvml=None if options.no_gpus else NvmlLibrary(options.nvml or config.nvml or LIBRARY),
        checkpoint=FolderCheckpoint(options.device_plugins),
        hooks=GrpcHookSocket(options.hooks, options.runtime) if options.component == "koordlet" else None,
        extras=ContainerExtras(config.envs, config.mounts),
        device_folder=config.host_files,
    )
    if options.component == "device-plugin":
        return GpuDevicePlugin(context, node)
    return Koordlet(context, config.koordlet, node)


class FolderCheckpoint:
    """The kubelet's checkpoint in its device-plugins folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "kubelet_internal_checkpoint"

    async def read(self) -> str:
        """Return its text. Raises OSError."""
        return await asyncio.to_thread(self._path.read_text)


def _service(options: argparse.Namespace) -> HttpService:
    certificate = None
    if options.certificate is not None:
        try:
            certificate = ServedCertificate(options.certificate, options.key, options.authority)
        except OSError as error:  # ssl.SSLError is one
            raise KoordinatorConfigError(f"--certificate {options.certificate}: cannot be used: {error}") from error
    return HttpService(options.host, options.port, names=options.allow_host, service=WEBHOOK, certificate=certificate)


if __name__ == "__main__":
    sys.exit(main())
