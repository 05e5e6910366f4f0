"""What is measured before anybody reads is there when somebody does, and nothing is made for those who never read."""

from __future__ import annotations

from mews.harness.clusters.embedded.late_measures import LateMeasures


class Counted:
    made = 0

    def __init__(self) -> None:
        Counted.made += 1
        self.seen: list[tuple[str, int]] = []

    def count(self, what: str, *, by: int = 1) -> None:
        self.seen.append((what, by))

    def exposition(self) -> bytes:
        return repr(self.seen).encode()


def test_what_was_measured_before_the_first_reading_is_read() -> None:
    before, late = Counted.made, LateMeasures(Counted)
    count = late.count
    count("a")
    late.count("b", by=2)
    assert Counted.made == before
    assert late.exposition() == b"[('a', 1), ('b', 2)]"
    count("c")  # by one that was taken before
    assert late.exposition() == b"[('a', 1), ('b', 2), ('c', 1)]"
    assert Counted.made == before + 1


def test_of_much_that_is_measured_no_list_is_kept() -> None:
    before, late = Counted.made, LateMeasures(Counted)
    for _ in range(1_000):
        late.count("a")
    assert Counted.made == before + 1
    assert late.exposition().count(b"('a', 1)") == 1_000
