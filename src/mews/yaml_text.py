"""YAML texts from outside: what would exhaust the stack or the memory is refused before it is built.

And YAML that we write, so that every reader reads the same: IDs such as ``000800`` and ``000E00`` are texts to PyYAML
and numbers to readers of YAML 1.2, so what begins like a number is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

DEEPEST = 100
"""Levels of nesting."""
MOST = 1_000_000
"""Values, aliases counted as what they stand for."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_extent(text: str | bytes, most: int = MOST) -> None:
    """Walk the text's events, which takes neither stack nor memory.

    Raises yaml.YAMLError, also for what is no YAML.
    """
    open_: list[tuple[str | None, int]] = []
    extents: dict[str, int] = {}
    total = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            if len(open_) >= DEEPEST:
                raise yaml.YAMLError(f"nested too deeply: at most {DEEPEST} levels")
            open_.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor is not None:
                extents[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_):
                raise yaml.YAMLError(f"nested too deeply: the anchor {event.anchor!r} contains itself")
            total += extents.get(event.anchor or "", 1)
        else:
            total += 1
        if total > most:
            raise yaml.YAMLError(f"too large: more than {most} values, aliases expanded")


_LIKE_A_NUMBER = re.compile(r"[-+]?\.?[0-9]")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ".inf", "-.inf", "+.inf", ".nan"})
"""Texts that readers of YAML 1.1 or 1.2 take for a boolean, for nothing, or for a number; in any case."""


class QuotingDumper(yaml.SafeDumper):
    """PyYAML's safe dumper with quotes around every text that another reader may take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        """Shared parts are written out."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return it in single quotes where it is needed."""
        quoted = "\n" not in text and (_LIKE_A_NUMBER.match(text) or text.lower() in _WORDS)
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="'" if quoted else None)


QuotingDumper.add_representer(str, QuotingDumper.represent_text)


def written_yaml(value: Any, *, width: int = 120, flow: bool | None = False) -> str:
    """Return the value as a document; keys keep their order. ``flow``: None puts the innermost collections on one
    line."""
    text: str = yaml.dump(
        value, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=width, default_flow_style=flow
    )
    return text


def written_yaml_documents(values: Iterable[Any], *, width: int = 120) -> str:
    """Several documents."""
    text: str = yaml.dump_all(
        values, Dumper=QuotingDumper, sort_keys=False, allow_unicode=True, width=width, default_flow_style=False
    )
    return text
