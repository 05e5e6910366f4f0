"""The life of a kind cluster of ours, with stand-ins for docker and kind that write down what they are asked."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import pytest
import yaml

from mews.harness.cli import exit_code
from mews.harness.clusters.kind.cluster import KindCluster
from mews.harness.clusters.kind.features import ClusterFeatures, kind_config
from mews.harness.clusters.kind.image import build
from mews.harness.errors import RequirementError
from mews.harness.leftovers import RuntimeFolder, born, kept_kind_clusters, sweep_kind
from mews.project import DOCUMENTATION

KIND = """#!/bin/sh
echo "kind $*" >> "$LOG"
case "$1 $2" in
  "create cluster") echo "$4" >> "$CLUSTERS"; touch "$8";;
  "delete cluster") grep -v "^$4$" "$CLUSTERS" > "$CLUSTERS.new"; mv "$CLUSTERS.new" "$CLUSTERS";;
  "get clusters") cat "$CLUSTERS";;
esac
exit 0
"""
DOCKER = """#!/bin/sh
echo "docker $*" >> "$LOG"
case "$*" in
  *--for=create*host-3) exit 1;;
  *"get nodes"*) echo "host-1 4"; echo "host-2 10";;
  *journalctl*) echo "inotify_init: too many open files";;
esac
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """What the programs were asked so far."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("kind", KIND), ("docker", DOCKER)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (tmp_path / "clusters").touch()
    (tmp_path / "log").touch()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("CLUSTERS", str(tmp_path / "clusters"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("MEWS_COMPONENT_IMAGE", "registry.example.com/mews:1")

    def count(what):
        return sum(what in line for line in (tmp_path / "log").read_text().splitlines())

    return count


def clusters(tmp_path):
    return (tmp_path / "clusters").read_text().split()


def test_one_cluster_and_one_load_serve_several_scenarios_and_nothing_is_left(asked, tmp_path):
    cluster = KindCluster()
    target = cluster.target(["host-1", "host-2"])
    assert target.nodes == {"host-1": "host-1", "host-2": "host-2"}
    assert cluster.target(["host-2"]) == target
    assert (asked("kind create cluster"), asked("kind load docker-image")) == (1, 1)
    assert clusters(tmp_path) == [f"mews-{os.getpid()}"]
    assert cluster.container("host-2") == f"mews-{os.getpid()}-worker2"
    cluster.close()
    assert clusters(tmp_path) == []
    assert kept_kind_clusters() == []


def test_nodes_get_as_many_processors_as_their_hosts_once(asked, tmp_path):
    cluster = KindCluster()
    cluster.target(["host-1", "host-2"], {"host-1": 10, "host-2": 10})
    cluster.target(["host-1", "host-2"], {"host-1": 10, "host-2": 64})
    assert (asked("systemctl restart kubelet"), asked("status.capacity.cpu}=64")) == (3, 1)
    cluster.close()


def test_a_kubelet_that_counts_right_is_not_restarted_when_its_cluster_is_used_again(asked, tmp_path):
    first = KindCluster(keep=True)
    first.target(["host-1", "host-2"], {"host-1": 10, "host-2": 10})
    first.close()
    assert asked("systemctl restart kubelet") == 2
    again = KindCluster()
    again.target(["host-1", "host-2"], {"host-1": 10, "host-2": 10})
    assert asked("systemctl restart kubelet") == 3, "host-2 is told to have ten already"
    again.close()


def test_an_image_of_the_users_is_loaded_once_until_its_content_changes_and_only_if_docker_has_it(asked, tmp_path):
    (tmp_path / "identity").write_text("sha256:1")
    docker = tmp_path / "bin" / "docker"
    inspect = f'case "$*" in *inspect*mine:1) cat {tmp_path}/identity;; *inspect*) exit 1;; esac'
    docker.write_text(DOCKER + inspect)
    for keep in (True, False):
        cluster = KindCluster(keep=keep)
        cluster.target(["host-1"])
        assert cluster.bring(["mine:1", "theirs:1"]) == {"mine:1": "sha256:1"}
        assert cluster.bring(["mine:1"]) == {"mine:1": "sha256:1"}
        cluster.close() if keep else None
    assert (asked("mine:1"), asked("load docker-image")) == (5, 2)
    (tmp_path / "identity").write_text("sha256:2")
    assert cluster.bring(["mine:1"]) == {"mine:1": "sha256:2"}
    assert asked("load docker-image") == 3
    cluster.close()


def test_a_kept_cluster_is_used_again_and_mews_down_removes_it(asked, tmp_path):
    first = KindCluster(keep=True)
    first.target(["host-1"])
    first.close()
    assert len(clusters(tmp_path)) == 1
    again = KindCluster(keep=True)
    again.target(["host-1"])
    assert (asked("kind create cluster"), asked("kind load docker-image")) == (1, 1)
    assert kept_kind_clusters() == [], "it has an owner again"
    again.close()
    assert len(sweep_kind()[0]) == 1
    assert clusters(tmp_path) == []


def test_a_scenario_with_more_hosts_gets_a_new_cluster(asked, tmp_path):
    cluster = KindCluster()
    cluster.target(["host-1"])
    cluster.target(["host-1", "host-2"])
    assert (asked("kind create cluster"), asked("kind delete cluster")) == (2, 1)
    cluster.close()


def test_a_kubelet_that_did_not_start_is_told_with_what_to_do(asked, tmp_path):
    cluster = KindCluster()
    with pytest.raises(
        RequirementError, match=r"kubelet of host-3 did not start: .* raise fs.inotify.max_user_instances"
    ):
        cluster.target(["host-1", "host-3"])
    cluster.close()
    assert clusters(tmp_path) == []


def test_a_cluster_that_cannot_be_created_leaves_nothing_and_says_why(asked, tmp_path):
    program = tmp_path / "bin" / "kind"
    program.write_text(KIND.replace("exit 0", 'case "$1" in create) echo "no space left" >&2; exit 1;; esac'))
    with pytest.raises(RequirementError, match=r"kind create cluster .* no space left"):
        KindCluster().target(["host-1"])
    assert asked("kind delete cluster") == 1
    assert kept_kind_clusters() == []


SLOW = KIND.replace("exit 0", 'case "$1" in create) echo $$ > "$LOG.pid"; exec sleep 600;; esac')


def creating(tmp_path):
    """The process that creates the cluster, once it runs."""
    for _ in range(600):
        with contextlib.suppress(OSError, ValueError):
            return int((tmp_path / "log.pid").read_text())
        threading.Event().wait(0.05)
    raise AssertionError("nothing was created")


def placed(cluster, said):
    """Ask for a place that cannot be had, and note why."""
    try:
        cluster.target(["host-1"])
    except RequirementError as error:
        said.append(str(error))


def test_an_interrupt_ends_the_creation_at_once_and_leaves_nothing(asked, tmp_path):
    (tmp_path / "bin" / "kind").write_text(SLOW)
    cluster, said = KindCluster(), []
    thread = threading.Thread(target=placed, args=(cluster, said))
    thread.start()
    creating(tmp_path)
    cluster.interrupt()
    thread.join(60)
    assert len(said) == 1
    assert (asked("kind create cluster"), asked("kind delete cluster")) == (1, 1)
    assert kept_kind_clusters() == []
    assert not list((tmp_path / "state").rglob("kind.json"))


BUILDING = (
    DOCKER
    + """case "$1" in
  image) [ "$2" = ls ] || echo sha256:1;;
  run) echo "3.12 x86_64";;
  build) echo $$ > "$LOG.pid"; exec sleep 600;;
esac
"""
)


def test_an_interrupt_ends_the_building_of_the_image_too(asked, tmp_path, monkeypatch):
    monkeypatch.delenv("MEWS_COMPONENT_IMAGE")
    monkeypatch.setattr(build, "_wheels", lambda *_: tmp_path / "bin")
    monkeypatch.setattr(build, "copy_to", lambda _: None)
    (tmp_path / "bin" / "docker").write_text(BUILDING)
    cluster, said = KindCluster(), []
    thread = threading.Thread(target=placed, args=(cluster, said))
    thread.start()
    pid = creating(tmp_path)
    cluster.interrupt()
    thread.join(60)
    assert born(pid) == ""
    assert len(said) == 1
    cluster.close()
    assert clusters(tmp_path) == []


def test_of_two_runs_that_make_the_same_wheels_at_once_both_have_them(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    begun = []

    def other_is_quicker(argv, **_):
        made = Path(argv[argv.index("--dest" if "--dest" in argv else "--wheel-dir") + 1])
        made.mkdir()
        (made / "a.whl").touch()
        begun.append(made)
        if len(begun) == 1:
            assert build._wheels("3.99", "x86_64", {}).is_dir()

    monkeypatch.setattr(build, "call", other_is_quicker)
    folder = build._wheels("3.99", "x86_64", {})
    assert [path.name for path in folder.iterdir()] == ["a.whl"]
    assert len(begun) == 2


def test_a_cache_that_cannot_be_made_is_told(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(
        RequirementError, match="/dev/null/mews: cannot be written: Not a directory; set XDG_CACHE_HOME"
    ):
        build._wheels("3.12", "x86_64", {})


ASKING = KIND.replace("exit 0", 'case "$1" in create) docker run it & echo $$ > "$LOG.pid"; exec sleep 600;; esac')
GIVING = DOCKER + 'case "$1" in run) sleep 1; echo "docker gave" >> "$LOG";; esac\n'


def test_a_container_that_docker_was_asked_for_is_there_before_the_cluster_is_deleted(asked, tmp_path):
    (tmp_path / "bin" / "kind").write_text(ASKING)
    (tmp_path / "bin" / "docker").write_text(GIVING)
    cluster = KindCluster()
    thread = threading.Thread(target=placed, args=(cluster, []))
    thread.start()
    creating(tmp_path)
    while not asked("docker run"):
        threading.Event().wait(0.05)
    cluster.interrupt()
    thread.join(60)
    done = [line.split()[:2] for line in (tmp_path / "log").read_text().splitlines()]
    assert done.index(["docker", "gave"]) < done.index(["kind", "delete"])


def test_a_cluster_whose_creator_was_killed_is_not_used_and_its_creation_is_ended(asked, tmp_path):
    (tmp_path / "bin" / "kind").write_text(SLOW)
    code = "from mews.harness.clusters.kind.cluster import KindCluster; KindCluster().target(['host-1'])"
    creator = subprocess.Popen([sys.executable, "-c", code])
    pid = creating(tmp_path)
    creator.kill()
    creator.wait()
    (tmp_path / "bin" / "kind").write_text(KIND)
    cluster = KindCluster()
    cluster.target(["host-1"])
    cluster.close()
    assert len(clusters(tmp_path)) == 1, "the half one is still there"
    assert len(sweep_kind()[0]) == 1
    assert clusters(tmp_path) == []
    assert born(pid) == ""


def test_a_cluster_that_somebody_else_has_made_under_this_name_is_not_touched(asked, tmp_path):
    (tmp_path / "clusters").write_text(f"mews-{os.getpid()}\n")
    cluster = KindCluster()
    cluster.target(["host-1"])
    assert clusters(tmp_path) == [f"mews-{os.getpid()}", f"mews-{os.getpid()}-2"]
    cluster.close()
    assert clusters(tmp_path) == [f"mews-{os.getpid()}"]


def test_a_cluster_whose_kubelets_did_not_start_is_not_used_by_the_next_scenario(asked, tmp_path):
    cluster = KindCluster()
    for _ in range(2):
        with pytest.raises(RequirementError, match="the kubelet of host-3 did not start"):
            cluster.target(["host-1", "host-3"])
        assert clusters(tmp_path) == []


def test_a_kept_cluster_is_used_by_one_run_only(asked, tmp_path):
    first = KindCluster(keep=True)
    first.target(["host-1"])
    first.close()
    (folder,) = kept_kind_clusters()
    assert RuntimeFolder.claim(folder) is not None
    assert RuntimeFolder.claim(folder) is None
    assert sweep_kind() == ([], [])


def test_a_cluster_that_cannot_be_deleted_is_told_and_found_again(asked, tmp_path, capsys):
    first = KindCluster(keep=True)
    first.target(["host-1"])
    first.close()
    (folder,) = kept_kind_clusters()
    (folder / "kind.json").write_text("garbage")
    kind = (tmp_path / "bin" / "kind").read_text()
    (tmp_path / "bin" / "kind").write_text("#!/bin/sh\necho no such socket >&2\nexit 1\n")
    assert exit_code(["down"]) == 3
    told = f"{folder}: kind cluster mews-{os.getpid()} could not be deleted: no such socket (see {DOCUMENTATION})\n"
    assert capsys.readouterr().err == told
    (tmp_path / "bin" / "kind").write_text(kind)
    assert exit_code(["down"]) == 0
    assert clusters(tmp_path) == []
    assert not folder.exists()


def test_what_is_no_cluster_any_more_is_not_used_again(asked, tmp_path):
    first = KindCluster(keep=True)
    first.target(["host-1"])
    first.close()
    (tmp_path / "clusters").write_text("")
    again = KindCluster()
    again.target(["host-1"])
    assert asked("kind create cluster") == 2
    again.close()


def test_nodes_bear_the_names_of_hosts():
    config = yaml.safe_load(kind_config(["host-1", "gpu-7"]))
    names = [
        yaml.safe_load(patch)["nodeRegistration"]["name"]
        for node in config["nodes"][1:]
        for patch in node["kubeadmConfigPatches"]
    ]
    assert [node["role"] for node in config["nodes"]] == ["control-plane", "worker", "worker"]
    assert names == ["host-1", "gpu-7"]
    assert json.dumps(config)


FEATURES = ClusterFeatures(("DRADeviceTaints",), ("resource.k8s.io/v1alpha3",), {"host-1": "fsas-cdi://m-1"})
OWN_PROVIDER = (
    'case "$*" in *providerID*host-1) printf "fsas-cdi://m-1";; *providerID*) printf "kind://docker/a";; esac'
)


def test_gates_api_versions_and_provider_ids_stand_in_kinds_own_file():
    plain, config = yaml.safe_load(kind_config(["host-1"])), yaml.safe_load(kind_config(["host-1", "host-2"], FEATURES))
    assert "featureGates" not in plain and "runtimeConfig" not in plain
    assert config["featureGates"] == {"DRADeviceTaints": True}
    assert config["runtimeConfig"] == {"resource.k8s.io/v1alpha3": "true"}
    first, second = (
        yaml.safe_load(each["kubeadmConfigPatches"][0])["nodeRegistration"] for each in config["nodes"][1:]
    )
    assert first == {"name": "host-1", "kubeletExtraArgs": {"provider-id": "fsas-cdi://m-1"}}
    assert second == {"name": "host-2"}


def test_a_cluster_with_other_features_is_made_anew_and_one_with_the_same_is_used_again(asked, tmp_path):
    (tmp_path / "bin" / "docker").write_text(DOCKER + OWN_PROVIDER)
    first = KindCluster(keep=True)
    first.target(["host-1"])
    first.target(["host-1"], features=FEATURES)
    first.close()
    assert asked("kind create cluster") == 2
    again = KindCluster()
    again.target(["host-1"], features=FEATURES)
    assert asked("kind create cluster") == 2
    again.target(["host-1"])
    assert asked("kind create cluster") == 3
    again.close()


def test_a_node_that_keeps_kinds_own_provider_id_ends_the_creation(asked, tmp_path):
    (tmp_path / "bin" / "docker").write_text(DOCKER + OWN_PROVIDER)
    strange = ClusterFeatures(provider_ids={"host-2": "fsas-cdi://m-2"})
    with pytest.raises(RequirementError, match=r"node host-2 has the provider ID 'kind://docker/a', not 'fsas-cdi://m"):
        KindCluster().target(["host-1", "host-2"], features=strange)
    assert clusters(tmp_path) == []


def test_programs_are_copied_to_the_control_plane_once_until_they_change(asked, tmp_path):
    program = tmp_path / "cdd"
    program.write_text("one")
    cluster = KindCluster()
    cluster.target(["host-1"])
    first = cluster.bring_programs({"cdd": program})
    assert cluster.bring_programs({"cdd": program}) == first
    assert (asked("docker cp --follow-link"), asked("chmod 755 /opt/mews/programs/cdd")) == (1, 1)
    program.write_text("two")
    assert cluster.bring_programs({"cdd": program}) != first
    assert asked("docker cp --follow-link") == 2
    with pytest.raises(RequirementError, match="gone: cannot be read: No such file"):
        cluster.bring_programs({"gone": tmp_path / "gone"})
    cluster.close()


PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"
LEFT_OUT = {"cryptography", "google-re2", "pytest", "rich", "typer"}
"""What only the command line, certificates, inventories and tests need: no component in a container imports it."""


def test_the_image_of_components_has_all_dependencies_but_those_that_only_the_outside_needs():
    declared = {
        line.partition(">=")[0]: line for line in tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    }
    lines = (Path(build.__file__).parent / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = {line.partition(">=")[0]: line for line in lines if not line.startswith("#")}
    assert declared.keys() - wanted.keys() == LEFT_OUT
    assert {name: line for name, line in wanted.items() if name in declared and line != declared[name]} == {}
