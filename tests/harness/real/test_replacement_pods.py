"""The user's software as it runs: what it dies of is told, and what its manifest brought goes."""

import asyncio
import random
from dataclasses import replace

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.real.replacement_pods import RECORD, ReplacementPods
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.parts import labels
from mews.harness.manifests.spec import InstalledSystem, ReplacementProgram, StackSpec
from mews.harness.ports.cluster import ComponentsCrashedError
from mews.harness.scenario.errors import ScenarioError
from mews.kube.api.errors import NotFoundError
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES, PODS
from mews.kube.client.port import DeleteOptions
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.system.facility import Facility
from mews.systems.kubecomp.system import SYSTEM

SPEC = StackSpec(
    namespace="pool", image="ours", hardware={}, facility=Facility(), token="t",
    systems=[InstalledSystem(SYSTEM, None, {each.name: each for each in SYSTEM.components})],
    programs={"scheduler": ReplacementProgram(["x"]), "device-manager": ReplacementProgram(["y"])},
)  # fmt: skip
POD = {
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "pool"},
    "spec": {"containers": [{"name": "a", "image": "b"}]},
}


class Told(InProcessKube):
    """An API whose containers have said something."""

    async def log(self, namespace, pod, **options):
        yield b"no module named mine\n"


async def world():
    kube = Told(fresh_store(virtual_clock().now, random.Random(1)))
    for name in ("pool", "other"):
        await kube.create(NAMESPACES, {"metadata": {"name": name}})
    journal = Journal(asyncio.get_running_loop().time)
    return kube, ReplacementPods(SPEC, kube=kube, view=kube, journal=journal, hosts={"box": "host-1"}), journal


async def pod(kube, component, status, node="box", namespace="pool"):
    meta = {"name": f"{component}-1", "labels": labels(component)}
    spec = {"nodeName": node, "containers": [{"name": component, "image": "mine:1"}]}
    await kube.create(PODS, {"metadata": meta, "spec": spec}, namespace=namespace)
    seen = {"status": {"containerStatuses": [{"name": component, "image": "mine:1", "imageID": "", **status}]}}
    await kube.patch(PODS, meta["name"], seen, namespace=namespace, subresource="status")


def ended(code, count=1):
    return {"ready": False, "restartCount": count, "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": code}}}  # fmt: skip


def waiting(reason, message):
    return {"ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}


def test_an_image_that_cannot_be_had_is_told_in_one_line():
    async def main():
        kube, pods, _ = await world()
        await pod(kube, "scheduler", waiting("ErrImagePull", "first try"))
        await pods.check()
        await kube.delete(PODS, "scheduler-1", namespace="pool", options=DeleteOptions(grace_period_s=0))
        await pod(kube, "scheduler", waiting("ImagePullBackOff", "Back-off\n pulling"))
        with pytest.raises(RequirementError, match=r"^scheduler: mine:1: .* cannot pull it: Back-off pulling$"):
            await pods.check()

    run_virtual(main)


def test_a_program_that_ends_is_told_with_its_last_words_and_its_host():
    async def main():
        kube, pods, _ = await world()
        await pod(kube, "device-manager", ended(2))
        with pytest.raises(
            ComponentsCrashedError, match=r"^device-manager/host-1 exited with code 2: no module named mine$"
        ):
            await pods.check()

    run_virtual(main)


def test_who_cannot_wait_for_the_chassis_is_forgiven_until_he_is_started_anew():
    async def main():
        kube, pods, journal = await world()
        await pod(kube, "device-manager", ended(1, count=2))
        await pods.check_early()
        await pods.begin()
        watching = asyncio.create_task(pods.watch())
        await asyncio.sleep(2)
        await pods.check()
        assert not list(journal.find("component", "crashed"))
        again = {
            "status": {"containerStatuses": [{"name": "device-manager", "image": "", "imageID": "", **ended(1, 3)}]}
        }
        await kube.patch(PODS, "device-manager-1", again, namespace="pool", subresource="status")
        await asyncio.sleep(2)
        watching.cancel()
        assert len(list(journal.find("component", "crashed"))) == 1
        for check in (pods.check, pods.check_early):
            with pytest.raises(ComponentsCrashedError, match=r"^device-manager/host-1 exited with code 1"):
                await check()

    run_virtual(main)


def test_our_own_pods_are_not_the_users():
    async def main():
        kube, pods, _ = await world()
        await pod(kube, "reconfig-manager", ended(1))
        await pods.check()

    run_virtual(main)


def test_each_end_is_one_line_of_the_journal():
    async def main():
        kube, pods, journal = await world()
        watching = asyncio.create_task(pods.watch())
        await pod(kube, "scheduler", {"ready": True, "restartCount": 0, "state": {"running": {}}})
        await asyncio.sleep(2)
        again = {"status": {"containerStatuses": [{"name": "scheduler", "image": "", "imageID": "", **ended(3)}]}}
        await kube.patch(PODS, "scheduler-1", again, namespace="pool", subresource="status")
        await asyncio.sleep(2)
        watching.cancel()
        (line,) = journal.find("component", "crashed")
        cause = "ProcessEndedError: exited with code 3: no module named mine"
        assert (line.actor, line.fields) == ("scheduler", {"cause": cause})

    run_virtual(main)


def test_a_pod_in_which_an_earlier_program_ended_is_made_anew():
    async def main():
        kube, pods, _ = await world()
        await pod(kube, "scheduler", ended(1))
        await pods.clean()
        assert (await kube.list(PODS, namespace="pool")).items == []

    run_virtual(main)


def test_what_a_manifest_brought_is_found_and_removed_by_whoever_comes_next():
    async def main():
        kube, pods, journal = await world()
        note = {"kind": "ConfigMap", "metadata": {"name": "n", "namespace": "other"}, "data": {"a": "b"}}
        applying = asyncio.create_task(pods.apply({"scheduler": [note, POD]}, lambda _: None))
        await asyncio.sleep(1)
        await kube.patch(PODS, "p", {"status": {"phase": "Running"}}, namespace="pool", subresource="status")
        await applying
        assert (await kube.get(CONFIGMAPS, "n", namespace="other"))["data"] == {"a": "b"}
        await ReplacementPods(replace(SPEC, programs={}), kube=kube, view=kube, journal=journal, hosts={}).remove()
        for resource, name, namespace in (
            (CONFIGMAPS, "n", "other"), (PODS, "p", "pool"), (CONFIGMAPS, RECORD, "pool"),
        ):  # fmt: skip
            with pytest.raises(NotFoundError):
                await kube.get(resource, name, namespace=namespace)

    run_virtual(main)


def test_an_object_that_is_somebody_elses_is_neither_taken_nor_removed():
    async def main():
        kube, pods, _ = await world()
        await kube.create(CONFIGMAPS, {"metadata": {"name": "n"}, "data": {"its": "own"}}, namespace="other")
        note = {"kind": "ConfigMap", "metadata": {"name": "n", "namespace": "other"}}
        with pytest.raises(RequirementError, match=r"^stack.replace.scheduler.manifest: ConfigMap n: already exists"):
            await pods.apply({"scheduler": [note]}, lambda _: None)
        await pods.remove()
        assert (await kube.get(CONFIGMAPS, "n", namespace="other"))["data"] == {"its": "own"}

    run_virtual(main)


def test_an_object_that_the_api_does_not_take_is_bad_input():
    async def main():
        _, pods, _ = await world()
        bad = {"kind": "Pod", "metadata": {"name": "p", "namespace": "pool"}, "spec": {"containers": []}}
        with pytest.raises(ScenarioError, match=r"^stack.replace.scheduler.manifest: Pod p: .*containers"):
            await pods.apply({"scheduler": [bad]}, lambda _: None)
        await pods.remove()

    run_virtual(main)
