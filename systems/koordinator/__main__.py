"""Koordinator's components as processes: ``python -m mews.systems.koordinator scheduler|koordlet|device-plugin``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from mews.kube.clock import Clock
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.grpc_link import GrpcLink
from mews.kube.nvml_library import LIBRARY, NvmlLibrary
from mews.kube.process import KubeconfigError, add_kubeconfig_arguments, kube_of, port_number, run_until_ended
from mews.kube.records_file import RecordsFile
from mews.kube.runtimehook.grpc_hooks import GrpcHookSocket
from mews.kube.serving import HttpService
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

COMPONENTS = ("scheduler", "koordlet", "device-plugin")
_KUBELET = Path("/var/lib/kubelet")
_SOCKET = Path("/var/run/koordlet/koordlet.sock")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.koordinator", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument(
        "--config", type=Path, help="YAML or JSON (mews.systems.koordinator.config); default: its defaults"
    )
    add_kubeconfig_arguments(made)
    made.add_argument("--host", default="127.0.0.1", help="scheduler: the address to listen on")
    made.add_argument("--port", type=port_number, default=10251, help="scheduler: the port to listen on")
    made.add_argument("--certificate", type=Path, metavar="FILE", help="scheduler: of a server under TLS, in PEM")
    made.add_argument("--key", type=Path, metavar="FILE", help="scheduler: of that certificate, in PEM")
    made.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="scheduler: another name of it")
    made.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="on a node: default $NODE_NAME")
    made.add_argument("--device-plugins", type=Path, default=_KUBELET / "device-plugins", metavar="DIR")
    made.add_argument("--pod-resources", type=Path, default=_KUBELET / "pod-resources", metavar="DIR")
    made.add_argument("--hooks", type=Path, default=_SOCKET, metavar="SOCKET", help=f"koordlet: default {_SOCKET}")
    made.add_argument("--nvml", metavar="FILE", default=LIBRARY, help=f"on a node: default {LIBRARY}")
    made.add_argument("--no-gpus", action="store_true", help="koordlet: this node has no NVML")
    made.add_argument(
        "--host-root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="koordlet: with the host's sys and proc",
    )
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def config_of(path: Path | None) -> KoordinatorConfig:
    """The configuration of a file.

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
    koordlet = _known(given.pop("koordlet", {}), KoordletConfig, f"{path}: koordlet")
    check_values(koordlet, f"{path}: koordlet")
    kinds = koordlet.pop("kinds", None)
    if "adopt" in koordlet:
        koordlet["adopt"] = tuple(koordlet["adopt"])
    own = KoordletConfig(**koordlet, kinds=KINDS if kinds is None else kinds_of(kinds, f"{path}: koordlet.kinds"))
    return KoordinatorConfig(**{**given, "nodes": tuple(given.get("nodes", ())), "koordlet": own})


def _known(read: Any, kind: type, where: str) -> dict[str, Any]:
    known = [field.name for field in fields(kind)]
    if not isinstance(read, Mapping) or not set(read) <= set(known):
        raise KoordinatorConfigError(f"{where}: must be a mapping with {', '.join(known)}")
    return dict(read)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one component until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.records is not None:
        logging.getLogger().addHandler(RecordsFile(options.records))
    try:
        config = config_of(options.config)
        if options.component != "scheduler" and not options.node:
            raise KoordinatorConfigError("--node: must name this node, or $NODE_NAME must")
        if (options.certificate is None) != (options.key is None):
            raise KoordinatorConfigError("--certificate and --key: must be given together")
        asyncio.run(run_until_ended(lambda stack: _made(options, config, stack)))
    except (KoordinatorConfigError, KubeconfigError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


async def _made(options: argparse.Namespace, config: KoordinatorConfig, stack: AsyncExitStack) -> Runnable:
    kube = kube_of(options, f"koordinator-{options.component}")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
    if options.component == "scheduler":
        return KoordScheduler(context, config, _service(options))
    pod_resources = GrpcPodResources(options.pod_resources / "kubelet.sock")
    stack.push_async_callback(pod_resources.close)
    link = GrpcLink(options.device_plugins)
    stack.push_async_callback(link.close)
    node = NodeAccess(
        options.node,
        link=link,
        pod_resources=pod_resources,
        files=FolderTree(options.host_root),
        nvml=None if options.no_gpus else NvmlLibrary(options.nvml),
        checkpoint=FolderCheckpoint(options.device_plugins),
        hooks=GrpcHookSocket(options.hooks) if options.component == "koordlet" else None,
    )
    if options.component == "device-plugin":
        return GpuDevicePlugin(context, node)
    return Koordlet(context, config.koordlet, node)


class FolderCheckpoint:
    """The kubelet's checkpoint in its device-plugins folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "kubelet_internal_checkpoint"

    async def read(self) -> str:
        """Its text. Raises OSError."""
        return await asyncio.to_thread(self._path.read_text)


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
