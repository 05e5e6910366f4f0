from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mews.kube.deviceplugin.port import Mount
from mews.systems.kubecomp.config import ChassisConfig, KubeCompConfig, NodeConfig, Topology
from mews.systems.kubecomp.config_file import as_document, load_config
from mews.systems.kubecomp.errors import KubeCompConfigError

GOOD = """
chassis:
  - {name: A, index: 0, endpoint: "http://a:8000", dialect: h3api}
  - {name: B, index: 1, pool: pool-1, endpoint: "http://b:8000", dialect: resource-pool}
nodes:
  - {name: host-1, ports: {A: 48}}
  - {name: host-2, pool: pool-1, ports: {B: "0"}}
allocate:
  envs: {LD_LIBRARY_PATH: /opt/lib}
  mounts: [{container_path: /opt/lib, host_path: /var/lib/x, read_only: true}]
timing: {device_poll_s: 2}
"""


@pytest.fixture
def write(tmp_path: Path):
    def _write(text: str) -> Path:
        path = tmp_path / "kubecomp.yaml"
        path.write_text(text)
        return path

    return _write


def test_a_good_file_is_read_with_defaults_filled_in(write) -> None:
    config = load_config(write(GOOD))
    assert config.chassis[1] == ChassisConfig("B", 1, "pool-1", "http://b:8000", "resource-pool")
    assert config.nodes[0] == NodeConfig("host-1", {"A": "48"})
    assert config.allocate.mounts == (Mount("/opt/lib", "/var/lib/x", True),)
    assert config.timing.device_poll_s == 2.0
    assert config.resource == "falcon.com/gpu"
    assert config.resource_group == "falcon.com"


def test_a_configuration_written_out_reads_back_the_same(write) -> None:
    config = load_config(write(GOOD))
    assert load_config(write(yaml.safe_dump(as_document(config)))) == config


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("index: 0", "index: zero", "chassis[0].index: 'zero': must be a whole number"),
        ("index: 1", "index: 0", "chassis: '0': must be unique among them"),
        ("dialect: h3api", "dialect: soap", "chassis[0].dialect: 'soap': must be one of h3api, resource-pool"),
        ("name: A, ", "", "chassis[0].name: is missing; must be a text"),
        ("ports: {A: 48}", "ports: {B: 48}", "nodes[0].ports: 'B': must be a chassis of pool-0 (A)"),
        ("device_poll_s: 2", "device_poll_s: 0", "timing.device_poll_s: 0.0: must be above 0"),
        ("device_poll_s: 2", "pause: 2", "timing.pause: unknown field; must be one of device_poll_s, "),
        ("timing:", "polcy: both\ntiming:", "polcy: unknown field; must be one of chassis, nodes, resource, "),
        ("timing:", "policy: best\ntiming:", "policy: 'best': must be one of both, best-fit, least-demand, none"),
        ("timing:", "removal: gently\ntiming:", "removal: 'gently': must be one of orderly, surprise"),
        ("timing:", "resource: gpu\ntiming:", "resource: 'gpu': must be domain/name, for example falcon.com/gpu"),
        ("timing:", "partial: 1\ntiming:", "partial: 1: must be true or false"),
    ],
)
def test_an_error_is_one_line_with_file_place_value_and_what_is_allowed(write, old, new, says) -> None:
    path = write(GOOD.replace(old, new, 1))
    with pytest.raises(KubeCompConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_yaml_or_not_there_is_said_in_one_line(write, tmp_path: Path) -> None:
    for path in (write("chassis: ["), tmp_path / "none.yaml"):
        with pytest.raises(KubeCompConfigError, match=r"^\S+?(:\d+: not YAML|: cannot be read): [^\n]+$"):
            load_config(path)


def test_the_topology_knows_who_is_cabled_to_what() -> None:
    config = KubeCompConfig(
        chassis=(ChassisConfig("B", 1), ChassisConfig("A", 0), ChassisConfig("C", 2, "pool-1")),
        nodes=(NodeConfig("host-2", {"A": "0"}), NodeConfig("host-1", {"A": "48", "B": "48"})),
    )
    topology = Topology(config)
    assert topology.pools == ("pool-0", "pool-1")
    assert [chassis.name for chassis in topology.chassis_of("pool-0")] == ["A", "B"]
    assert [node.name for node in topology.nodes_of("pool-0")] == ["host-1", "host-2"]
    assert topology.node_on("B", "48") == "host-1"
    assert topology.node_on("B", "7") == topology.node_on("B", None) == ""
    assert topology.pool_of("host-2") == "pool-0"
    assert topology.pool_of("elsewhere") is None
    assert ChassisConfig("B", 1).gpuid("001300") == "1-001300"
