"""The upgrade of a live cluster in the design's seven steps, with each of steps 1 to 6 left out or swapped."""

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


def played(document: dict[str, Any], folder: Path) -> Any:
    """The run; a step that is not reached fails it."""
    path = folder / "upgrade.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return Engine(RunOptions()).run(load_scenario(path)).result


def violated(document: dict[str, Any], folder: Path) -> set[int]:
    return {each["invariant"] for each in played(document, folder).violations}


def pod(name: str, scheduler: str = "default-scheduler", **limits: str) -> dict[str, Any]:
    """A pod with GPUs, by the domain of their name."""
    names = {"nvidia": "nvidia.com/gpu", "koordinator": "koordinator.sh/gpu"}
    resources = {"limits": {names[key]: value for key, value in limits.items()}}
    spec = {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": 1,
        "containers": [{**HOLD, "resources": resources}],
    }
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


def ours(name: str, gpus: int) -> dict[str, Any]:
    return pod(name, "koord-scheduler", koordinator=str(100 * gpus))


def until(**state: Any) -> dict[str, Any]:
    return {"wait": [{"pod": state}], "timeout": "1m"}


class Upgrade:
    """The seven steps as one may take them or not; what is done beside them comes between."""

    def __init__(self, **options: Any) -> None:
        self.document = shipped()
        self.document["stack"]["koordinator"] |= options
        self.document["bounds"] = {}
        at = named(self.document, "step 1")
        self.install = self.document["steps"][at : at + 2]
        self.stop = self.document["steps"][at + 2]
        self.reported = self.document["steps"][named(self.document, "step 4")]
        self.back = {"start": "default-scheduler"}
        self.document["steps"] = self.document["steps"][:at]

    def take(self, *steps: Any) -> Upgrade:
        for each in steps:
            self.document["steps"] += each if isinstance(each, list) else [each]
        return self


NEW = {"apply": ours("new", 2)}
HELD_S = {"sleep": "15s"}


def test_without_step_1_new_pods_wait_until_it_is_made_up_for(tmp_path: Path) -> None:
    steps = Upgrade()
    waits = {"hold": {"for": "30s", "check": [{"pod": {"name": "new", "phase": "Pending"}}]}}
    steps.take(steps.stop, NEW, waits, steps.install, steps.reported, NEW_GIVEN, steps.back, HELD_S)
    assert played(steps.document, tmp_path).verdict == "passed"


def test_without_step_2_a_pod_of_before_gets_at_the_end_what_the_new_scheduler_has_given(tmp_path: Path) -> None:
    """A pod made meanwhile waits for the old scheduler, and its kubelet knows nothing of annotations."""
    steps = Upgrade()
    steps.take(steps.install, steps.stop, {"apply": LATE}, steps.reported, NEW, NEW_GIVEN, steps.back, HELD_S)
    assert 3 in violated(steps.document, tmp_path)


def test_without_step_2_the_webhook_leaves_such_a_pod_unbound_or_to_the_new_scheduler(tmp_path: Path) -> None:
    steps = Upgrade(webhook=True)
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    api = "admissionregistration.k8s.io/v1"
    hooked = [{"object": {"kind": kind, "apiVersion": api, "metadata": {"name": "koordinator"}}} for kind in kinds]
    away = [{"delete": {"kind": kind, "apiVersion": api, "name": "koordinator"}} for kind in kinds]
    registered = {"wait": hooked, "timeout": "1m"}
    steps.document["steps"][:0] = [registered, {"kill": "koord-webhook"}, *away]
    webhook = [{"start": "koord-webhook"}, registered]
    message = {"$regex": "only .* may bind it"}
    refused = {"wait": [{"event": {"reason": "FailedScheduling", "message": message}}], "timeout": "1m"}
    plain = {"kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [HOLD]}}
    switched = {"kind": "Pod", "metadata": {"name": "later"}, "spec": {"schedulerName": "koord-scheduler"}}
    steps.take(steps.install, steps.stop, {"apply": LATE}, webhook, steps.reported, NEW, NEW_GIVEN, steps.back)
    steps.take(refused, until(name="late", phase="Pending"), {"apply": plain}, until(name="plain", phase="Running"))
    steps.take({"apply": pod("later", nvidia="1")}, {"wait": [{"object": switched}], "timeout": "1m"}, HELD_S)
    result = played(steps.document, tmp_path)
    assert not {each["invariant"] for each in result.violations} & {2, 3, 12}, result.violations
    assert result.verdict == "passed", result.reason


def test_steps_1_and_2_swapped_change_nothing(tmp_path: Path) -> None:
    """Nobody makes pods either way: what is installed in between finds the same cluster."""
    steps = Upgrade()
    steps.take({"sleep": "5s"}, steps.install, steps.stop, steps.reported, NEW, NEW_GIVEN, steps.back, HELD_S)
    assert played(steps.document, tmp_path).verdict == "passed"


def test_steps_2_and_3_swapped_are_step_2_left_out_for_pods_in_between(tmp_path: Path) -> None:
    steps = Upgrade()
    steps.take(steps.install, steps.stop, {"apply": LATE}, {"delete": {"kind": "Pod", "name": "late"}})
    steps.take(steps.reported, NEW, NEW_GIVEN, steps.back, HELD_S)
    assert played(steps.document, tmp_path).verdict == "passed"  # step 3 asks that nobody waits: they are taken back


def test_steps_3_and_4_swapped_give_twice_what_is_given_between_two_reports(tmp_path: Path) -> None:
    steps = Upgrade(reportS=60)
    late = [{"apply": LATE}, until(name="late", phase="Running")]
    steps.take(steps.install, steps.reported, late, steps.stop, NEW, NEW_GIVEN, HELD_S)
    assert 3 in violated(steps.document, tmp_path)


def test_steps_4_and_5_swapped_make_the_first_new_pods_wait_for_the_report(tmp_path: Path) -> None:
    steps = Upgrade()
    steps.take(steps.stop, NEW, steps.install, steps.reported, NEW_GIVEN, steps.back, HELD_S)
    assert played(steps.document, tmp_path).verdict == "passed"


def test_without_step_5_pods_wait_for_the_old_scheduler_and_what_it_gives_is_adopted(tmp_path: Path) -> None:
    steps = Upgrade()
    waits = {"hold": {"for": "20s", "check": [{"pod": {"name": "late", "phase": "Pending"}}]}}
    steps.take(steps.install, steps.stop, steps.reported, {"apply": LATE}, waits, steps.back)
    steps.take(until(name="late", phase="Running"), {"sleep": "15s"})
    steps.take({"apply": [ours("one", 1), ours("two", 1)]}, until(name="one", phase="Running"), HELD_S)
    steps.take(until(name="two", phase="Pending"))
    result = played(steps.document, tmp_path)
    assert not {each["invariant"] for each in result.violations} & {2, 3, 12}
    assert result.verdict == "passed", result.reason


def test_without_step_6_nothing_is_tried_and_nothing_is_lost(tmp_path: Path) -> None:
    steps = Upgrade()
    steps.take(steps.install, steps.stop, steps.reported, steps.back, {"sleep": "5s"}, NEW, NEW_GIVEN, HELD_S)
    assert played(steps.document, tmp_path).verdict == "passed"


def test_steps_5_and_6_swapped_give_one_trial_pod_its_gpus_first(tmp_path: Path) -> None:
    steps = Upgrade()
    trial = [{"apply": ours("trial", 1)}, until(name="trial", phase="Running")]
    steps.take(
        steps.install, steps.stop, steps.reported, trial, {"apply": ours("new", 1)}, NEW_GIVEN, steps.back, HELD_S
    )
    assert played(steps.document, tmp_path).verdict == "passed"


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
