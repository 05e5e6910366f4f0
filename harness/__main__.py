"""The entry point of ``mews``, and ``python -m mews.harness``."""

from __future__ import annotations

from mews.harness.commands import collecting


def main() -> None:
    """The command line. What makes it is imported here: a twentieth of that went into collecting it ever again."""
    collecting.begin()
    from mews.harness import cli

    cli.main()


if __name__ == "__main__":
    main()
