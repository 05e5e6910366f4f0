"""Koordinator's DeviceShare as an oracle, built from its Go module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.systems.koordinator.upstream.comparing import ROWS, compared, ours, row_of
from tests.systems.koordinator.upstream.drawing import drawn
from tests.upstream.oracles.answers import UpstreamAnswers
from tests.upstream.oracles.model import Oracle

MODULE, VERSION = "github.com/koordinator-sh/koordinator", "v1.6.0"
HERE = Path(__file__).parent
SCORES: Sequence[Sequence[int]] = ((0, 0), (7,), (50, 100, 3), (186, 93, 1), (300, 299, 0, 1), (33, 66))
"""Scores of nodes that are normalized."""
_ANSWERS = UpstreamAnswers(
    MODULE, VERSION, "pkg/scheduler/plugins/deviceshare", HERE / "deviceshare_answers_test.go"
)  # fmt: skip
DEVICE_SHARE = Oracle(
    name="koordinator",
    drawn=drawn,
    theirs=_ANSWERS.to,
    read=compared,
    ours=ours,
    row_of=row_of,
    rows=tuple(ROWS),
    page="koordinator.md",
    heading="## Compared with upstream's scheduler",
    golden=HERE / "golden.jsonl",
    recorded=300,
    more=tuple({"scores": scores} for scores in SCORES),
)
