"""Koordinator's webhooks as an oracle, built from its Go module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mews.kube.api.quantities import parse, whole
from mews.systems.koordinator.admission import mutated
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.validation import refusal_of
from tests.systems.koordinator.upstream.drawing import CORE, RATIO, SHARED, WHOLE
from tests.systems.koordinator.upstream.oracle import MODULE, VERSION
from tests.systems.koordinator.webhooks.drawing import DESIGN, VENDORS, Case, drawn, drawn_created
from tests.upstream.oracles.answers import UpstreamAnswers
from tests.upstream.oracles.model import Answer, Oracle

HERE = Path(__file__).parent


def admitted(case: Case) -> Answer:
    """Whether our validating webhook admits the pod as it is."""
    return _verdict(refusal_of(case["pod"], case.get("old")))


def read_verdict(answer: Mapping[str, Any]) -> Answer:
    """Upstream's answer in the same form."""
    return _verdict(answer["raw"].get("message", ""))


def _verdict(message: str) -> Answer:
    return {"verdict": "refused" if message else "admitted", "message": message}


def made(case: Case) -> Answer:
    """What our mutating webhook makes of the pod, and whether the validating one admits that."""
    try:
        pod = mutated(case["pod"], scheduler="koord-scheduler", device_plugin=False)
    except InvalidRequestError:
        return {"verdict": "not made"}
    resources, first = (
        [_amounts(each.get("resources") or {}) for each in pod["spec"].get(kind) or ()]
        for kind in ("containers", "initContainers")
    )
    return _made(refusal_of(pod), resources, first)


def read_made(answer: Mapping[str, Any]) -> Answer:
    """Upstream's answer in the same form."""
    if answer.get("panic"):
        return {"verdict": "panic"}
    resources, first = ([_amounts(each) for each in answer.get(key) or ()] for key in ("resources", "initContainers"))
    return _made(answer["made"].get("message", ""), resources, first)


def _made(message: str, resources: list[Any], first: list[Any]) -> Answer:
    return {"verdict": "refused" if message else "made", "message": message, "resources": resources, "first": first}


def _amounts(resources: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        side: {name: str(parse(value).normalize()) for name, value in sorted((resources.get(side) or {}).items())}
        for side in ("requests", "limits")
    }


_MEMORY = "koordinator.sh/gpu-memory"
Requests = Mapping[str, str]
_NO_LIMITS = "requests without limits"
OF_POD: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    _NO_LIMITS: ("panic", lambda pod: any("limits" not in each for each in _asked(pod))),
    "limits unlike requests": (
        "not made",
        lambda pod: any(each["limits"] != each["requests"] for each in _asked(pod) if "limits" in each),
    ),
    "a node's name": ("not made", lambda pod: "nodeName" in pod["spec"]),
}
"""Row of docs/koordinator.md -> the verdict of one side, and what a pod must be for it."""
OF_CONTAINER: Mapping[str, Callable[[Requests], bool]] = {
    "names of vendors": lambda requests: bool(set(requests) & set(VENDORS)),
    "names of the design": lambda requests: bool(set(requests) & set(DESIGN)),
    "gpu with other names": lambda requests: WHOLE in requests and bool(set(requests) & {CORE, RATIO, SHARED, _MEMORY}),
    "core of several GPUs without a ratio": lambda requests: (
        not {RATIO, SHARED, WHOLE} & set(requests) and _is_several(whole(requests.get(CORE, 0)))
    ),
}
"""Row -> whether what is made of a container that requests this may be of it."""
_FIRST = "init containers"


def _asked(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    every = (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ()))
    return [each["resources"] for each in every if each["resources"]]


def _is_several(core: int) -> bool:
    return core > 100 and core % 100 == 0


def row_of(case: Case, theirs: Answer, mine: Answer) -> str:
    """The row of a difference; "" for a container that no row is of, and for another message about the same amounts."""
    verdicts = {theirs["verdict"], mine["verdict"]}
    for row, (verdict, holds) in OF_POD.items():
        if verdict in verdicts and holds(case["pod"]):
            return row
    if verdicts - {"made", "refused"}:
        return ""
    pairs = zip(case["pod"]["spec"]["containers"], theirs["resources"], mine["resources"], strict=True)
    rows = [_row_of_container(each["resources"]) for each, one, other in pairs if one != other]
    if rows:
        return rows[0] if all(rows) else ""
    return _FIRST if theirs["first"] != mine["first"] and theirs["message"] == mine["message"] else ""


def _row_of_container(resources: Mapping[str, Any]) -> str:
    requests = resources.get("requests") or {}
    row = next((row for row, holds in OF_CONTAINER.items() if holds(requests)), "")
    return row or ("" if "limits" in resources else _NO_LIMITS)


_ANSWERS = UpstreamAnswers(MODULE, VERSION, "pkg/webhook/pod/validating", HERE / "webhook_answers_test.go")
_HEADING = "### Compared with upstream's webhooks"
VALIDATING = Oracle(
    name="koordinator-validating",
    drawn=drawn,
    theirs=_ANSWERS.to,
    read=read_verdict,
    ours=admitted,
    row_of=lambda *_: "",
    rows=(),
    page="koordinator.md",
    heading=_HEADING,
    golden=HERE / "validating.jsonl",
    recorded=150,
)
MUTATING = Oracle(
    name="koordinator-mutating",
    drawn=drawn_created,
    theirs=_ANSWERS.to,
    read=read_made,
    ours=made,
    row_of=row_of,
    rows=(*OF_POD, *OF_CONTAINER, _FIRST),
    page="koordinator.md",
    heading=_HEADING,
    golden=HERE / "mutating.jsonl",
    recorded=100,
)
