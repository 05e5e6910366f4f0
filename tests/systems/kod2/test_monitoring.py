"""What is shipped for Prometheus and Grafana, held against what the operator exports and how its pods are called."""

import asyncio
import json
import re

import pytest
import yaml
from prometheus_client import generate_latest

from mews.systems.kod2 import operator
from mews.systems.kod2.__main__ import main
from mews.systems.kod2.config import Scheduling
from mews.systems.kod2.metrics import Kod2MemoryMetrics
from mews.systems.kod2.model import State
from mews.systems.kod2.podspec import pod_of_task
from mews.systems.kod2.prometheus import Kod2PrometheusMetrics
from mews.systems.kod2.tfjob import read_tfjob
from tests.systems.kod2.test_operator import job, on_cluster
from tests.systems.kod2.test_pods import tfjob

CADVISOR = {"container_cpu_usage_seconds_total", "container_memory_working_set_bytes", "machine_cpu_cores"}
OF_TASKS = {"namespace", "tfjob", "task"}
"""Labels of cAdvisor's series about tasks: its own, and those that the scrapes add."""
WORDS = {"sum", "max", "by", "on", "rate", "increase", "histogram_quantile", "label_values"}


def printed(capsys, what):
    assert main([what]) == 0
    return capsys.readouterr().out


def exported():
    """Names of all series that the operator serves, and the labels of each."""
    metrics = Kod2PrometheusMetrics()
    metrics.states({"WAITING": 2})
    metrics.workers({"default/a": 3})
    metrics.finished(1.0, 2.0)
    metrics.decided(0.1)
    text = generate_latest(metrics.registry).decode()
    series = re.findall(r"^([a-z0-9_]+)(?:\{(.*)\})? ", text, re.MULTILINE)
    return {name: set(re.findall(r"(\w+)=", labels)) for name, labels in series}


def names_in(expression):
    """The metrics of an expression: what is left of its words without strings, labels, durations and functions."""
    plain = re.sub(r'"[^"]*"', "", expression)
    plain = re.sub(r"\{[^}]*\}|\[[^]]*\]|\b(by|on) \([^)]*\)", " ", plain)
    return set(re.findall(r"[a-z_][a-z0-9_]*", plain)) - WORDS


def test_the_dashboard_asks_for_what_is_exported_and_for_nothing_else(capsys):
    dashboard = json.loads(printed(capsys, "grafana"))
    known = exported()
    asked = set()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            found = names_in(target["expr"])
            assert found and found <= known.keys() | CADVISOR, target["expr"]
            asked |= found
            for name, matchers in re.findall(r"(\w+)\{([^}]*)\}", target["expr"]):
                assert set(re.findall(r'(\w+)(?:=|!=|=~)"', matchers)) <= known.get(name, OF_TASKS), target["expr"]
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert re.search(rf"by \([^)]*\b{label}\b", target["expr"]), target
    assert {"container_cpu_usage_seconds_total", "kod2_jobs", "kod2_job_workers"} <= asked
    (variable,) = [each for each in dashboard["templating"]["list"] if each["type"] == "query"]
    assert names_in(variable["definition"].split(",")[0]) == {"kod2_job_workers"}
    assert "namespace" in known["kod2_job_workers"]


def test_a_metric_that_nobody_exports_would_be_found():
    assert names_in('sum by (a) (rate(kod2_joobs{state="b"}[5m])) / up') == {"kod2_joobs", "up"}
    assert "kod2_joobs" not in exported()


@pytest.mark.parametrize("name", ["digits", "a-worker-1", "x-ps-0-y"])
def test_the_scrapes_find_the_operator_and_name_each_tasks_job(capsys, name):
    operator, kubelets = yaml.safe_load(printed(capsys, "prometheus"))["scrape_configs"]
    (keep,) = operator["relabel_configs"]
    assert re.fullmatch(keep["regex"], "mews;operator;metrics")  # as tests/harness/manifests holds the pod to
    first, *rest = kubelets["metric_relabel_configs"]
    assert set(first["regex"].split("|")) == CADVISOR
    given = tfjob(2)
    given["metadata"] = {"name": name, "namespace": "ns", "uid": "u"}
    read = read_tfjob(given)
    for task in read.all_tasks():
        pod = pod_of_task(read, given, task, node="n")
        (container,) = pod["spec"]["containers"]
        labels = {}
        for rule in rest:
            match = re.fullmatch(rule["regex"], f"{container['name']};{pod['metadata']['name']}")
            labels[rule["target_label"]] = match.expand(rule["replacement"].replace("$", "\\"))
        assert labels == {"tfjob": name, "task": task}
    assert not re.fullmatch(rest[0]["regex"], "nginx;web-worker-0")


@pytest.mark.parametrize("scheduling", Scheduling)
def test_states_and_workers_of_jobs_are_counted_in_the_baseline_too(scheduling, monkeypatch):
    metrics = Kod2MemoryMetrics()
    monkeypatch.setattr(operator, "Kod2MemoryMetrics", lambda: metrics)

    async def test(bench):
        made = job(workers=2, steps=100_000)
        for replicas in made["spec"]["tfReplicaSpecs"].values():
            replicas["template"]["spec"]["nodeName"] = "host-1"  # no scheduler runs beside the baseline
        await bench.create(made)
        await bench.until("Running")
        await asyncio.sleep(20)
        assert metrics.jobs == {State.RUNNING: 1}
        assert metrics.workers_of == {"default/j": 2}

    on_cluster(test, scheduling=scheduling.value)
