"""What is put to both servers, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

JSON = "application/json"
YAML = "application/yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request; ``raw`` goes out as it is, ``body`` as JSON. A watch ends by its timeoutSeconds.

    ``owned`` compares managedFields too; ``after_s`` waits before (the real server establishes a definition in a
    moment); ``until`` asks again until that status is the answer, half a minute at most. ``headers`` replace the usual
    ones; an empty one is left out. ``edits`` (where an object is, what to make of it) reads an object first and sends
    what was made of it.
    """

    name: str
    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    owned: bool = False
    after_s: float = 0.0
    edits: tuple[str, Callable[[Any], Any]] | None = None
    until: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One kubectl command, as in a shell; its standard input is ``stdin``. Rows in no order are ``sorted``."""

    name: str
    line: str
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    sorted: bool = False
    after_s: float = 0.0


Case: TypeAlias = "Sent | Run"
Answer = dict[str, Any]
"""Of a request: status, type, warnings, other headers, body. Of a command: exit code, stdout, stderr. All normal."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A case of an area with both servers' answers."""

    area: str
    case: Case
    real: Answer
    ours: Answer

    @property
    def id(self) -> str:
        """``verbs: create configmap``."""
        return f"{self.area}: {self.case.name}"

    @property
    def same(self) -> bool:
        """Whether both answered alike."""
        return self.real == self.ours
