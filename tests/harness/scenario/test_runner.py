import textwrap
from pathlib import Path

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.real.chassis import PodHardware
from mews.harness.clusters.real.hosts import PodHosts
from mews.harness.journal import Journal
from mews.harness.scenario.diagnosis import made_by
from mews.harness.scenario.loader import parse_scenario
from mews.harness.scenario.runner import run_scenario
from mews.harness.scenario.step_context import Finding
from mews.kube.api.resources import PODS
from mews.kube.clock import Pace
from mews.kube.deviceplugin.port import ContainerDevices, PodDevices
from tests.harness.scenario.fakes import FakeCluster

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: t}\nhardware: demo\n"
UUID_1 = "GPU-b104b284-a5ee-a4fa-2aef-29568979829c"
UUID_2 = "GPU-223e3fbb-bc1a-9b56-7c89-28c10685d03b"
POD = "{kind: Pod, metadata: {name: a}, spec: {containers: [{name: main, image: x}]}}"


def run(body, *, obey=None, prepare=None, artefacts=None, observer=None, after=None):
    scenario = parse_scenario(HEAD + textwrap.dedent(body), Path("t.yaml"))

    async def main():
        cluster = FakeCluster()
        await cluster.open(None if obey is None else lambda pod: obey(cluster, pod))
        if prepare:
            prepare(cluster)
        try:
            result = await run_scenario(scenario, cluster, artefacts=artefacts, observer=observer)
        finally:
            await cluster.close()
        if after:
            after(cluster)
        return result

    return run_virtual(main)


def steps(*lines):
    return "steps:\n" + "".join(f"  - {line}\n" for line in lines)


def test_a_scenario_whose_steps_hold_passes():
    result = run(
        steps(
            f"apply: {POD}",
            "wait: {pod: {name: a, phase: Running, node: host-1}}",
            "assert: {hosts: {host-1: 4, free: 0}}",
        )
    )
    assert (result.verdict, result.reason) == ("passed", "")
    assert result.as_dict()["seconds"]["virtual"] == 0
    assert result.metrics["moved_gpus"] == 0


def test_a_wait_that_nothing_can_end_is_a_deadlock_at_once():
    result = run(steps(f"apply: {POD}", "{wait: {pod: {name: a, phase: Failed}}, timeout: 2h}"))
    assert result.verdict == "failed"
    assert result.reason.startswith(
        "step 2 wait: deadlock: nothing can happen any more while waiting for pod/default/a"
    )
    assert 'phase: expected "Failed", is "Running"' in result.reason
    assert result.virtual_s < 300


def test_a_wait_ends_at_its_timeout_while_things_still_happen():
    async def busy(cluster, pod):
        import asyncio

        for _ in range(100):
            await asyncio.sleep(7)
            cluster.journal.write("api", "node/host-1", "condition", type="Ready", status="True", reason="")

    result = run(steps(f"apply: {POD}", "{wait: {pod: {name: a, phase: Running}}, timeout: 50s}"), obey=busy)
    assert result.reason.startswith('step 2 wait: not within 50 s: pod/default/a with phase "Running"')
    assert "phase Pending, node none" in result.reason
    assert "no scheduler has the schedulerName default-scheduler" in result.report


def test_an_assert_looks_once():
    async def late(cluster, pod):
        import asyncio

        await asyncio.sleep(1)
        await cluster.run_pod(pod)

    result = run(steps(f"apply: {POD}", "assert: {pod: {name: a, phase: Running}}"), obey=late)
    assert result.verdict == "failed"
    assert result.virtual_s < 6


def test_a_hold_fails_as_soon_as_it_does_not_hold():
    async def brief(cluster, pod):
        import asyncio

        await cluster.run_pod(pod)
        await asyncio.sleep(5)
        await cluster.set_pod(pod, phase="Failed")

    text = (f"apply: {POD}", "wait: {pod: {name: a, phase: Running}}")
    body = steps(*text, "hold: {for: 60s, check: {pod: {name: a, phase: Running}}}")
    assert run(body).verdict == "passed"
    result = run(body, obey=brief)
    assert result.reason.startswith("step 3 hold: expected pod/default/a with phase")


def test_finally_runs_whatever_happened_and_cannot_hide_it():
    seen = {}
    body = (
        steps(f"apply: {POD}", "assert: {pod: {name: b}}")
        + "finally:\n  - delete: {kind: Pod, name: a}\n  - sleep: 3\n"
    )
    result = run(body, after=lambda cluster: seen.update(left=[k for k in cluster.kube.objects if k[0] == PODS]))
    assert result.reason.startswith("step 2 assert: expected pod/default/b")
    assert seen["left"] == []


def test_what_cannot_be_had_is_skipped_with_its_reason():
    result = run("requires: {dialect: [resource-pool]}\n" + steps("sleep: 1"))
    assert (result.verdict, result.reason) == ("skipped", "needs dialect resource-pool, this run has h3api")

    def deaf(cluster):
        cluster.missing["exec"] = "pods are not processes"

    result = run("requires: {features: [exec]}\n" + steps("sleep: 1"), prepare=deaf)
    assert (result.verdict, result.reason) == ("skipped", "needs exec: pods are not processes")

    def mute(cluster):
        cluster.dialect = "resource-pool"

    result = run(steps("fault: {add: {kind: lying-result}}"), prepare=mute)
    assert result.reason == "needs the fault lying-result, which the dialect resource-pool has no words for"
    assert run("requires: {nodeCpus: 193}\n" + steps("sleep: 1")).verdict == "skipped"

    async def known():
        pass

    def bare(cluster):
        cluster.hardware = PodHardware(cluster.hardware, PodHosts(None, "pool", reports=False), known)

    result = run(steps("wait: {host: {host-1: {waiting: 0}}}"), prepare=bare)
    why = "real nodes do not report which pods use pooled devices"
    assert result.reason.startswith(f"needs a look into the hosts: {why}")
    assert (result.verdict, result.virtual_s) == ("skipped", 0)


def test_a_hold_is_measured_on_the_clock_that_it_names():
    def hurry(cluster):
        cluster.pace, cluster.kubelet_pace = Pace(10.0), Pace(2.0)

    check = "check: {moves: 0}"
    assert run(steps(f"hold: {{for: 60s, {check}}}"), prepare=hurry).virtual_s == pytest.approx(6, abs=0.5)
    spans = run(steps(f"hold: {{for: 60s, clock: kubelet, {check}}}"), prepare=hurry).virtual_s
    assert spans == pytest.approx(30, abs=0.5)


def test_a_step_that_this_cluster_has_no_component_for_is_an_error():
    result = run(steps("kill: kubelet/host-2"))
    assert result.verdict == "error"
    assert "component 'kubelet/host-2': must be one of scheduler, kubelet/host-1" in result.reason


def test_a_kind_that_only_the_cluster_could_have_known_is_an_error_there():
    result = run("requires: {cluster: [embedded, kubeconfig]}\n" + steps("apply: {kind: Unicorn, metadata: {name: u}}"))
    assert result.verdict == "error"
    assert "kind 'Unicorn' (apiVersion not given): the cluster serves no such kind" in result.reason


def test_an_answer_of_the_api_server_fails_the_step():
    result = run(steps(f"create: {POD}", f"create: {POD}"))
    assert result.reason == 'step 2 create: expected create to be accepted; seen: pods "a" already exists'


def test_a_component_is_cut_within_the_very_line():
    seen = {}

    async def talk(cluster, pod):
        import asyncio

        await asyncio.sleep(4)
        cluster.move("000100", None)

    def after(cluster):
        seen["cuts"], seen["lives"] = cluster.cuts, cluster.lives["scheduler"]
        seen["line"] = next(cluster.journal.find("chassis", "detached")).number + 1

    body = steps(f"apply: {POD}", "restart: {component: scheduler, at: {layer: chassis, event: detached}}")
    assert run(body, obey=talk, after=after).verdict == "passed"
    assert seen["cuts"] == [("scheduler", seen["line"])]
    assert seen["lives"] == ["killed", "started"]


def held(devices):
    def prepare(cluster):
        entries = tuple(ContainerDevices("falcon.com/gpu", (device,)) for device in devices)
        cluster.resources["host-1"] = (PodDevices("a", "default", (("main", entries),)),)
        cluster.kube.logs["a", "main"] = f"{UUID_1}\n{UUID_2}\n"

    return prepare


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        (("0-000100", "0-000200"), ""),
        (("0-000100",), "pod resources of host-1 give it 1"),
        (
            ("0-000100", "0-000300"),
            f"holds GPU-3e5c1a19-b0d2-ff2a-d3e5-9a2aa6320b53, {UUID_1} and prints {UUID_2}, {UUID_1}",
        ),
        (("0-000100", "0-000500"), "give it 0-000500, which the chassis has on host-2"),
    ],
)
def test_gpus_must_be_the_same_from_all_three_sides(devices, reason):
    result = run(
        steps(
            f"apply: {POD}",
            "wait: {pod: {name: a, phase: Running}}",
            "assert: {gpus: {pod: a, count: 2, host: host-1}}",
        ),
        prepare=held(devices),
    )
    assert result.verdict == ("failed" if reason else "passed")
    assert reason in result.reason


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("devices: {$exact: [0-000100, 0-000200]}", ""),
        ("devices: {$exact: [0-000100, 0-000300]}", "devices[1]"),
        ("kept: true", "kept: no check of gpus has held for this pod yet"),
    ],
)
def test_gpus_may_be_expected_by_name_or_as_before(asked, reason):
    first = "assert: {gpus: {pod: a, count: 2, host: host-1}}"
    text = (
        f"apply: {POD}",
        "wait: {pod: {name: a, phase: Running}}",
        f"assert: {{gpus: {{pod: a, count: 2, {asked}}}}}",
    )
    result = run(steps(*text), prepare=held(("0-000100", "0-000200")))
    assert (result.verdict, reason in result.reason) == ("failed" if reason else "passed", True)
    assert run(steps(text[0], text[1], first, text[2]), prepare=held(("0-000100", "0-000200"))).verdict == (
        "passed" if "000300" not in asked else "failed"
    )


def test_other_gpus_than_before_are_noticed():
    def prepare(cluster):
        held(("0-000100", "0-000200"))(cluster)
        second = tuple(ContainerDevices("falcon.com/gpu", (device,)) for device in ("0-000100", "0-000300"))
        first = cluster.resources["host-1"]
        answers = iter((first, (PodDevices("a", "default", (("main", second),)),)))

        async def told(host):
            return next(answers)

        cluster.pod_resources = told

    check = "assert: {gpus: {pod: a, count: 2, log: false%s}}"
    text = (f"apply: {POD}", "wait: {pod: {name: a, phase: Running}}", check % "", check % ", kept: true")
    assert "it holds" in run(steps(*text), prepare=prepare).reason


def test_a_uuid_that_no_chassis_has_is_noticed_in_the_log():
    def prepare(cluster):
        held(("0-000100", "0-000200"))(cluster)
        cluster.kube.logs["a", "main"] += "GPU-00000000-0000-0000-0000-000000000000"

    text = (f"apply: {POD}", "wait: {pod: {name: a, phase: Running}}", "assert: {gpus: {pod: a, count: 2}}")
    assert "GPU-00000000-0000-0000-0000-000000000000" in run(steps(*text), prepare=prepare).reason


def test_a_number_of_lines_that_is_exceeded_is_cited_by_the_line_that_exceeds_it():
    attached = []

    async def talk(cluster, pod):
        cluster.move("000100", "2")
        cluster.move("000500", "1")
        await cluster.run_pod(pod)
        attached.extend(line.number for line in cluster.journal.find("chassis", "attached"))

    def cited(wanted):
        count = f"{{of: {{layer: chassis, event: attached}}, is: {wanted}}}"
        text = (f"apply: {POD}", "wait: {pod: {name: a, phase: Running}}", f"assert: {{journal: {{count: [{count}]}}}}")
        attached.clear()
        result = run(steps(*text), obey=talk)
        assert result.verdict == "failed"
        return (result.failure["line"] or {}).get("line")

    assert cited("{$le: 1}") == attached[1]
    assert cited("0") == attached[0]
    assert cited("3") is None


def test_a_line_that_is_missing_or_came_too_early_is_cited_by_the_last_one_like_it():
    moves = []

    async def talk(cluster, pod):
        cluster.move("000100", "2")
        cluster.move("000500", "1")
        await cluster.run_pod(pod)
        moves.extend(line.number for line in cluster.journal.find("chassis", "attached"))

    def cited(check):
        text = (f"apply: {POD}", "wait: {pod: {name: a, phase: Running}}", f"assert: {{journal: {check}}}")
        moves.clear()
        return (run(steps(*text), obey=talk).failure["line"] or {}).get("line")

    second, first = ("{event: attached, device: '000500'}", "{event: attached, device: '000100'}")
    assert cited(f"{{order: [{second}, {first}]}}") == moves[0]
    assert cited("{occurs: [{layer: chassis, event: attached, device: '000900'}]}") == moves[1]
    assert cited("{occurs: [{layer: chassis, event: edited}]}") is None
    assert cited(f"{{order: [{second}, {{event: edited}}]}}") is None


def test_a_step_that_fails_cites_the_line_of_what_its_text_names_first():
    def made(seen):
        said = [
            ("api", "pod/default/a", "annotations", {"annotations": {"k": "GPU-1"}}),
            ("kubelet", "kubelet/n", "allocated", {"pod": "default/a"}),
            ("api", "pod/default/a", "phase", {"phase": "Running"}),
            ("api", "node/n", "allocatable", {"resource": "r", "new": "4"}),
            ("kubelet", "kubelet/n", "devices", {"resource": "r"}),
        ]
        journal = Journal(lambda: 0.0)
        for layer, actor, event, fields in said:
            journal.write(layer, actor, event, **fields)
        line = made_by(journal, Finding(False, "", seen, ("pod/default/a", "node/n")), 0)
        return line.event if line is not None else None

    assert made("annotations.k: is GPU-1; phase Running") == "annotations"
    assert made("phase: expected Failed; GPU-1") == "phase"
    assert made("GPU-1 is held") == "allocated"
    assert made("allocatable r: expected 3, is 4") == "devices"


def test_journal_checks_know_occurrence_absence_order_and_number():
    async def talk(cluster, pod):
        cluster.move("000100", "2")
        cluster.move("000500", "1")
        await cluster.run_pod(pod)

    def judged(check):
        text = (f"apply: {POD}", "wait: {pod: {name: a, phase: Running}}", f"assert: {{{check}}}")
        return run(steps(*text), obey=talk).verdict

    line = "{layer: chassis, event: %s}"
    down, up = line % "detached", line % "attached"
    assert (
        judged(f"journal: {{occurs: [{up}], order: [{down}, {up}, {down}, {up}], count: [{{of: {up}, is: 2}}]}}")
        == "passed"
    )
    assert judged("moves: 2, operations: {attached: 2, detached: 2, edited: 0}") == "passed"
    for wrong in (
        f"never: [{up}]",
        f"order: [{up}, {up}, {down}]",
        f"count: [{{of: {up}, is: 1}}]",
        f"occurs: [{line % 'down'}]",
    ):
        assert judged(f"journal: {{{wrong}}}") == "failed"
    assert judged("moves: 1") == "failed"
    assert judged("operations: {detached: 1}") == "failed"


def test_steps_edit_the_table_exec_and_delete():
    result = run(
        steps(
            f"apply: {POD}",
            "wait: {pod: {name: a, phase: Running}, settled: {}}",
            "{chassis: {edit: {chassis: A, device: '000100', host: host-2}}}",
            "assert: {hosts: {host-1: 3, host-2: 5}, table: {A: {'000100': {port: '2'}}}}",
            "exec: {pod: a, command: [echo, hi], stdout: {$regex: hi}}",
            "patch: {kind: Pod, name: a, body: {metadata: {annotations: {k: v}}}}",
            "assert: {object: {kind: Pod, metadata: {name: a, annotations: {k: v}}}, count: {kind: Pod, is: 1}}",
            "delete: {kind: Pod, name: a}",
            "assert: {absent: {kind: Pod, name: a}}",
            "chassis: {reset: true}",
            "assert: {hosts: {host-1: 4}}",
        )
    )
    assert (result.verdict, result.reason) == ("passed", "")


def test_a_pod_is_evicted_unless_its_budget_refuses():
    result = run(steps(f"apply: {POD}", "evict: {pod: a}", "assert: {absent: {kind: Pod, name: a}}"))
    assert (result.verdict, result.reason) == ("passed", "")
    label = "patch: {kind: Pod, name: a, body: {metadata: {labels: {budget: x}}}}"
    result = run(steps(f"apply: {POD}", label, "evict: {pod: a, gracePeriod: 0}"))
    assert result.verdict == "failed"
    assert "violate the pod's disruption budget" in result.report


def test_steps_are_told_and_journalled():
    told = []
    run(steps("{name: nap, sleep: 3}", "assert: {moves: 1}"), observer=told.append)
    assert [(p.step, p.do, p.name, p.verdict) for p in told] == [
        (1, "sleep", "nap", None),
        (1, "sleep", "nap", "passed"),
        (2, "assert", "", None),
        (2, "assert", "", "failed"),
    ]


def test_artefacts_that_cannot_be_written_change_no_verdict(tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    result = run(steps(f"apply: {POD}", "assert: {pod: {name: a, phase: Failed}}"), artefacts=taken)
    assert (result.verdict, result.artefacts) == ("failed", None)
    assert f"artefacts cannot be written: {taken}" in result.report


def test_a_failed_run_leaves_its_artefacts(tmp_path):
    result = run(steps(f"apply: {POD}", "assert: {pod: {name: a, phase: Failed}}"), artefacts=tmp_path)
    assert result.artefacts == tmp_path / "t-1"
    assert sorted(path.name for path in result.artefacts.iterdir()) == [
        "configmaps.json",
        "events.json",
        "journal.jsonl",
        "nodes.json",
        "pods.json",
        "records.jsonl",
        "report.txt",
        "result.json",
        "table.json",
    ]
    assert "awaited: pod/default/a" in (result.artefacts / "report.txt").read_text()


WORKLOAD = """\
workload:
  types: {A: {gpus: 1, cpus: 96}}
  duration: 100
  gate: pending
  jobs:
    - {job: x, type: A, arrival: 0}
    - {job: Y, type: A, arrival: 30}
    - {job: z, type: A, arrival: 40, gpus: 2}
"""


def test_a_workload_is_driven_and_measured():
    result = run(WORKLOAD + "metrics: {mean_wait_s: 0, mean_jct_s: {of: 100, within: 1%}, makespan_s: {max: 141}}\n")
    assert (result.verdict, result.reason) == ("passed", "")
    assert result.metrics["makespan_s"] == 140
    # One GPU for 30 s, two for 10 s, four for 60 s, three for 30 s, two for 10 s of 140 s.
    assert result.metrics["gpu_used_cdf"] == [[1, 0.2143], [2, 0.3571], [3, 0.5714], [4, 1.0]]
    assert result.metrics["cpu_utilisation"] == pytest.approx(3 * 96 * 100 / (576 * 140), abs=1e-4)


def test_the_gate_holds_back_the_next_pod_while_one_is_pending():
    async def slow(cluster, pod):
        import asyncio

        await asyncio.sleep(50)
        await cluster.run_pod(pod)

    metrics = run(WORKLOAD, obey=slow).metrics
    # x waits 50; Y is made at 50 and starts at 100; z is made at 100 and starts at 150.
    assert metrics["mean_wait_s"] == pytest.approx((50 + 70 + 110) / 3, abs=1e-3)
    assert run(WORKLOAD.replace("gate: pending", "gate: none"), obey=slow).metrics["mean_wait_s"] == 50


def test_a_metric_out_of_bounds_fails_the_run():
    result = run(WORKLOAD + "metrics: {mean_jct_s: {of: 80, within: 10%}}\n")
    assert result.verdict == "failed"
    assert result.reason == "metrics: mean_jct_s is 100, +25.0 % off 80 (allowed: 10 %)"


def test_a_workload_that_can_never_end_is_a_deadlock():
    async def never(cluster, pod):
        """Stays Pending."""

    result = run(WORKLOAD, obey=never)
    assert result.reason.startswith(
        "step 1 workload: deadlock: nothing can happen any more while waiting for all 3 jobs"
    )
    assert "0 ended, 2 not yet created, 1 Pending, first x" in result.reason


def test_two_runs_give_the_same_journal():
    texts = []
    for _ in range(2):
        run(WORKLOAD, after=lambda cluster: texts.append(cluster.journal.as_jsonl()))
    assert texts[0] == texts[1] != ""
