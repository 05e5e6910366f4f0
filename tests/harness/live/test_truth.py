"""A session says what is, not what was: faults that have ended, what touches a pod, and whether all is well."""

import asyncio

import pytest

from mews.harness.live.judging import waiting
from mews.harness.live.step_answer import StepAnswer
from tests.harness.live.sessions import a_deployment, a_pod, explained, in_session

ONCE = {"kind": "lying-result", "operation": "attach", "says": False, "count": 1}


async def done(session, *steps, then_s=0.0):
    for step in steps:
        assert await session.perform(step) == StepAnswer()
    await asyncio.sleep(then_s)


def test_a_fault_that_struck_as_often_as_it_may_has_ended_everywhere():
    async def play(session):
        await done(session, {"fault": {"chassis": "A", "add": ONCE}})
        (before,) = await session.faults()
        assert (before.ended, before.fired, before.left) == (False, 0, 1)
        assert [each["kind"] for each in (await session.status())["active_faults"]] == ["lying-result"]
        await done(session, {"apply": a_pod("eight", 8)}, {"wait": {"pod": {"name": "eight", "phase": "Running"}}})
        await done(session, {"apply": a_pod("waits", 12)}, then_s=5)
        (after,) = await session.faults()
        shown = after.as_dict()
        assert (shown["ended"], shown["count"], shown["left"], shown["fired"]) == (True, 1, 0, 1)
        assert shown["since"] == shown["t"] == round(before.t, 3)
        # The journal alone says as much: the page has nothing else.
        assert [fault.ended for fault in session.standing.faults.values()] == [True]
        text = " ".join((await session.explain("default", "waits")).sentences)
        return (await session.status())["active_faults"], text

    active, text = in_session(play)
    assert active == []
    assert "has the fault" not in text


def test_a_fault_whose_time_is_over_has_ended():
    async def play(session):
        await done(session, {"fault": {"chassis": "A", "add": {**ONCE, "count": 5, "expires_s": 10}}}, then_s=11)
        return [fault.as_dict() for fault in await session.faults()], (await session.status())["active_faults"]

    (shown,), active = in_session(play)
    assert (shown["ended"], shown["left"], active) == (True, 5, [])


def test_a_fault_of_another_device_or_host_is_not_cited():
    async def play(session):
        xid = {"kind": "xid", "device": "0-000900", "xid": 79, "after_s": 500}
        await done(session, {"fault": {"host": "host-1", "add": xid}})
        await done(session, {"fault": {"chassis": "A", "add": ONCE}})
        await done(session, {"apply": a_pod("none", 0, scheduler="default-scheduler", nodeSelector={"no": "such"})})
        await done(session, {"apply": a_pod("greedy", 13)}, then_s=5)
        plain = " ".join((await session.explain("default", "none")).sentences)
        return plain, " ".join((await session.explain("default", "greedy")).sentences)

    plain, greedy = in_session(play)
    assert "has the fault" not in plain
    assert "xid" not in greedy
    assert "chassis/A has the fault lying-result since" in greedy


def test_an_extender_that_is_not_asked_about_the_pod_is_not_cited():
    stack = "hardware: seed-001\nstack: {gpushare: {nodes: [n1]}}\n"
    explanation = explained([{"kill": "gpushare-extender"}, {"apply": a_pod("plain", 30)}], "plain", text=stack)
    assert explanation.cause != "extender-down"
    assert "gpushare" not in " ".join(explanation.sentences)


def test_a_namespace_that_is_not_there_is_named():
    async def play(session):
        return await session.explain("deployment", "web")

    explanation = in_session(play)
    assert explanation.cause == "missing"
    assert explanation.sentences[0].startswith("There is no namespace deployment;")


def judged(steps, *, after_s, text="hardware: demo\n"):
    async def play(session):
        await done(session, *steps, then_s=after_s)
        return await session.judged()

    return in_session(play, text)


@pytest.mark.parametrize(
    "steps", [[], [{"apply": a_pod("two", 2)}], [{"apply": a_pod("greedy", 13)}], [{"apply": a_deployment("web")}]]
)
def test_a_session_in_which_nothing_waits_wrongly_has_passed(steps):
    verdict = judged(steps, after_s=200)
    assert (verdict.verdict, verdict.waiting, verdict.violations) == ("passed", (), ())
    assert verdict.wall_s > 200
    assert verdict.as_dict()["seconds"]["wall"] == round(verdict.wall_s, 3)


def test_a_pod_that_would_fit_and_waits_beyond_the_bound_fails_it():
    # Devices are moved for it first, which takes longer than this session's bound.
    verdict = judged([{"apply": a_pod("late", 8)}], after_s=100, text="hardware: demo\nbounds: {scheduled_s: 2}\n")
    assert verdict.verdict == "failed"
    assert verdict.reason.startswith("invariant 8 (what fits is eventually scheduled): pod default/late fits host-")


def test_a_component_that_is_down_fails_it():
    verdict = judged([{"kill": "scheduler"}, {"apply": a_pod("late", 1)}], after_s=10)
    assert verdict.verdict == "failed"
    assert verdict.reason.startswith("component scheduler is down: killed at")


def test_a_pod_that_is_terminating_for_ever_fails_it():
    pod = a_pod("kept", 0, scheduler="default-scheduler")
    pod["metadata"]["finalizers"] = ["example.com/never"]
    steps = [
        {"apply": pod},
        {"wait": {"pod": {"name": "kept", "phase": "Running"}}},
        {"delete": {"kind": "Pod", "name": "kept", "wait": False}},
    ]
    assert judged(steps, after_s=30).verdict == "passed"
    verdict = judged(steps, after_s=90)
    assert verdict.verdict == "failed"
    assert "Pod default/kept is Terminating since" in verdict.reason


def test_a_pod_that_never_gets_ready_and_a_deployment_without_its_replicas_fail_it():
    pod = a_pod("broken", 0, scheduler="default-scheduler")
    pod["spec"]["containers"][0]["image"] = "no/such:image"
    verdict = judged([{"apply": pod}], after_s=90)
    assert verdict.reason.startswith("Pod default/broken is on node host-")
    assert "Pending, not Ready since" in verdict.reason


NOW = 1_000_000.0
OLD, NEW = "1970-01-12T13:00:00Z", "1970-01-12T13:46:30Z"


def made(kind, status, spec=None, since=OLD):
    return {
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default", "creationTimestamp": since},
        "spec": spec or {},
        "status": status,
    }


def condition(name, status, since=OLD):
    return {"conditions": [{"type": name, "status": status, "lastTransitionTime": since, "reason": "Because"}]}


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        (
            made("Deployment", condition("Available", "False")),
            "Deployment default/x has condition Available=False: Because",
        ),
        (made("Deployment", condition("Available", "False", NEW)), None),
        (made("Deployment", condition("Available", "True")), None),
        (made("Job", condition("Failed", "True")), "Job default/x has condition Failed=True: Because"),
        (made("Job", condition("Complete", "True")), None),
        (made("StatefulSet", {"readyReplicas": 1}, {"replicas": 2}), "StatefulSet default/x has 1 of 2 replicas ready"),
        (made("StatefulSet", {}, {"replicas": 0}), None),
        (made("StatefulSet", {}, {"replicas": 2}, NEW), None),
        (made("PersistentVolumeClaim", {"phase": "Pending"}), "PersistentVolumeClaim default/x is Pending"),
        (made("PersistentVolumeClaim", {"phase": "Bound"}), None),
        (made("ConfigMap", {}), None),
    ],
)
def test_what_users_made_is_held_to_its_own_conditions(obj, complaint):
    assert list(waiting([], [obj], NOW)) == ([] if complaint is None else [complaint])


def test_a_node_that_is_not_ready_for_long_is_named():
    nodes = [
        {"metadata": {"name": name}, "status": condition("Ready", status, since)}
        for name, status, since in (("up", "True", OLD), ("down", "False", OLD), ("just-down", "Unknown", NEW))
    ]
    assert list(waiting(nodes, [], NOW)) == ["node down is not Ready: Because"]
