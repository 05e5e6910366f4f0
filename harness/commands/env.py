"""``mews env``: the variables that let a shell see the GPUs of one node."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.commands.instances import ready_of
from mews.harness.commands.session_words import NAMED, ArgumentWords
from mews.harness.errors import BadInputError
from mews.kube.system.command import Command, CommandContext
from mews.names import must_be


def run(words: Sequence[str], context: CommandContext) -> int:
    """Print a line that a shell evaluates.

    Raises BadInputError for a session or a host that is not there.
    """
    parser = ArgumentWords("env")
    parser.add_argument("host", metavar="HOST")
    chosen = parser.parse_args(words)
    nodes: Mapping[str, Any] = ready_of(chosen.name)["nodes"]
    if chosen.host not in nodes:
        raise BadInputError(f"mews env {chosen.host}: {must_be(chosen.host, nodes)}")
    env: Mapping[str, str] = nodes[chosen.host]["env"]
    if env:
        context.write(f"export {' '.join(f'{name}={shlex.quote(value)}' for name, value in env.items())}\n")
    return 0


COMMAND = Command(
    "env",
    "Print the variables that let a shell see the GPUs of a host, for eval.",
    run,
    "[--name NAME] HOST",
    options=NAMED,
    examples=("mews env host-1",),
)
