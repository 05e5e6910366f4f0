"""NVIDIA's DRA driver, unmodified, on a node with a divided GPU: it offers MIG devices in place of the GPU, and a pod
sees the one that its claim has.

Source: cmd/gpu-kubelet-plugin of sigs.k8s.io/dra-driver-nvidia-gpu v0.4.1 (nvlib.go, mig.go); class ``mig.nvidia.com``
of its chart.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from tests.kube.dra.foreign import ForeignDriver, Up, nvidia, session, until
from tests.kube.dra.programs import NVIDIA

pytestmark = pytest.mark.wall

CLASS = "mig.nvidia.com"
SELECTOR = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'"
GPUS = 2


@pytest.fixture(scope="module")
def hardware(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A server with two H100."""
    devices = [
        {"id": f"{n:02d}", "uuid": f"GPU-00000000-0000-4000-8000-{n:012d}", "kind": "GPU", "model": "H100-SXM",
         "serial": f"13200{n:08d}", "port": "1"}
        for n in range(1, GPUS + 1)
    ]  # fmt: skip
    document = {
        "apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "pair"}, "profile": "instant",
        "hosts": [{"name": "host-1", "cpus": 64, "memory_mib": 1048576}],
        "chassis": [{"name": "A", "index": 0, "slots": GPUS, "ports": {"1": "host-1"}, "devices": devices}],
    }  # fmt: skip
    path = tmp_path_factory.mktemp("hardware") / "pair.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


@pytest.fixture(scope="module")
def up(hardware: str) -> Iterator[Up]:
    NVIDIA.needed()  # skips where it is not built
    if reason := namespaces_lacking():
        pytest.skip(f"the driver's /proc cannot be the host's: {reason}")
    with session(hardware) as started:
        if started.node["driver_root"] is None:
            pytest.skip("the NVML library is not compiled here, and there is no C compiler")
        yield started


def smi(up: Up, *words: str) -> str:
    """What nvidia-smi prints on the host."""
    environment = {**os.environ, **up.node["env"]}
    environment.pop("NVIDIA_VISIBLE_DEVICES", None)
    done = subprocess.run(["nvidia-smi", *words], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def driver(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignDriver]:
    """The driver, started when the first GPU has two devices and the second is whole."""
    smi(up, "-i", "0", "-mig", "1")
    smi(up, "mig", "-i", "0", "-cgi", "3g.40gb,1g.10gb", "-C")
    log: Path = tmp_path_factory.mktemp("driver") / "log"
    made = nvidia(up, log)
    made.seen = lambda text: re.findall(r"\(UUID: (MIG-[0-9a-f-]+)\)$", text, re.MULTILINE)
    made.start()
    up.create("DeviceClass", CLASS, {"selectors": [{"cel": {"expression": SELECTOR}}]})
    try:
        yield made
    finally:
        made.kill()


def kinds(driver: ForeignDriver) -> dict[str, Mapping[str, Any]]:
    """UUID -> attributes of each device."""
    found = [each["attributes"] for each in driver.devices().values()]
    return {str(each["uuid"]["string"]): each for each in found}


def test_a_divided_gpu_is_offered_by_its_devices_and_a_whole_one_as_it_is(driver: ForeignDriver) -> None:
    devices = kinds(driver)
    listed = re.findall(r"\(UUID: (MIG-[0-9a-f-]+)\)", smi(driver.up, "-L"))
    assert len(listed) == 2
    parts = {uuid: each for uuid, each in devices.items() if each["type"]["string"] == "mig"}
    assert sorted(parts) == sorted(listed)
    assert sorted(each["profile"]["string"] for each in parts.values()) == ["1g.10gb", "3g.40gb"]
    assert {each["parentUUID"]["string"] for each in parts.values()} == {driver.up.uuids()[0]}
    assert [uuid for uuid in devices if uuid not in parts] == [driver.up.uuids()[1]]


def test_a_pod_sees_the_mig_device_of_its_claim_and_no_other(driver: ForeignDriver) -> None:
    up = driver.up
    selector = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"}}
    request = {"deviceClassName": CLASS, "selectors": [selector]}
    up.create("ResourceClaim", "part", {"devices": {"requests": [{"name": "gpu", "exactly": request}]}})
    up.create("Pod", "one", driver.pod({"resourceClaimName": "part"}))
    shown = driver.shown("one")
    assert shown == driver.allocated("part")
    assert kinds(driver)[shown[0]]["profile"]["string"] == "3g.40gb"
    assert up.log("one").count("GPU 0: ") == 1 and "GPU 1: " not in up.log("one")
    up.create("ResourceClaim", "second", {"devices": {"requests": [{"name": "gpu", "exactly": request}]}})
    up.create("Pod", "two", driver.pod({"resourceClaimName": "second"}))
    until(lambda: any("cannot allocate" in text for text in up.events("FailedScheduling")), "a refusal")
    assert up.phase("two") == "Pending"
    for kind, name in (("Pod", "one"), ("Pod", "two"), ("ResourceClaim", "part"), ("ResourceClaim", "second")):
        up.delete(kind, name)
