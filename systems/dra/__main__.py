"""The GPU driver for dynamic resource allocation as a process: ``python -m mews.systems.dra``."""

from __future__ import annotations

import argparse
import logging
import os
import random
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from mews.kube.clock import Clock
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.errors import SocketPathTooLongError
from mews.kube.deviceplugin.sockets import url
from mews.kube.dra.driver import DriverComponent
from mews.kube.dra.gpus import DRIVER
from mews.kube.dra.grpc_link import GrpcDraLink, calls_socket, registration_socket
from mews.kube.nvml_library import LIBRARY, NvmlLibrary
from mews.kube.process import add_kubeconfig_arguments, kube_of, run_component
from mews.kube.system.facility import ContainerExtras
from mews.systems.dra.config import DraConfig
from mews.systems.dra.config_file import config_of
from mews.systems.dra.driver import driver_of
from mews.systems.dra.errors import DraConfigError
from mews.systems.dra.places import CDI, PLUGINS, REGISTRY


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.dra", description=__doc__)
    made.add_argument(
        "--config",
        type=Path,
        help="read this YAML or JSON file (mews.systems.dra.config); default: the built-in values",
    )
    add_kubeconfig_arguments(made)
    made.add_argument("--node", default=os.environ.get("NODE_NAME", ""), help="run on this node; default: $NODE_NAME")
    made.add_argument(
        "--plugins", type=Path, default=Path(PLUGINS), metavar="DIR", help="serve the kubelet's calls in this folder"
    )
    made.add_argument(
        "--plugins-registry",
        type=Path,
        default=Path(REGISTRY),
        metavar="DIR",
        help="register with the kubelet by a socket in this folder",
    )
    made.add_argument(
        "--cdi", type=Path, default=Path(CDI), metavar="DIR", help="write the claims' CDI files to this folder"
    )
    made.add_argument(
        "--nvml", metavar="FILE", help=f"load this NVML library; default: the configuration's, or {LIBRARY}"
    )
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the driver until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    return run_component(parser().parse_args(arguments), _configured, _made, DraConfigError)


def _configured(options: argparse.Namespace) -> DraConfig:
    config = config_of(options.config)
    if not options.node:
        raise DraConfigError("--node: must name this node, or $NODE_NAME must")
    _check_folders(options)
    return config


def _check_folders(options: argparse.Namespace) -> None:
    """They can be made, and have room for the sockets' names. Raises DraConfigError."""
    sockets = {
        "--plugins": calls_socket(options.plugins, DRIVER),
        "--plugins-registry": registration_socket(options.plugins_registry, DRIVER),
    }
    for flag, folder in {**{flag: each.parent for flag, each in sockets.items()}, "--cdi": options.cdi}.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if flag in sockets:
                url(sockets[flag])
        except SocketPathTooLongError as error:
            raise DraConfigError(f"{flag}: {error}") from error
        except OSError as error:
            raise DraConfigError(f"{flag} {folder}: cannot be used: {error.strerror}") from error


async def _made(options: argparse.Namespace, config: DraConfig, stack: AsyncExitStack) -> Runnable:
    kube = kube_of(options, "dra-gpu-driver")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger("dra-gpu-driver"))
    nvml = NvmlLibrary(options.nvml or config.nvml or LIBRARY)
    link = GrpcDraLink(plugins=options.plugins, registry=options.plugins_registry, cdi=options.cdi)
    driver = driver_of(nvml, ContainerExtras(config.envs, config.mounts), health=config.health)
    return DriverComponent(context, driver, link=link, node=options.node, poll_s=config.poll_s)


if __name__ == "__main__":
    sys.exit(main())
