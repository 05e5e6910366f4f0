"""Devices by claims with Kubernetes' own scheduler, controllers and kubelets: the shipped scenarios with our driver,
and NVIDIA's, unmodified, in its place. Nodes need a containerd that knows CDI."""

import os
import shutil
from pathlib import Path

import pytest

from mews.harness.clusters.kind.tools import BASE_IMAGE, call
from tests.kind.with_claims import passes
from tests.kube.dra.programs import CDI_HOOK, NVIDIA
from tests.upstream.building import NotBuiltError

pytestmark = [pytest.mark.kind, pytest.mark.nightly]

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE.parents[1] / "scenarios" / "dra"
SPEED = 20.0
NAMES = (
    "01-one-gpu-by-claim",
    "02-two-pods-share-a-claim",
    "03-last-gpu",
    "04-selectors-and-alternatives",
    "05-job-with-a-template",
    "06-driver-killed",
    "07-kubelet-restart",
    "08-forced-deletion",
    "09-administrators-look",
)
IMAGE = f"mews.local/nvidia-dra-driver:{NVIDIA.module.version}"


@pytest.mark.parametrize("name", NAMES)
def test_our_driver_gives_real_pods_their_gpus(name, shared, tmp_path):
    passes(SCENARIOS / f"{name}.yaml", shared, tmp_path, speed=SPEED)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The driver's image, as Docker here knows it."""
    folder = tmp_path_factory.mktemp("image")
    shutil.copy(HERE / "nvidia" / "Dockerfile", folder)
    try:
        for program in (NVIDIA, CDI_HOOK):
            shutil.copy(program.build(), folder / program.name)
    except NotBuiltError as error:
        pytest.skip(str(error))
    base = os.environ.get(BASE_IMAGE)
    call(["docker", "build", "-t", IMAGE, *(["--build-arg", f"BASE={base}"] if base else []), str(folder)])
    yield IMAGE
    call(["docker", "image", "rm", IMAGE])


def test_nvidias_driver_gives_real_pods_their_gpus(driver, shared, tmp_path):
    assert driver in (HERE / "nvidia" / "driver.yaml").read_text()
    passes(HERE / "nvidia" / "scenario.yaml", shared, tmp_path, speed=SPEED)
