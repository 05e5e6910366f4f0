"""``mews continue``: let a run go on that ``mews run --break-at`` has stopped."""

from __future__ import annotations

from collections.abc import Sequence

from mews.harness.commands.instances import names_running
from mews.harness.commands.session_words import ArgumentWords, answered, client_of
from mews.harness.errors import BadInputError
from mews.kube.system.command import Command, CommandContext

STOPPED = "run"
"""The session's name of the first run that stops; the next ones are ``run-2``, ``run-3``."""


@answered
def run(words: Sequence[str], context: CommandContext) -> int:
    """Let it go on.

    Raises BadInputError for a session that is not there, ValueError for one that is not stopped.
    """
    parser = ArgumentWords("continue")
    parser.set_defaults(name=STOPPED)
    chosen = parser.parse_args(words)
    try:
        client = client_of(chosen.name)
    except BadInputError:
        raise BadInputError(
            f"--name {chosen.name}: no run of that name is stopped; `mews run FILE --break-at PLACE` stops one; "
            + names_running(chosen.name)
        ) from None
    client.go_on()
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
