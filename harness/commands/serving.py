"""How the user wants what we serve to be reached: ``--insecure``, ``--tls``, ``--allow-host``, ``--api-port``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mews.harness import terminal
from mews.harness.backends import Backend
from mews.harness.errors import BadInputError
from mews.harness.options import ServingOptions

_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}\.?)+|[0-9a-fA-F:]{2,45}")


def serving_options(
    *,
    insecure: bool,
    tls: bool = False,
    port: int = 0,
    allow_hosts: Sequence[str] | None = None,
    host_access: bool = False,
) -> ServingOptions:
    """Return the options as one value; ``tls`` is the default, and may be said.

    Raises BadInputError.
    """
    if insecure and tls:
        raise BadInputError("--insecure --tls: only one of the two")
    for name in allow_hosts or ():
        if _NAME.fullmatch(name) is None:
            raise BadInputError(f"--allow-host {name!r}: must be a host's name or address, without scheme and port")
    return ServingOptions(insecure, port, tuple(allow_hosts or ()), host_access)


def check_serves(insecure: bool, *, served: bool, cluster: str, time: str) -> None:
    """Raise BadInputError for ``--insecure`` where nothing is served on this machine."""
    if insecure and not served:
        raise BadInputError(f"--insecure: --cluster {cluster} in {time} time serves nothing on this machine")


def warn_insecure(what: str, serving: ServingOptions) -> None:
    """Say in one line on standard error what is open, where something is."""
    if serving.insecure:
        terminal.err(f"--insecure: {what}\n")


def what_is_open(backend: Backend) -> str:
    """Return the words for a cluster of that backend; a real API server speaks TLS all the same."""
    return _OF_CLUSTER if backend.chooses_api_port else OF_CHASSIS


OF_CHASSIS = "control and Redfish in plain HTTP; who listens in on the wire reads their tokens and passwords"
_OF_CLUSTER = "plain HTTP; every user and process of this machine can do all in this cluster, and run commands as you"
