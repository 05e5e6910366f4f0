"""Stabilization, rates and bounds, in the situations of upstream's horizontal_test.go, told anew."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.emulated.controllers.podautoscaler.behavior import (
    History,
    Moment,
    ReplicaBounds,
    begun,
    rescaled,
    settle,
)
from mews.kube.emulated.controllers.podautoscaler.conditions import ABLE, ACTIVE, with_condition
from mews.kube.emulated.controllers.podautoscaler.draft import StatusDraft, bounds_of, tolerances_of
from mews.kube.emulated.controllers.podautoscaler.replicas import Tolerances
from mews.kube.emulated.controllers.podautoscaler.selecting import Selectors

NOW = 10_000.0
PLAIN = ReplicaBounds(1, 10)


def policy(kind: str, value: int, period_s: int) -> dict[str, Any]:
    return {"type": kind, "value": value, "periodSeconds": period_s}


def rules(*policies: dict[str, Any], select: str = "Max", window_s: int | None = 0) -> dict[str, Any]:
    made: dict[str, Any] = {"selectPolicy": select, "policies": list(policies)}
    return made if window_s is None else {**made, "stabilizationWindowSeconds": window_s}


UP = rules(policy("Pods", 4, 15), policy("Percent", 100, 15))
DOWN = rules(policy("Percent", 100, 15), window_s=None)
"""The API server's defaults."""


def bounds(least: int = 1, most: int = 1000, *, up: Any = UP, down: Any = DOWN) -> ReplicaBounds:
    return ReplicaBounds(least, most, {"scaleUp": up, "scaleDown": down})


@pytest.mark.parametrize(
    ("current", "wanted", "within", "replicas", "reason"),
    [
        (3, 5, PLAIN, 5, "DesiredWithinRange"),
        (3, 7, PLAIN, 6, "ScaleUpLimit"),
        (1, 9, PLAIN, 4, "ScaleUpLimit"),
        (6, 20, PLAIN, 10, "TooManyReplicas"),
        (6, 0, ReplicaBounds(2, 10), 2, "TooFewReplicas"),
        (6, 0, ReplicaBounds(0, 10), 0, "DesiredWithinRange"),
    ],
)
def test_bounds_without_a_behavior(
    current: int, wanted: int, within: ReplicaBounds, replicas: int, reason: str
) -> None:
    settled = settle(History(), within, current=current, wanted=wanted, now=NOW)
    assert (settled.replicas, settled.limit[0]) == (replicas, reason)
    assert settled.limited == (reason != "DesiredWithinRange")
    assert settled.passing == (reason == "ScaleUpLimit")


def test_the_highest_recommendation_of_five_minutes_holds() -> None:
    history, found = begun(History(), 8, NOW), []
    for step in range(22):
        settled = settle(history, PLAIN, current=8, wanted=2, now=NOW + 15 * (step + 1))
        history = settled.history
        found.append((settled.replicas, settled.able[0], settled.passing))
    assert found[:20] == [(8, "ScaleDownStabilized", True)] * 20
    assert found[20:] == [(2, "ReadyForNewScale", False)] * 2
    assert len(history.recommendations) == 21  # the oldest makes room
    assert begun(history, 1, NOW) == history


@pytest.mark.parametrize(
    ("limits", "current", "expected"),
    [
        (rules(policy("Pods", 3, 60)), 5, 8),
        (rules(policy("Percent", 10, 60)), 5, 6),
        (rules(policy("Pods", 3, 60), policy("Percent", 200, 60)), 5, 15),
        (rules(policy("Pods", 3, 60), policy("Percent", 200, 60), select="Min"), 5, 8),
        (rules(policy("Pods", 3, 60), select="Disabled"), 5, 5),
    ],
)
def test_the_fastest_way_up(limits: Any, current: int, expected: int) -> None:
    settled = settle(History(), bounds(up=limits), current=current, wanted=500, now=NOW)
    assert settled.replicas == expected
    assert settled.limit[0] == "ScaleUpLimit"
    assert settled.passing == (limits["selectPolicy"] != "Disabled")


@pytest.mark.parametrize(
    ("limits", "current", "expected"),
    [
        (rules(policy("Pods", 3, 60)), 50, 47),
        (rules(policy("Percent", 10, 60)), 55, 49),
        (rules(policy("Pods", 3, 60), policy("Percent", 20, 60)), 50, 40),
        (rules(policy("Pods", 3, 60), policy("Percent", 20, 60), select="Min"), 50, 47),
        (rules(policy("Pods", 3, 60), select="Disabled"), 50, 50),
    ],
)
def test_the_fastest_way_down(limits: Any, current: int, expected: int) -> None:
    settled = settle(History(), bounds(down=limits), current=current, wanted=1, now=NOW)
    assert settled.replicas == expected
    assert settled.limit[0] == "ScaleDownLimit"


def test_a_rate_counts_what_its_period_has_seen() -> None:
    slow = bounds(up=rules(policy("Pods", 4, 60)), down=rules(policy("Pods", 4, 60)))
    history = rescaled(History(), slow, before=10, after=13, now=NOW - 30)
    assert settle(history, slow, current=13, wanted=50, now=NOW).replicas == 14
    assert settle(history, slow, current=13, wanted=50, now=NOW + 30).replicas == 17
    back = rescaled(history, slow, before=13, after=12, now=NOW - 10)
    assert settle(back, slow, current=12, wanted=50, now=NOW).replicas == 14
    assert settle(back, slow, current=12, wanted=1, now=NOW).replicas == 6
    over = rescaled(history, slow, before=13, after=20, now=NOW - 1)  # by hand, faster than the rate
    assert settle(over, slow, current=20, wanted=50, now=NOW).replicas == 20
    assert settle(History(), slow, current=5, wanted=50, now=NOW).limit[0] == "ScaleUpLimit"


def test_bounds_hold_beside_rates() -> None:
    assert settle(History(), bounds(most=6), current=5, wanted=50, now=NOW).limit[0] == "TooManyReplicas"
    fewer = settle(History(), bounds(least=4), current=5, wanted=1, now=NOW)
    assert (fewer.replicas, fewer.limit[0]) == (4, "TooFewReplicas")
    same = settle(History(), bounds(), current=5, wanted=5, now=NOW)
    assert (same.replicas, same.limited, same.limit[0]) == (5, False, "DesiredWithinRange")


def test_windows_of_both_directions() -> None:
    past = History((Moment(3, NOW - 90), Moment(9, NOW - 30)))
    windows = bounds(up={**UP, "stabilizationWindowSeconds": 100}, down={**DOWN, "stabilizationWindowSeconds": 60})
    up = settle(past, windows, current=5, wanted=8, now=NOW)
    assert (up.replicas, up.able[0], up.passing) == (5, "ScaleUpStabilized", True)
    down = settle(past, windows, current=9, wanted=2, now=NOW)
    assert (down.replicas, down.able[0]) == (9, "ScaleDownStabilized")
    later = settle(past, windows, current=9, wanted=2, now=NOW + 45)
    assert (later.replicas, later.able[0]) == (2, "ReadyForNewScale")
    usual = settle(History((Moment(9, NOW - 299),)), bounds(), current=9, wanted=2, now=NOW)
    assert usual.replicas == 9
    assert settle(History((Moment(9, NOW - 301),)), bounds(), current=9, wanted=2, now=NOW).replicas == 2


def test_a_recommendation_that_no_window_reaches_makes_room() -> None:
    past = History((Moment(9, NOW - 400), Moment(8, NOW - 350), Moment(7, NOW - 10)))
    kept = settle(past, bounds(), current=7, wanted=7, now=NOW).history.recommendations
    assert kept == (Moment(9, NOW - 400), Moment(7, NOW), Moment(7, NOW - 10))


def test_changes_of_the_scale_that_no_policy_looks_at_make_room() -> None:
    within = bounds(up=rules(policy("Pods", 1, 60), policy("Pods", 4, 100)))
    past = History(ups=(Moment(1, NOW - 200), Moment(2, NOW - 90)))
    ups = rescaled(past, within, before=3, after=7, now=NOW).ups
    assert ups == (Moment(4, NOW), Moment(2, NOW - 90))
    assert rescaled(past, PLAIN, before=3, after=7, now=NOW) == past
    assert rescaled(past, within, before=7, after=3, now=NOW).downs == (Moment(4, NOW),)


def test_a_condition_keeps_its_place_and_its_time_while_its_status_stays() -> None:
    made = with_condition([], ABLE, True, "A", "a", now=0)
    made = with_condition(made, ACTIVE, False, "B", "b", now=0)
    made = with_condition(made, ABLE, True, "C", "c", now=60)
    assert [(each["type"], each["reason"], each["lastTransitionTime"]) for each in made] == [
        (ABLE, "C", "1970-01-01T00:00:00Z"),
        (ACTIVE, "B", "1970-01-01T00:00:00Z"),
    ]
    changed = with_condition(made, ABLE, False, "D", "d", now=60)
    assert changed[0] == {
        "type": ABLE,
        "status": "False",
        "reason": "D",
        "message": "d",
        "lastTransitionTime": "1970-01-01T00:01:00Z",
    }


def test_a_status_is_written_only_where_it_changed() -> None:
    status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": None, "lastScaleTime": "x"}
    draft = StatusDraft({"status": status}, NOW)
    draft.fill(2, None, [], rescaled=False)
    assert draft.changed() is None
    draft.fill(2, 3, [], rescaled=True)
    assert draft.changed() == {"currentReplicas": 2, "desiredReplicas": 3, "lastScaleTime": "1970-01-01T02:46:40Z"}
    fresh = StatusDraft({}, NOW)
    fresh.fill(0, 0, [], rescaled=False)
    assert fresh.changed() is None


def test_what_a_spec_leaves_out() -> None:
    assert bounds_of({"spec": {"maxReplicas": 3}}) == ReplicaBounds(1, 3)
    assert bounds_of({"spec": {"minReplicas": 0, "maxReplicas": 3}}) == ReplicaBounds(0, 3)
    assert tolerances_of({"spec": {}}) == Tolerances()
    behavior = {"scaleUp": {"tolerance": "50m"}, "scaleDown": {}}
    assert tolerances_of({"spec": {"behavior": behavior}}) == Tolerances(down=0.1, up=0.05)


def test_autoscalers_that_select_the_same_pods_are_known_by_their_keys() -> None:
    selectors, pod = Selectors(), {"metadata": {"name": "p", "labels": {"app": "x"}}}
    for key in ("a/two", "a/one", "b/three"):
        selectors.register(key)
        selectors.put(key, lambda labels: labels.get("app") == "x")
    selectors.register("a/unknown")
    selectors.put("a/never", lambda labels: True)
    assert selectors.selecting("a", [pod]) == ["a/one", "a/two"]
    assert selectors.selecting("a", []) == []
    selectors.register("a/one")
    selectors.forget("a/two")
    assert selectors.selecting("a", [pod]) == ["a/one"]
