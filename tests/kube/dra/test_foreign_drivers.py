"""Drivers that others wrote, unmodified, on a node of `mews up`: dra-example-driver and NVIDIA's, by the same tests;
and ours as a process, as it runs in a cluster.

Sources: sigs.k8s.io/dra-example-driver v0.4.0, sigs.k8s.io/dra-driver-nvidia-gpu v0.4.1 (gpu-kubelet-plugin).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from tests.kube.dra.foreign import DRIVERS, NODE, ForeignDriver, Up, session, until

pytestmark = pytest.mark.wall


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    with session() as started:
        if started.node["driver_root"] is None:
            pytest.skip("the NVML library is not compiled here, and there is no C compiler")
        yield started


@pytest.fixture(scope="module", params=DRIVERS)
def driver(request: Any, tmp_path_factory: Any) -> Iterator[ForeignDriver]:
    """A driver that runs; the session is not started for one that is not built."""
    log: Path = tmp_path_factory.mktemp("driver") / "log"
    make = DRIVERS[request.param]
    made = make(request.getfixturevalue("up"), log)
    made.start()
    selector = {"cel": {"expression": f"device.driver == '{made.name}'"}}
    made.up.create("DeviceClass", made.name, {"selectors": [selector]})
    try:
        yield made
    finally:
        made.kill()
        made.up.delete("DeviceClass", made.name)  # the next driver may bear the same name


@pytest.fixture(autouse=True)
def nothing_left(driver: ForeignDriver) -> Iterator[None]:
    """Every test gives all back, and nothing stays prepared then."""
    yield
    up = driver.up
    for kind in ("Job", "Pod", "ResourceClaim", "ResourceClaimTemplate"):
        for each in up.items(kind):
            up.delete(kind, each["metadata"]["name"])
    assert until(lambda: not driver.specifications(), "the claims' CDI files to be gone")
    state = Path(up.node["plugins"]).parent / "dra_manager_state"
    assert not state.exists() or '\\"ClaimInfoStateList\\":[]' in state.read_text()


def test_two_pods_of_one_claim_see_its_device_and_no_other(driver: ForeignDriver) -> None:
    up = driver.up
    up.create("ResourceClaim", "shared", driver.request())
    for name in ("left", "right"):
        up.create("Pod", name, driver.pod({"resourceClaimName": "shared"}))
    assert len(driver.devices()) == 4
    shown = driver.shown("left")
    assert len(shown) == 1
    assert shown == driver.shown("right") == driver.allocated("shared")
    up.delete("Pod", "left")
    assert driver.specifications()


@pytest.mark.nightly
def test_a_selector_chooses_the_device_by_its_attribute(driver: ForeignDriver) -> None:
    devices = driver.devices()
    wanted = sorted(devices)[2]
    uuid = devices[wanted]["attributes"]["uuid"]["string"]
    selector = {"cel": {"expression": f"device.attributes['{driver.name}'].uuid == '{uuid}'"}}
    driver.up.create("ResourceClaim", "chosen", driver.request(selectors=[selector]))
    driver.up.create("Pod", "one", driver.pod({"resourceClaimName": "chosen"}))
    assert driver.shown("one") == driver.allocated("chosen") == [driver.value(wanted)]


@pytest.mark.nightly
def test_each_pod_of_a_job_has_a_device_of_its_own(driver: ForeignDriver) -> None:
    up = driver.up
    up.create("ResourceClaimTemplate", "one", {"spec": driver.request()})
    pod = driver.pod({"resourceClaimTemplateName": "one"})
    pod["containers"][0]["command"] = ["sh", "-c", driver.shows]
    up.create("Job", "many", {"completions": 6, "parallelism": 2, "template": {"spec": pod}})
    until(lambda: (up.get("Job", "many")["status"] or {}).get("succeeded") == 6, "the job to end")
    logs = [up.log(each["metadata"]["name"]) for each in up.items("Pod")]
    assert [len(driver.seen(log)) for log in logs] == [1] * 6
    assert until(lambda: not up.items("ResourceClaim"), "the claims to go")


@pytest.mark.nightly
def test_an_administrators_pod_sees_all_devices_those_in_use_too(driver: ForeignDriver) -> None:
    up = driver.up
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    up.ask("api/v1/namespaces/default", "PATCH", label, "application/merge-patch+json")
    up.create("ResourceClaim", "own", driver.request())
    up.create("Pod", "user", driver.pod({"resourceClaimName": "own"}))
    used = driver.shown("user")
    up.create("ResourceClaim", "all", driver.request(allocationMode="All", adminAccess=True))
    up.create("Pod", "admin", driver.pod({"resourceClaimName": "all"}))
    seen = driver.shown("admin")
    assert seen == driver.allocated("all") == sorted(map(driver.value, driver.devices()))
    assert set(used) < set(seen)


@pytest.mark.nightly
def test_a_kubelet_that_is_restarted_keeps_the_pod_and_lets_another_join(driver: ForeignDriver) -> None:
    # Before the test that kills the driver: a driver that has just changed its slice, in place of creating it, does not
    # put a deleted one back (mutation cache of k8s.io/dynamic-resource-allocation 0.36, resourceslicecontroller.go).
    up = driver.up
    up.create("ResourceClaim", "c", driver.request())
    up.create("Pod", "first", driver.pod({"resourceClaimName": "c"}))
    shown = driver.shown("first")
    before = up.get("Pod", "first")["status"]["containerStatuses"]
    slices = {each["metadata"]["uid"] for each in up.items("ResourceSlice")}
    up.step(f"kill: kubelet/{NODE}")
    up.step(f"start: kubelet/{NODE}")
    until(
        lambda: driver.devices() and not slices & {each["metadata"]["uid"] for each in up.items("ResourceSlice")},
        "the driver to publish its devices anew",
    )
    up.create("Pod", "second", driver.pod({"resourceClaimName": "c"}))
    assert driver.shown("second") == shown
    assert up.get("Pod", "first")["status"]["containerStatuses"] == before


@pytest.mark.nightly
def test_a_driver_killed_amid_a_call_prepares_once_it_is_back(driver: ForeignDriver) -> None:
    up = driver.up
    up.create("ResourceClaim", "c", driver.request())
    driver.signal(signal.SIGSTOP)
    up.create("Pod", "one", driver.pod({"resourceClaimName": "c"}))
    state = Path(up.node["plugins"]).parent / "dra_manager_state"
    until(lambda: '\\"ClaimName\\":\\"c\\"' in state.read_text(), "the kubelet to call")
    driver.kill()
    until(lambda: up.events("FailedPrepareDynamicResources"), "the kubelet to say that the call failed")
    assert up.phase("one") == "Pending"
    driver.start()
    assert driver.shown("one") == driver.allocated("c")
    assert len(driver.specifications()) == 1


@pytest.mark.parametrize("driver", ["nvidia"], indirect=True)
def test_nvidias_driver_shows_the_gpus_of_its_host(driver: ForeignDriver) -> None:
    devices = driver.devices()
    assert sorted(each["attributes"]["uuid"]["string"] for each in devices.values()) == driver.up.uuids()
    roots = {each["attributes"].get("resource.kubernetes.io/pcieRoot", {}).get("string") for each in devices.values()}
    sysfs = Path(driver.up.node["sysfs"], "bus/pci/devices")
    buses = [each["attributes"]["resource.kubernetes.io/pciBusID"]["string"] for each in devices.values()]
    found = {next(part for part in (sysfs / bus).resolve().parts if part.startswith("pci0000")) for bus in buses}
    assert roots == ({None} if namespaces_lacking() else found)
