"""The proxy between a kubelet and its container runtime: ``python -m mews.kube.runtimehook``."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from mews.kube.deviceplugin.errors import SocketPathTooLongError
from mews.kube.process import run_until_ended
from mews.kube.records_file import RecordsFile
from mews.kube.runtimehook.places import CONTAINERD_SOCKET, HOOK_SOCKET, PROXY, RUNTIME_SOCKET
from mews.kube.runtimehook.port import HookPolicy
from mews.kube.runtimehook.proxy import RuntimeProxy


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m mews.kube.runtimehook", description=__doc__)
    for name, default, what in (
        ("listen", RUNTIME_SOCKET, "listen here for the kubelet"),
        ("runtime", CONTAINERD_SOCKET, "forward calls to this container runtime"),
        ("hooks", HOOK_SOCKET, "call hooks of the node agent here"),
    ):
        made.add_argument(
            f"--{name}", type=Path, default=Path(default), metavar="SOCKET", help=f"{what}; default: {default}"
        )
    made.add_argument(
        "--policy",
        type=HookPolicy,
        choices=tuple(HookPolicy),
        default=HookPolicy.IGNORE,
        help="create a container unchanged if its hook fails (Ignore, the default), or refuse it (Fail)",
    )
    made.add_argument(
        "--without", action="append", default=[], metavar="NAMESPACE", help="call no hooks for pods of this namespace"
    )
    made.add_argument("--records", type=Path, metavar="FILE", help="append structured log records to it, as JSON lines")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; 0 after that, 2 for a socket that cannot be served (one line on standard error)."""
    options = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.records is not None:
        logging.getLogger().addHandler(RecordsFile(options.records))
    log = logging.getLogger(PROXY)

    async def made(_: AsyncExitStack) -> RuntimeProxy:
        sockets = options.listen, options.runtime, options.hooks
        return RuntimeProxy(*sockets, options.policy, log, without=options.without)

    try:
        asyncio.run(run_until_ended(made))
    except (OSError, SocketPathTooLongError) as error:
        sys.stderr.write(f"--listen {options.listen}: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
