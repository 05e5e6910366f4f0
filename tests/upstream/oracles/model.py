"""An oracle: cases of chance, what somebody else decides in each, what ours decides, and where the two may differ."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Case = Mapping[str, Any]
"""A JSON document that both sides read."""
Answer = Mapping[str, Any]
"""``verdict``, in a word, and whatever else must be equal."""
DOCS = Path(__file__).parents[3] / "docs"


@dataclass(frozen=True)
class Oracle:
    """``theirs``: what the other side answers to cases (raises NotBuiltError where it cannot be had), which ``read``
    makes an Answer. ``row_of``: the row of the table of differences that a difference is of, "" for none; ``rows``: all
    of them, which stand in ``page`` below ``heading``. ``cases``: how many are drawn where nobody says it. ``golden``:
    the file of recorded answers to the first ``recorded`` cases and to ``more`` (other questions), for where there is
    no oracle."""

    name: str
    drawn: Callable[[int], Case]
    theirs: Callable[[Sequence[Case]], Sequence[Any]]
    ours: Callable[[Case], Answer]
    row_of: Callable[[Case, Answer, Answer], str]
    rows: Sequence[str]
    page: str
    heading: str
    read: Callable[[Any], Answer] = lambda answer: answer
    cases: int = 5000
    golden: Path | None = None
    recorded: int = 0
    more: Sequence[Case] = field(default=())

    def compare(self, seeds: Sequence[int]) -> Comparison:
        """Both answers to each of these cases. Raises NotBuiltError."""
        cases = [self.drawn(seed) for seed in seeds]
        return self._compared(seeds, cases, self.theirs(cases))

    def compare_recorded(self, limit: int | None = None) -> Comparison:
        """Ours beside the recorded answers."""
        seeds = range(self.recorded if limit is None else min(limit, self.recorded))
        return self._compared(seeds, [self.drawn(seed) for seed in seeds], self.recorded_answers()[: len(seeds)])

    def _compared(self, seeds: Sequence[int], cases: Sequence[Case], answers: Sequence[Any]) -> Comparison:
        verdicts, rows, wrong = Counter[str](), Counter[str](), dict[int, str]()
        for seed, case, answer in zip(seeds, cases, answers, strict=True):
            theirs, mine = self.read(answer), self.ours(case)
            verdicts[theirs["verdict"]] += 1
            if theirs == mine:
                continue
            row = self.row_of(case, theirs, mine)
            rows[row] += 1
            if not row:
                wrong[seed] = f"theirs {theirs}, ours {mine}"
        return Comparison(len(cases), verdicts, rows, wrong)

    # Recorded answers

    def record(self) -> None:
        """Write the golden file anew. Raises NotBuiltError."""
        assert self.golden is not None, f"{self.name}: nothing is recorded"
        answers = self.theirs(self._recorded_cases())
        text = "".join(
            json.dumps(each, separators=(",", ":")) + "\n" for each in ({"cases": self._checksum()}, *answers)
        )
        self.golden.write_text(text, encoding="utf-8")

    def recorded_answers(self) -> list[Any]:
        """In the order of the cases. Raises ValueError where they are of other cases."""
        assert self.golden is not None, f"{self.name}: nothing is recorded"
        head, *answers = map(json.loads, self.golden.read_text(encoding="utf-8").splitlines())
        if head["cases"] != self._checksum():
            again = f"make oracles SYSTEM={self.name} MEWS_WRITE=1"
            raise ValueError(f"{self.golden}: is of other cases: {again} writes it anew")
        return answers

    def _recorded_cases(self) -> list[Case]:
        return [*map(self.drawn, range(self.recorded)), *self.more]

    def _checksum(self) -> str:
        return hashlib.sha256(json.dumps(self._recorded_cases(), sort_keys=True).encode()).hexdigest()[:16]

    # The table of differences

    def published_rows(self) -> list[str]:
        """First cells of the table below ``heading``, without that of its head."""
        text = (DOCS / self.page).read_text(encoding="utf-8")
        section = text.partition(f"\n{self.heading}\n")[2]
        level = self.heading.partition(" ")[0]
        section = re.split(rf"\n#{{2,{len(level)}}} ", section)[0]
        return re.findall(r"^\| ([^|-][^|]*) \|", section.rpartition("| difference |")[2], re.MULTILINE)


@dataclass(frozen=True)
class Comparison:
    """``rows``: how many differences are of each row ("" of none); ``wrong``: seed -> what differs, of no row."""

    cases: int
    verdicts: Counter[str]
    rows: Counter[str]
    wrong: Mapping[int, str]

    @property
    def equal(self) -> int:
        """How many answers are the same."""
        return self.cases - sum(self.rows.values())

    def lines(self) -> list[str]:
        """A report: the sums, then each row, then each difference of none."""
        share = f"{100 * self.equal / self.cases:.2f} %" if self.cases else "-"
        found = [f"{self.equal} of {self.cases} equal ({share}); theirs: {dict(self.verdicts)}"]
        found += [f"{count:5} {row or 'of no row'}" for row, count in self.rows.most_common()]
        return [*found, *(f"seed {seed}: {what}" for seed, what in self.wrong.items())]
