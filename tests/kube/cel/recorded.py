"""What Kubernetes' own CEL (``tests/upstream/cel``) made of expressions, written down: drawn ones, and those that are
listed in ``cases.txt``. ``python -m tests.kube.cel.recorded`` writes the file anew; it needs Go."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kube.cel.drawn import drawn

HERE = Path(__file__).parent
RECORDED = HERE / "recorded" / "1.34.jsonl.gz"
SEED, COUNT = 40, 2000


def expressions() -> list[str]:
    """Return those that are recorded, each once."""
    listed = (HERE / "cases.txt").read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys([*listed, *drawn(SEED, COUNT)]))


def recorded() -> Mapping[str, dict[str, Any]]:
    """Return the recorded answers, by expression."""
    lines = gzip.decompress(RECORDED.read_bytes()).decode().splitlines()
    return dict(json.loads(line) for line in lines)


def record(answers: Mapping[str, Any]) -> bytes:
    """Return the file's content; it is the same for the same answers."""
    lines = (json.dumps(pair, ensure_ascii=False, sort_keys=True) for pair in answers.items())
    return gzip.compress("\n".join(lines).encode("utf-8", "surrogatepass"), mtime=0)


if __name__ == "__main__":
    from tests.upstream.cel.judge import answers_of

    RECORDED.write_bytes(record(answers_of(expressions())))
