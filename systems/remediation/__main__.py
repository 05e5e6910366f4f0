"""The remediation's components as processes: ``python -m mews.systems.remediation controller|agent``."""

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
from mews.kube.process import add_kubeconfig_arguments, kube_of, run_component
from mews.kube.system.files import FolderTree
from mews.kube.system.gpu_driver import NvidiaSmi
from mews.systems.remediation.agent import RemediationAgent
from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.config_file import config_of
from mews.systems.remediation.controller import RemediationController
from mews.systems.remediation.errors import RemediationConfigError

COMPONENTS = ("controller", "agent")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.systems.remediation", description=__doc__)
    made.add_argument("component", choices=COMPONENTS)
    made.add_argument(
        "--config",
        type=Path,
        help="read this YAML or JSON file (mews.systems.remediation.config); default: the built-in values",
    )
    add_kubeconfig_arguments(made)
    made.add_argument(
        "--node", default=os.environ.get("NODE_NAME", ""), help="run on this node (agent); default: $NODE_NAME"
    )
    made.add_argument(
        "--host-root",
        metavar="DIR",
        help="read the host's files in this folder (agent); default: the configuration's",
    )
    made.add_argument(
        "--nvidia-smi",
        metavar="FILE",
        help="run this nvidia-smi to reset GPUs, as an agent; default: the path in the configuration",
    )
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one component until SIGTERM or SIGINT; 0 after that, 2 for bad input (one line on standard error)."""
    return run_component(parser().parse_args(arguments), _configured, _made, RemediationConfigError)


def _configured(options: argparse.Namespace) -> RemediationConfig:
    config = config_of(options.config)
    if options.component == "agent" and not options.node:
        raise RemediationConfigError("--node: must name this node, or $NODE_NAME must")
    return config


async def _made(options: argparse.Namespace, config: RemediationConfig, stack: AsyncExitStack) -> Runnable:
    kube = kube_of(options, f"remediation-{options.component}")
    stack.push_async_callback(kube.close)
    context = Context(kube, Clock.wall(), random.Random(), logging.getLogger(options.component))
    if options.component == "controller":
        return RemediationController(context, config)
    files = FolderTree(Path(options.host_root or config.host_root or "/"))
    driver = NvidiaSmi(options.nvidia_smi or config.nvidia_smi or "nvidia-smi")
    return RemediationAgent(context, config, options.node, files=files, driver=driver)


if __name__ == "__main__":
    sys.exit(main())
