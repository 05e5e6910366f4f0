"""What stands before every command: ``mews -q run demo``."""

# No annotations from __future__: typer would have to read each of them from its text again.
import os
from contextvars import ContextVar
from typing import Annotated

import typer

from mews.harness import terminal

_quiet: ContextVar[bool] = ContextVar("mews_quiet", default=False)


def is_quiet() -> bool:
    """Return whether only what goes wrong is to be shown."""
    return _quiet.get()


def _show_version(wanted: bool) -> None:
    if wanted:
        from mews import __version__

        terminal.out(f"mews {__version__}\n")
        raise typer.Exit


def global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="print the version and exit")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="print neither progress nor what passed; servers log errors only")
    ] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "-v",
            "--verbose",
            count=True,
            show_default=False,
            help="log components' messages to standard error; -vv: all of them",
        ),
    ] = 0,
    no_color: Annotated[bool, typer.Option("--no-color", help="print without colours, as with NO_COLOR set")] = False,
) -> None:
    """Emulate a composable GPU pool for Kubernetes, and test the software that uses it."""
    if quiet and verbose:
        raise typer.BadParameter("-q and -v: only one of the two", ctx=context)
    token = _quiet.set(quiet)
    context.call_on_close(lambda: _quiet.reset(token))
    if no_color:
        _without_color(context)
    if verbose:
        _log_to_stderr(context, "INFO" if verbose == 1 else "DEBUG")
    if context.invoked_subcommand is None:
        terminal.out(context.get_help() + "\n")
        raise typer.Exit


def _without_color(context: typer.Context) -> None:
    """By the environment, so that programs that are started know it, too."""
    before = os.environ.get("NO_COLOR")
    os.environ["NO_COLOR"] = "1"

    def restore() -> None:
        if before is None:
            os.environ.pop("NO_COLOR", None)
        else:
            os.environ["NO_COLOR"] = before

    context.call_on_close(restore)


def _log_to_stderr(context: typer.Context, level: str) -> None:
    import logging  # not before it is needed: every start would pay for it

    from mews.harness.commands.log_handler import stderr_handler

    logger, handler = logging.getLogger("mews"), stderr_handler(level)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)

    def restore() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    context.call_on_close(restore)
