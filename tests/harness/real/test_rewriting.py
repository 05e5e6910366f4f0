"""What scenarios apply, as it reaches real nodes."""

import math
import subprocess
import sys

import pytest

from mews.harness.clusters.real.rewriting import Fitting
from mews.harness.clusters.real.systems import deployments
from mews.kube.emulated.kubelet.images import load_images

OURS = "mews.local/components:1"


@pytest.fixture
def fit():
    return Fitting(load_images(), OURS, {"host-1": "worker-7", "host-2": "host-2"}, 10.0, deployments())


def pod(*containers, **more):
    return {
        "kind": "Pod",
        "metadata": {"name": "a", **more.pop("metadata", {})},
        "spec": {"containers": list(containers), **more},
    }


def test_an_emulated_image_becomes_ours_with_the_command_it_stands_for(fit):
    given = pod({"name": "main", "image": "mews/gpu-check:1", "resources": {"limits": {"falcon.com/gpu": "5"}}})
    [container] = fit(given)["spec"]["containers"]
    assert container["image"] == OURS
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["command"][:2] == ["python3", "-c"]
    assert "NVIDIA_VISIBLE_DEVICES" in container["command"][2]
    assert container["resources"] == {"limits": {"falcon.com/gpu": "5"}}
    assert "command" not in given["spec"]["containers"][0], "what was given is another's"


def test_a_command_of_the_pods_own_stays(fit):
    [container] = fit(pod({"name": "main", "image": "busybox", "command": ["sh", "-c", "true"]}))["spec"]["containers"]
    assert (container["image"], container["command"]) == (OURS, ["sh", "-c", "true"])


def test_an_image_that_nobody_emulates_is_left_alone(fit):
    given = pod({"name": "main", "image": "registry.example.com/trainer:3"})
    assert fit(given) == given


def test_templates_are_fitted_too(fit):
    given = {"kind": "Deployment", "spec": {"template": pod({"name": "main", "image": "mews/gpu-hold"})}}
    assert fit(given)["spec"]["template"]["spec"]["containers"][0]["image"] == OURS


def test_a_training_jobs_tasks_become_real_trainers_that_take_as_long_as_the_played_ones(fit):
    task = pod({"name": "tensorflow", "image": "mews/tf-trainer", "env": [{"name": "TRAIN_STEPS", "value": "7"}]})
    task["metadata"]["annotations"] = {"mews.dev/train-steps": "900", "mews.dev/train-step-s": "0.45"}
    spec = {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": task}}}
    fitted = fit({"kind": "TFJob", "spec": spec})["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    [container] = fitted["containers"]
    assert (container["image"], container["command"][-1]) == (OURS, "mews.systems.kod2.trainer")
    assert container["env"] == [{"name": "TRAIN_STEPS", "value": "7"}, {"name": "TRAIN_PAUSE_S", "value": "0.05"}]
    for bad in (None, [], {"Worker": None}, {"Worker": {"template": None}}):
        assert fit({"kind": "TFJob", "spec": {"tfReplicaSpecs": bad}})["spec"] == {"tfReplicaSpecs": bad}


def test_an_images_variables_go_where_ours_takes_its_place_and_the_pods_win():
    of_image = {"simulate": {"duration_s": 1}, "env": {"A": "image", "B": "image"}}
    own = {"team/app": of_image, "team/real": {**of_image, "image": "registry.example.com/real"}}
    fit = Fitting(load_images(own=own), OURS, {}, 1.0, ())
    env = [{"name": "B", "value": "pod"}]
    ours, real = fit(
        pod({"name": "a", "image": "team/app", "env": env}, {"name": "b", "image": "team/real", "env": env})
    )["spec"]["containers"]
    assert ours["env"] == [*env, {"name": "A", "value": "image"}]
    assert real["env"] == env


def test_hosts_become_their_nodes_in_selectors(fit):
    given = pod({"name": "main", "image": "x"}, nodeSelector={"kubernetes.io/hostname": "host-1", "disk": "ssd"})
    assert fit(given)["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "worker-7", "disk": "ssd"}
    assert fit(pod({"name": "main", "image": "x"}, nodeName="host-1"))["spec"]["nodeName"] == "worker-7"


@pytest.mark.wall
def test_a_simulated_image_is_played_for_as_long_as_its_pod_says(fit):
    given = pod({"name": "main", "image": "mews/train"}, metadata={"annotations": {"mews.dev/duration-s": "2"}})
    [container] = fit(given)["spec"]["containers"]
    argv = [sys.executable, *container["command"][1:]]
    environment = {"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "training on GPU-1,GPU-2\n")
    assert "duration, code, term, obeys, log = 0.2, 0" in container["command"][2], "ten times as fast"


@pytest.mark.wall
def test_what_never_ends_by_itself_obeys_term(fit):
    [container] = fit(pod({"name": "main", "image": "registry.k8s.io/pause"}))["spec"]["containers"]
    assert load_images().find("registry.k8s.io/pause").simulate.duration_s == math.inf
    playing = subprocess.Popen([sys.executable, *container["command"][1:], "x"], stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        playing.wait(0.5)
    playing.terminate()
    assert playing.wait(5) == 0
    playing.stdout.close()


CLAIMS = {"claims": [{"name": "gpu"}]}


@pytest.mark.parametrize("foreign", [True, False])
def test_containers_with_claims_of_a_foreign_driver_get_what_the_library_reads(foreign):
    fit = Fitting(load_images(), OURS, {}, 1.0, foreign_claims=foreign)
    given = pod(
        {"name": "main", "image": "x", "resources": CLAIMS, "env": [{"name": "A", "value": "b"}]},
        {"name": "beside", "image": "x"},
        initContainers=[{"name": "first", "image": "x", "resources": CLAIMS}],
        volumes=[{"name": "host", "emptyDir": {}}],
    )
    spec = fit({"kind": "Job", "spec": {"template": given}})["spec"]["template"]["spec"]
    main, beside, first = *spec["containers"], *spec["initContainers"]
    if not foreign:
        assert spec == given["spec"]
        return
    told = [
        {"name": "MEWS_NVML_STATE", "value": "/var/lib/mews/host/this/nvml.state"},
        {"name": "MEWS_NVML_DEV", "value": "/dev"},
    ]
    assert main["env"] == [{"name": "A", "value": "b"}, *told] and first["env"] == told
    mount = {"name": "mews-host", "mountPath": "/var/lib/mews/host", "readOnly": True}
    assert main["volumeMounts"] == first["volumeMounts"] == [mount]
    assert beside == {"name": "beside", "image": "x"}
    volume = {"name": "mews-host", "hostPath": {"path": "/var/lib/mews/host", "type": "DirectoryOrCreate"}}
    assert spec["volumes"] == [{"name": "host", "emptyDir": {}}, volume]
    assert fit({"spec": spec})["spec"] == spec, "once"


def test_pods_without_claims_are_left_alone_beside_a_foreign_driver():
    fit = Fitting(load_images(), OURS, {}, 1.0, foreign_claims=True)
    given = pod({"name": "main", "image": "x", "resources": {"limits": {"cpu": 1}}})
    assert fit(given) == given
