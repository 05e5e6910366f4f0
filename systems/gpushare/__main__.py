"""GPU Share's components as processes: ``python -m mews.systems.gpushare extender|device-plugin``."""

from __future__ import annotations

import argparse
import logging
import os
import random
import ssl
import sys
from collections.abc import Sequence
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
from mews.kube.serving import HttpService
from mews.kube.system.facility import ContainerExtras
from mews.kube.system.files import FolderTree
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.errors import GpuShareConfigError
from mews.systems.gpushare.extender import GpuShareExtender
from mews.systems.gpushare.node_plugin import GpuShareNodePlugin

COMPONENTS = ("extender", "device-plugin")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.gpushare", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument(
        "--config",
        type=Path,
        help="read this YAML or JSON file (mews.systems.gpushare.config); default: the built-in values",
    )
    add_kubeconfig_arguments(made)
    made.add_argument("--host", default="127.0.0.1", help="listen on this address (extender)")
    made.add_argument("--port", type=port_number, default=39999, help="listen on this port (extender)")
    made.add_argument("--certificate", type=Path, metavar="FILE", help="serve with this certificate, in PEM (extender)")
    made.add_argument("--key", type=Path, metavar="FILE", help="use this private key, in PEM (extender)")
    made.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="accept this host name, too (extender)"
    )
    made.add_argument(
        "--node", default=os.environ.get("NODE_NAME", ""), help="run on this node (device-plugin); default: $NODE_NAME"
    )
    add_kubelet_arguments(made)
    made.add_argument(
        "--nvml",
        metavar="FILE",
        help=f"load this NVML library (device-plugin); default: the configuration's, or {LIBRARY}",
    )
    made.add_argument(
        "--host-root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="read the host's proc from this folder (device-plugin)",
    )
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def config_of(path: Path | None) -> GpuShareConfig:
    """Return the configuration of a file.

    Raises GpuShareConfigError, one line.
    """
    if path is None:
        return GpuShareConfig()
    known = [field.name for field in fields(GpuShareConfig)]
    try:
        read: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise GpuShareConfigError(f"{path}: {' '.join(str(error).split())}") from error
    if not isinstance(read, dict) or not read.keys() <= set(known):
        raise GpuShareConfigError(f"{path}: must be a mapping with {', '.join(known)}")
    try:
        mounts = tuple(Mount(**each) for each in read.pop("mounts", ()))
    except TypeError as error:
        raise GpuShareConfigError(f"{path}: mounts: {error}") from error
    return GpuShareConfig(**{**read, "nodes": tuple(read.get("nodes", ())), "mounts": mounts})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one component until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    return run_component(parser().parse_args(arguments), _configured, _made, GpuShareConfigError)


def _configured(options: argparse.Namespace) -> GpuShareConfig:
    config = config_of(options.config)
    if options.component == "device-plugin" and not options.node:
        raise GpuShareConfigError("--node: must name this node, or $NODE_NAME must")
    if (options.certificate is None) != (options.key is None):
        raise GpuShareConfigError("--certificate and --key: must be given together")
    return config


async def _made(options: argparse.Namespace, config: GpuShareConfig, stack: AsyncExitStack) -> Runnable:
    kube = kube_of(options, f"gpushare-{options.component}")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
    if options.component == "extender":
        return GpuShareExtender(context, config, _service(options))
    link, pod_resources = kubelet_of(options, stack)
    node = NodeAccess(
        options.node,
        link=link,
        pod_resources=pod_resources,
        files=FolderTree(options.host_root),
        nvml=NvmlLibrary(options.nvml or config.nvml or LIBRARY),
        extras=ContainerExtras(config.envs, config.mounts),
    )
    return GpuShareNodePlugin(context, config, node)


def _service(options: argparse.Namespace) -> HttpService:
    tls = None
    if options.certificate is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(options.certificate, options.key)
        except OSError as error:  # ssl.SSLError is one
            raise GpuShareConfigError(f"--certificate {options.certificate}: cannot be used: {error}") from error
    return HttpService(options.host, options.port, tls=tls, names=options.allow_host)


if __name__ == "__main__":
    sys.exit(main())
