"""The upgrade of a live cluster in the design's seven steps, and with a step left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

SHIPPED = Path(__file__).parents[3] / "scenarios" / "koordinator" / "28-upgrade.yaml"
HOLD = {"name": "main", "image": "mews/gpu-hold"}
LATE = {
    "kind": "Pod",
    "metadata": {"name": "late"},
    "spec": {"containers": [{**HOLD, "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}
SEEN = {"kind": "Device", "apiVersion": "scheduling.koordinator.sh/v1alpha1", "metadata": {"name": "four"}}
NEW_GIVEN: dict[str, Any] = {"wait": [{"pod": {"name": "new", "phase": "Running"}}], "timeout": "1m"}


def shipped() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    return found


def named(document: dict[str, Any], start: str) -> int:
    return next(n for n, step in enumerate(document["steps"]) if str(step.get("name", "")).startswith(start))


def violated(document: dict[str, Any], folder: Path) -> set[int]:
    path = folder / "upgrade.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return {each["invariant"] for each in Engine(RunOptions()).run(load_scenario(path)).result.violations}


def new_alone(document: dict[str, Any]) -> int:
    """Only ``new`` is made in steps 5 and 6, and what follows is cut off; the place after it."""
    at = named(document, "steps 5 and 6")
    document["steps"][at]["apply"] = document["steps"][at]["apply"][:1]
    del document["steps"][at + 1 :]
    return at + 1


def test_without_step_3_the_old_scheduler_gives_what_the_new_one_has_given(tmp_path: Path) -> None:
    document = shipped()
    del document["steps"][named(document, "step 3")]
    new_alone(document)
    document["steps"] += [NEW_GIVEN, {"apply": LATE}, {"sleep": "10s"}]
    assert 3 in violated(document, tmp_path)


def test_without_step_4_the_new_scheduler_gives_what_the_old_one_has_given(tmp_path: Path) -> None:
    """koordlet is there and has not reported yet: what the Device says is of before."""
    document = shipped()
    del document["steps"][named(document, "step 4")]
    step_1 = named(document, "step 1")
    assert document["steps"].pop(step_1)["start"] == "koordlet/four"
    document["steps"].insert(0, {"wait": [{"object": SEEN}], "timeout": "1m"})
    new_alone(document)
    document["steps"].append({"sleep": "10s"})
    assert 3 in violated(document, tmp_path)
