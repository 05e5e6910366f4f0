"""A component as a process of its own: which API server it talks to, and when it ends. Not for virtual runs."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

from mews.kube.client.http import HttpKube
from mews.kube.client.in_cluster import in_cluster_kube, is_in_cluster
from mews.kube.client.kubeconfig.errors import KubeconfigError
from mews.kube.component import Runnable
from mews.kube.records_file import RecordsFile

C = TypeVar("C")


def add_kubeconfig_arguments(parser: argparse.ArgumentParser) -> None:
    """``--kubeconfig FILE``, ``--context NAME``."""
    parser.add_argument(
        "--kubeconfig", help="use this kubeconfig; default: the pod's account, $KUBECONFIG, ~/.kube/config"
    )
    parser.add_argument("--context", help="use this context of the kubeconfig; default: its current context")


def kube_of(options: argparse.Namespace, user_agent: str) -> HttpKube:
    """Return the API server of those options; in a pod without them, its own.

    Raises KubeconfigError.
    """
    named = options.kubeconfig or options.context or os.environ.get("KUBECONFIG")
    if not named and is_in_cluster():
        return in_cluster_kube(user_agent)
    return kubeconfig_kube(options.kubeconfig, options.context)


def kubeconfig_kube(file: str | None, context: str | None = None) -> HttpKube:
    """Return the API server of that file, or of the usual ones.

    Raises KubeconfigError.
    """
    try:
        return HttpKube.from_kubeconfig(file, context)
    except KubeconfigError as error:
        raise KubeconfigError(f"kubeconfig {error}") from error
    except ModuleNotFoundError as error:
        needed = "pip install 'falcon-mews[kubeconfig]' brings what the auth-provider of this kubeconfig needs"
        raise KubeconfigError(f"kubeconfig: {error.name} is not installed; {needed}") from error


def port_number(text: str) -> int:
    """Return it for ``add_argument(type=)``: where a server may listen."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a port from 1 to 65535")
    return int(text)


def run_component(
    options: argparse.Namespace,
    configured: Callable[[argparse.Namespace], C],
    made: Callable[[argparse.Namespace, C, AsyncExitStack], Awaitable[Runnable]],
    *refusals: type[Exception],
) -> int:
    """Run a component until SIGTERM or SIGINT, with the records that ``--records`` asks for, and return its exit code:
    0 after that, 2 where the configuration cannot be used, which one of the ``refusals`` says in one line. A component
    that finds so later raises one of them, too."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if getattr(options, "records", None) is not None:
        logging.getLogger().addHandler(RecordsFile(options.records))
    try:
        configuration = configured(options)
        asyncio.run(run_until_ended(lambda stack: made(options, configuration, stack)))
    except Exception as error:
        refusal = _first_of(error, (KubeconfigError, *refusals))
        if refusal is None:
            raise
        sys.stderr.write(f"{refusal}\n")
        return 2
    return 0


def _first_of(error: Exception, kinds: tuple[type[Exception], ...]) -> Exception | None:
    """Return the error if it is of one of these kinds, or the first such error of a group's, from inside out."""
    if isinstance(error, ExceptionGroup):
        return next(filter(None, (_first_of(each, kinds) for each in error.exceptions)), None)
    return error if isinstance(error, kinds) else None


async def run_until_ended(made: Callable[[AsyncExitStack], Awaitable[Runnable]]) -> None:
    """Run the component that ``made`` makes until SIGTERM or SIGINT; what it pushes on the stack is closed then.

    Raises what the component raises: that is a crash.
    """
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        running = asyncio.create_task(_run(made(stack)))
        waiting = asyncio.create_task(ended.wait())
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        crashed = running.done()
        for task in (running, waiting):
            task.cancel()
        outcome, _ = await asyncio.gather(running, waiting, return_exceptions=True)
        if crashed and isinstance(outcome, BaseException):
            raise outcome


async def _run(making: Awaitable[Runnable]) -> None:
    await (await making).run()
