"""``mews snapshot save`` and ``restore``: a running session as a file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from mews.harness.commands.session_words import NAME, NAMED, ArgumentWords, answered, client_of
from mews.kube.system.command import Command, CommandContext

_PARTS = ("early", "pods", "others", "late")


@answered
def save(words: Sequence[str], context: CommandContext) -> int:
    """Write what the session is now into a file."""
    parser = ArgumentWords("snapshot save")
    parser.add_argument("file", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)
    document = client_of(chosen.name).get(f"/v1/snapshot?name={quote(chosen.file.stem, safe='')}")

    from mews.harness.live.snapshot_file import write_snapshot

    write_snapshot(chosen.file, document)
    objects = sum(len(document[part]) for part in _PARTS)
    context.write(f"saved: {objects} objects, {len(document['faults'])} faults\n")
    for each in document["leftOut"]:
        context.write(f"left out: {each}\n")
    return 0


@answered
def restore(words: Sequence[str], context: CommandContext) -> int:
    """Make the session as a file has it."""
    parser = ArgumentWords("snapshot restore")
    parser.add_argument("file", type=Path, metavar="FILE")
    chosen = parser.parse_args(words)

    from mews.harness.live.snapshot_file import load_snapshot

    client, document = client_of(chosen.name), load_snapshot(chosen.file)
    try:
        reason = client.restore(document)
    except ValueError as error:
        raise ValueError(f"{chosen.file}: {error}") from error
    context.write(f"not as it was: {reason}\n" if reason else "restored\n")
    return 1 if reason else 0


SNAPSHOTS = (
    Command(
        "snapshot save",
        "Save objects, tables, faults and hosts of the session to a file.",
        save,
        f"{NAME} FILE",
        options=NAMED,
        examples=("mews snapshot save lab.json",),
    ),
    Command(
        "snapshot restore",
        "Restore a saved file; what the session holds is replaced.",
        restore,
        f"{NAME} FILE",
        options=NAMED,
        examples=("mews snapshot restore lab.json",),
    ),
)
"""In the order in which --help shows them."""
