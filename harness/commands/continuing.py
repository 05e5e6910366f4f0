"""``mews continue``: let a run go on that ``mews run --break-at`` has stopped."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.commands.session_words import ArgumentWords, answered, client_of
from mews.kube.system.command import Command, CommandContext

STOPPED = "run"
"""The session's name of the first run that stops; the next ones are ``run-2``, ``run-3``."""


@answered
def run(words: Sequence[str], context: CommandContext) -> int:
    """Let it go on.

    Raises BadInput for a session that is not there, ValueError for one that is not stopped.
    """
    parser = ArgumentWords("continue")
    parser.set_defaults(name=STOPPED)
    chosen = parser.parse_args(words)
    client_of(chosen.name).go_on()
    context.write(f"{chosen.name}: goes on\n")
    return 0


COMMAND = Command(
    "continue",
    "Let a run go on that `mews run --break-at` has stopped.",
    run,
    "[--name NAME]",
    options={"--name NAME": "let the run of this session go on; default: run"},
    examples=("mews continue", "mews continue --name run-2"),
)
