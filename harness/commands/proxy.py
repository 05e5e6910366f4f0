"""``mews proxy``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mews.harness.commands.words import FailingParser, at_least
from mews.harness.errors import BadInput
from mews.kube.system.command import Command, CommandContext

SUMMARY = "Forward requests to a chassis, and add deviations to its replies."
USAGE = (
    "URL [--wrong NAME]… [--seed N] [--listen HOST:PORT] [--ready FILE] [--ca FILE|--insecure] "
    "[--cert FILE [--key FILE]] [--allow-host NAME] | --list"
)


def run(words: Sequence[str], context: CommandContext) -> int:
    """Stand in front of a chassis until a signal ends it, or list what ``--wrong`` takes.

    Raises BadInput, Lacks; ValueError for bad arguments.
    """
    parser = FailingParser("proxy")
    parser.add_argument("url", nargs="?")
    parser.add_argument("--wrong", action="append", default=[])
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--seed", type=at_least(0), default=0)
    parser.add_argument("--ca", "--cacert", type=Path)
    for name in ("ready", "cert", "key"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--allow-host", action="append", default=[])
    for name in ("insecure", "list"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args(words)
    if given.list and given.url is not None:
        raise BadInput(f"--list {given.url}: only one of the two: --list only lists deviations")
    if given.list:
        from mews.harness.commands.wrongs import list_wrongs

        return list_wrongs()
    if given.url is None:
        raise BadInput("URL: missing; give a chassis' URL, or --list")
    # With the server and its certificates: nothing but this command waits for it.
    from mews.harness.commands.wrongs import ProxyArguments, stand_in_front
    from mews.harness.conformance.certificates import TlsArguments

    return stand_in_front(
        ProxyArguments(
            given.url,
            tuple(given.wrong),
            given.listen,
            given.seed,
            given.ready,
            TlsArguments(given.ca, given.insecure, given.cert, given.key),
            tuple(given.allow_host),
        )
    )


COMMAND = Command(
    "proxy",
    SUMMARY,
    run,
    USAGE,
    options={
        "--wrong NAME": "add this deviation; may be repeated",
        "--list": "list all deviations, and exit",
        "--seed N": "use this seed for deviations that occur at random; default: 0",
        "--listen HOST:PORT": "listen here; default: a free port of 127.0.0.1",
        "--ready FILE": "write where the proxy listens into this file",
        "--ca FILE": "trust these CA certificates of the chassis",
        "--insecure": "trust any certificate of the chassis",
        "--cert FILE": "show this client certificate to the chassis, in PEM; with its key, or with --key",
        "--key FILE": "use this private key of --cert, in PEM, unencrypted",
        "--allow-host NAME": "accept this host name, too; may be repeated",
    },
    examples=("mews proxy http://box --wrong null-uuid --listen 127.0.0.1:8090", "mews proxy --list"),
)
