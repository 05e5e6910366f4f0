"""What a failed test leaves of what its fixtures served, in a folder for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.emulator.hardware.inventory import Hardware
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.journal import Journal, Line
from mews.harness.report.html import write_report
from mews.harness.report.run import Run
from mews.harness.scenario.artefacts import write_texts
from mews.harness.scenario.result import Result
from mews.own_files import make_own_folder, write_own

_OF_EVENTS = ("seq", "number", "t", "chassis", "event")


def keep_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Files by their path within the folder, which is made; empty ones are left out.

    Raises OSError.
    """
    write_texts(folder, {name: text for name, text in texts.items() if text})


def keep_journal(folder: Path, name: str, cluster: str, lines: Sequence[Line]) -> None:
    """``journal.jsonl`` and ``report.html``.

    Raises OSError.
    """
    make_own_folder(folder)
    write_own(folder / "journal.jsonl", "".join(line.as_json() + "\n" for line in lines))
    result = Result(name, "", cluster, "wall", 0, "failed", "what there was when the test failed")
    write_report(Run(result, list(lines)), folder)


def lines_of_events(hardware: Hardware, events: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return the journal of chassis' events, from the table of the hardware file on; in seconds since the first."""
    begun_s = now_s = float(events[0]["t"]) if events else 0.0
    journal = Journal(lambda: now_s - begun_s)
    feeds = {spec.name: ChassisFeed(journal, spec) for spec in hardware.chassis}
    for feed in feeds.values():
        feed.begin(None)
    for event in events:
        now_s = float(event["t"])
        fields = {name: value for name, value in event.items() if name not in _OF_EVENTS}
        feeds[event["chassis"]].on_event(event["number"], event["event"], fields)
    return journal.lines()


def as_json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return one JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
