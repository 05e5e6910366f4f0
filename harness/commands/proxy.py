"""``mews proxy``: in front of a chassis, or of the API server of a kubeconfig."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from mews.harness.commands.words import FailingParser, at_least
from mews.harness.errors import BadInputError
from mews.kube.system.command import Command, CommandContext

SUMMARY = "Forward requests to a chassis or a Kubernetes API, and add deviations or faults."
USAGE = (
    "URL [--wrong NAME]… [--seed N] [--listen HOST:PORT] [--ready FILE] [--ca FILE|--insecure] "
    "[--cert FILE [--key FILE]] [--allow-host NAME] | --list | --kubeconfig FILE [--context NAME] "
    "[--fault KIND[,NAME=VALUE]…]… [--component NAME] [--name NAME] [--dir DIR] [--seed N] [--listen HOST:PORT] "
    "[--ready FILE] [--allow-host NAME] [--json]"
)
_OF_API = ("context", "fault", "component", "name", "dir", "json")
_OF_CHASSIS = ("wrong", "ca", "cert", "key", "insecure")
"""Options of one kind of server, which the other has no use for."""


def run(words: Sequence[str], context: CommandContext) -> int:
    """Stand in front of a chassis until a signal ends it, or list what ``--wrong`` takes.

    Raises BadInputError, RequirementError; ValueError for bad arguments.
    """
    parser = FailingParser("proxy")
    parser.add_argument("url", nargs="?")
    parser.add_argument("--wrong", action="append", default=[])
    parser.add_argument("--listen", default="127.0.0.1:0")
    parser.add_argument("--seed", type=at_least(0), default=0)
    parser.add_argument("--ca", "--cacert", type=Path)
    parser.add_argument("--fault", action="append", default=[])
    for name in ("context", "component", "name"):
        parser.add_argument(f"--{name}")
    for name in ("ready", "cert", "key", "kubeconfig", "dir"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--allow-host", action="append", default=[])
    for name in ("insecure", "list", "json"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args(words)
    if given.kubeconfig is not None:
        return _before_the_api(given)
    _check_unused(given, _OF_API, "only with --kubeconfig")
    if given.list and given.url is not None:
        raise BadInputError(f"--list {given.url}: only one of the two: --list only lists deviations")
    if given.list:
        from mews.harness.commands.wrongs import list_wrongs

        return list_wrongs()
    if given.url is None:
        raise BadInputError("URL: missing; give a chassis' URL, --kubeconfig FILE, or --list")
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


def _before_the_api(given: Namespace) -> int:
    if given.url is not None or given.list:
        other = given.url or "--list"
        raise BadInputError(f"--kubeconfig {given.kubeconfig} {other}: only one of the two")
    _check_unused(given, _OF_CHASSIS, "not with --kubeconfig")
    from mews.harness.commands.api_proxy import ApiProxyArguments, stand_before_the_api

    return stand_before_the_api(
        ApiProxyArguments(
            kubeconfig=given.kubeconfig,
            context=given.context,
            faults=tuple(given.fault),
            component=given.component or "program",
            name=given.name or "proxy",
            folder=given.dir,
            listen=given.listen,
            allow_hosts=tuple(given.allow_host),
            seed=given.seed,
            ready=given.ready,
            as_json=given.json,
        )
    )


def _check_unused(given: Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        if value := getattr(given, name):
            shown = "" if value is True else f" {value[0] if isinstance(value, list) else value}"
            raise BadInputError(f"--{name}{shown}: {why}")


COMMAND = Command(
    "proxy",
    SUMMARY,
    run,
    USAGE,
    options={
        "--wrong NAME": "add this deviation; may be repeated",
        "--list": "list all deviations, and exit",
        "--seed N": "use this seed for deviations and faults that occur at random; default: 0",
        "--listen HOST:PORT": "listen here; default: a free port of 127.0.0.1",
        "--ready FILE": "write where the proxy listens into this file",
        "--ca FILE": "trust these CA certificates of the chassis",
        "--insecure": "trust any certificate of the chassis",
        "--cert FILE": "show this client certificate to the chassis, in PEM; with its key, or with --key",
        "--key FILE": "use this private key of --cert, in PEM, unencrypted",
        "--allow-host NAME": "accept this host name, too; may be repeated",
        "--kubeconfig FILE": "stand before the API server of this kubeconfig, and print a kubeconfig for the program",
        "--context NAME": "use this context of the kubeconfig; default: its current context",
        "--fault KIND[,NAME=VALUE]…": "add this fault of the API first; may be repeated",
        "--component NAME": "call the program so in the journal; default: program",
        "--name NAME": "name the proxy for `mews fault`, `events`, `status` and `down`; default: proxy",
        "--dir DIR": "write kubeconfig, ready.json and journal here; default: a private folder",
        "--json": "print ready.json on one line",
    },
    examples=(
        "mews proxy --kubeconfig ~/.kube/config --fault lagging-watch,by_s=10",
        "mews proxy http://box --wrong null-uuid --listen 127.0.0.1:8090",
        "mews proxy --list",
    ),
)
