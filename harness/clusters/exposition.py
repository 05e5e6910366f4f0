"""Prometheus' text form of several replicas as one."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SAMPLE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?(?P<rest> .*)")


def merged(texts: Sequence[str]) -> str:
    """Return the text of one as it is; those of several with the label ``replica``, each metric's samples together."""
    if len(texts) == 1:
        return texts[0]
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for number, text in enumerate(texts):
        metric = ""
        for line in text.splitlines():
            if line.startswith("# "):
                metric = line.split()[2]
                known = heads.setdefault(metric, [])
                known += [] if line in known else [line]
            elif line:
                samples.setdefault(metric, []).append(_labelled(line, number))
    return "".join(f"{line}\n" for metric, head in heads.items() for line in (*head, *samples.get(metric, ())))


def _labelled(line: str, number: int) -> str:
    found = _SAMPLE.fullmatch(line)
    if found is None:
        return line
    labels = ",".join(filter(None, (found["labels"], f'replica="{number}"')))
    return f"{found['name']}{{{labels}}}{found['rest']}"
