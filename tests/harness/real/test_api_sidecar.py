"""Faults of the API for components in pods: the container beside them, and the harness that asks it."""

import asyncio
import json
import random
import subprocess
import threading
from dataclasses import replace

import pytest

from mews.harness.api_faults.control import ApiFaults
from mews.harness.clusters.real import api_sidecar
from mews.harness.clusters.real.api_sidecar import Sidecar, asking
from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.pod_faults import PodFaults
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.api_sidecar import SIDECAR, SIDECAR_FOLDER, SIDECAR_KUBECONFIG
from mews.harness.manifests.stack import manifests
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.loader import load_scenario
from mews.kube.api.errors import UnavailableError
from mews.kube.client.port import ExecResult, ObjectList
from mews.kube.clock import Pace

CONFLICT = {"kind": "conflict", "resource": "leases"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(api_sidecar, "FOLDER", tmp_path)
    return tmp_path


def sidecar_in(folder):
    journal = Journal(lambda: 0.0)
    faults = ApiFaults(None, journal, Pace(), random.Random(1))
    faults.stand_between("component")
    return Sidecar(faults, folder), faults, journal


def listed(faults):
    async def look():
        return faults.listed()

    return asyncio.run(look())


def test_manifest_and_program_name_the_same_places():
    assert str(api_sidecar.FOLDER) == SIDECAR_FOLDER
    assert str(api_sidecar.KUBECONFIG) == SIDECAR_KUBECONFIG


def test_a_question_that_is_asked_by_a_shell_is_answered(folder):
    sidecar, faults, _ = sidecar_in(folder)
    ended = threading.Event()

    def serve():
        async def look():
            while not ended.is_set():
                await sidecar.look()
                await asyncio.sleep(0.01)

        asyncio.run(look())

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        answers = [
            subprocess.run(asking(number, question), capture_output=True, text=True, check=True, timeout=20).stdout
            for number, question in enumerate(
                (
                    json.dumps({"add": {**CONFLICT, "resource": "pods, \"quoted\" $HOME 'and' more"}, "version": "7"}),
                    json.dumps({"add": {"kind": "no-such"}, "version": "7"}),
                    json.dumps({"add": {"kind": "stale-reads"}, "version": "7"}),
                )
            )
        ]
    finally:
        ended.set()
        thread.join()
    assert [answers[0], answers[2]] == ["", ""]
    assert ("no-such" in answers[1], "\n" in answers[1]) == (True, False)
    assert [each["kind"] for each in listed(faults)["component"]] == ["conflict", "stale-reads"]
    assert listed(faults)["component"][0]["spec"]["resource"] == "pods, \"quoted\" $HOME 'and' more"


def test_a_question_is_answered_once_and_in_turn(folder):
    sidecar, faults, journal = sidecar_in(folder)
    (folder / "ask-1").write_text(json.dumps({"clear": True}))
    asyncio.run(sidecar.look())
    assert not (folder / "answer-1").exists()  # the one before has not been asked
    (folder / "ask-0").write_text(json.dumps({"add": CONFLICT, "version": "1"}))
    asyncio.run(sidecar.look())
    asyncio.run(sidecar.look())
    assert [(line.event, line.fields["kind"]) for line in journal.lines()] == [
        ("added", "conflict"),
        ("cleared", "conflict"),
    ]
    assert listed(faults) == {}


class Pods:
    """The API of a cluster with one pod, whose sidecar is a folder here."""

    def __init__(self, folder, journal):
        self.sidecar, self.faults, self.journal = sidecar_in(folder)
        self.folder = folder
        self.lost = False

    async def list(self, resource, *, limit):
        return ObjectList([], "41")

    async def exec(self, namespace, pod, command, *, container):
        if self.lost:
            raise UnavailableError("gone")
        assert (namespace, pod, container) == ("mews", "scheduler-x", SIDECAR)
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        reading = asyncio.ensure_future(process.communicate())
        while not reading.done():
            await self.sidecar.look()
            await asyncio.sleep(0.01)
        return ExecResult(await process.wait(), reading.result()[0], b"")

    async def log(self, namespace, pod, *, container, follow):
        seen = 0
        yield b"a warning of the interpreter\n"
        while True:
            for line in self.journal.lines(seen):
                seen = line.number + 1
                yield line.as_json().encode() + b"\n"
            await asyncio.sleep(0.01)


def with_pods(folder, main):
    async def run():
        journal = Journal(lambda: 5.0)
        pods = Pods(folder, journal)
        known = {"scheduler": "scheduler-x", "reconfig-manager": "other"}
        faults = PodFaults(pods, "mews", journal, lambda: known, frozenset({"scheduler"}))
        faults.follow()
        try:
            return await main(faults, pods, journal)
        finally:
            await faults.close()

    return asyncio.run(run())


async def until(journal, count):
    written = asyncio.Event()
    stop = journal.listen(lambda _: written.set() if len(journal) >= count else None)
    if len(journal) < count:
        await asyncio.wait_for(written.wait(), 10)
    stop()


def test_a_fault_is_added_listed_and_cleared_and_the_journal_says_so(folder):
    async def main(faults, pods, journal):
        assert faults.clients() == ["scheduler"]
        await faults.add("scheduler", {"kind": "stale-reads"})
        await until(journal, 1)
        there = faults.listed()
        await faults.clear("scheduler")
        await until(journal, 2)
        await faults.add("scheduler", {"kind": "conflict"})
        await until(journal, 3)
        lines = [(line.actor, line.event, line.fields["fault"], line.t) for line in journal.lines()]
        return there, [each["fault"] for each in faults.listed()["scheduler"]], lines

    there, left, lines = with_pods(folder, main)
    assert {name: [each["kind"] for each in found] for name, found in there.items()} == {"scheduler": ["stale-reads"]}
    assert left == ["a2"]
    assert lines == [
        ("scheduler", "added", "a1", 5.0),
        ("scheduler", "cleared", "a1", 5.0),
        ("scheduler", "added", "a2", 5.0),
    ]


def test_faults_of_two_proxies_have_numbers_of_their_own(folder):
    class Two(Pods):
        async def log(self, namespace, pod, *, container, follow):
            printed = Journal(lambda: 0.0)
            printed.write("fault", "component", "added", fault="a1", kind="conflict", spec={"of": pod})
            if pod == "first":
                printed.write("fault", "component", "cleared", fault="a1", kind="conflict")
            yield printed.as_jsonl().encode()
            await asyncio.sleep(60)

    async def run():
        journal = Journal(lambda: 0.0)
        known = {"scheduler": "first", "device-manager/host-1": "second"}
        pods = Two(folder, journal)
        faults = PodFaults(pods, "mews", journal, lambda: known, frozenset({"scheduler", "device-manager"}))
        faults.follow()
        await until(journal, 3)
        seen = faults.listed(), {(line.actor, line.fields["fault"]) for line in journal.lines()}
        pods.lost = True
        await faults.close()
        return seen

    left, numbers = asyncio.run(run())
    assert list(left) == ["device-manager/host-1"]
    assert len({number for _, number in numbers}) == len(numbers) == 2


def test_a_pod_that_is_gone_is_named(folder):
    async def main(faults, pods, journal):
        pods.lost = True
        with pytest.raises(RequirementError, match="scheduler: its proxy cannot be reached: gone"):
            await faults.add("scheduler", CONFLICT)

    with_pods(folder, main)


def test_what_is_no_fault_or_no_client_is_refused_in_a_line(folder):
    async def main(faults, pods, journal):
        with pytest.raises(ValueError, match="'reconfig-manager': must be"):
            await faults.add("reconfig-manager", CONFLICT)
        with pytest.raises(ValueError, match="by_s"):
            await faults.add("scheduler", {"kind": "slow-request", "by_s": -1})
        return len(journal)

    assert with_pods(folder, main) == 0


def pods_of(tmp_path, struck):
    """Component -> the pod of its Deployment or DaemonSet, of the default stack."""
    path = tmp_path / "one.yaml"
    path.write_text("apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: one}\nhardware: demo\n")
    scenario = load_scenario(path)
    nodes = {host: host for host in ("host-1", "host-2", "host-3")}
    target = DeploymentTarget(None, None, "pool", "registry.example.com/mews:1", nodes, prefix="pool-")
    document, _ = hardware_document(scenario)
    spec = stack_spec(scenario, hardware_of(scenario), document, target, dialect="h3api", token="t")
    made = manifests(replace(spec, struck=frozenset(struck)))
    return {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"]
        for obj in made
        if obj["kind"] in ("Deployment", "DaemonSet")
    }


def test_a_proxy_runs_before_a_component_that_is_struck_and_no_other_pod_changes(tmp_path):
    plain, struck = pods_of(tmp_path, ()), pods_of(tmp_path, ("scheduler", "device-manager"))
    changed = {name for name in plain if plain[name] != struck[name]}
    assert changed == {"scheduler", "device-manager"}
    for name in changed:
        (sidecar,) = struck[name]["initContainers"]
        assert (sidecar["restartPolicy"], "startupProbe" in sidecar) == ("Always", True)
        env = {
            each["name"]: {one["name"]: one.get("value") for one in each.get("env", ())}
            for each in struck[name]["containers"]
        }
        assert {each: names["KUBECONFIG"] for each, names in env.items() if "KUBECONFIG" in names} == {
            name: SIDECAR_KUBECONFIG
        }
