"""A pod's resolv.conf, as the kubelet makes it of its policy, its spec and the machine's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.resolver_files import ResolverConfig, read, resolver_config, resolver_file

MACHINES = "# of the machine\nsearch old\nnameserver 192.0.2.1\nsearch lab.example. .\noptions ndots:2 rotate\n"


def pod(policy: str = "ClusterFirst", **config: Any) -> dict[str, Any]:
    return {"spec": {"dnsPolicy": policy, "dnsConfig": config}}


def test_a_machines_file_is_read_as_the_kubelet_reads_it() -> None:
    expected = ResolverConfig(("192.0.2.1",), ("lab.example", "."), {"ndots": "2", "rotate": ""})
    assert read(MACHINES) == expected
    assert read(expected.text()) == expected


@pytest.mark.parametrize("policy", ["Default", "ClusterFirst", "ClusterFirstWithHostNet"])
def test_what_a_pod_asks_for_comes_after_the_machines_and_its_options_win(policy: str) -> None:
    asked = pod(
        policy,
        nameservers=["192.0.2.9", "192.0.2.1"],
        searches=["team.example", "lab.example"],
        options=[{"name": "ndots", "value": "5"}, {"name": "edns0"}],
    )
    assert resolver_config(asked, MACHINES).text() == (
        "nameserver 192.0.2.1\nnameserver 192.0.2.9\nsearch lab.example . team.example\noptions ndots:5 rotate edns0\n"
    )


def test_without_a_policy_there_is_nothing_but_what_the_pod_asks_for() -> None:
    assert resolver_config(pod("None", nameservers=["192.0.2.9"]), MACHINES).text() == "nameserver 192.0.2.9\n"


def test_no_more_is_written_than_a_resolver_reads() -> None:
    many = pod("None", nameservers=[f"192.0.2.{n}" for n in range(4)], searches=[f"{n:0100}" for n in range(40)])
    lines = resolver_config(many, "").text().splitlines()
    assert [line.split()[0] for line in lines] == ["nameserver"] * 3 + ["search"]
    assert len(lines[-1].removeprefix("search ")) <= 2048 < len(lines[-1]) + 101


def test_a_pod_that_says_nothing_has_the_machines_file(tmp_path: Path) -> None:
    assert resolver_file(pod(), tmp_path) is None
    assert not list(tmp_path.iterdir())
    written = resolver_file(pod("None", nameservers=["192.0.2.9"]), tmp_path / "uid")
    assert written is not None
    assert written.read_text() == "nameserver 192.0.2.9\n"
