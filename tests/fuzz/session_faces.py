"""A live session: what the commands and the page of ``mews up --web`` ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mews.harness.catalogue.files import shipped
from mews.harness.clusters import open_cluster
from mews.harness.live.server import SessionServer
from mews.harness.live.session import LiveSession
from mews.harness.report.live_page import live_file
from mews.harness.scenario.loader import parse_scenario
from tests.fuzz.faces import address_of, as_json, on_a_loop
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent

SCENARIO = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: live}\nhardware: demo\n"


def page() -> list[Sent]:
    """Requests of a browser."""
    return [Sent("GET", "/"), Sent("GET", "/page.html"), Sent("GET", "/another.js"), Sent("HEAD", "/")]


def session(token: str) -> list[Sent]:
    """Requests of the commands."""
    headers = {"Authorization": f"Bearer {token}"}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "mews/train"}]}}
    steps: tuple[dict[str, Any], ...] = (
        {"apply": pod},
        {"delete": {"kind": "Pod", "name": "p"}},
        {"patch": {"kind": "Pod", "name": "p", "merge": {"metadata": {"labels": {"a": "b"}}}}},
        {"get": {"kind": "Pod", "name": "p"}},
        {"fault": {"add": {"kind": "slow", "factor": 2}}},
        {"fault": {"clear": "all"}},
        {"fault": None},
        {"chassis": {"edit": {"chassis": "A", "device": "000100", "port": None}}},
        {"wait": {"pod": {"name": "p", "phase": "Running"}}, "timeout": "10ms"},
        {"sleep": "10ms"},
    )
    return [
        *(
            Sent("GET", path, headers)
            for path in (
                "/v1/session",
                "/v1/status",
                "/v1/verdict",
                "/v1/journal",
                "/v1/journal?since=3",
                "/v1/hardware",
                "/v1/faults",
                "/v1/recording",
                "/v1/recording?name=a",
                "/v1/snapshot",
                "/v1/explain/pod/default/p",
                "/metrics/kubecomp",
            )
        ),
        *(as_json("POST", "/v1/steps", step, headers) for step in steps),
        as_json("POST", "/v1/snapshot", {"apiVersion": "mews/v1", "kind": "Snapshot", "objects": [pod]}, headers),
    ]


@contextmanager
def sessions() -> Iterator[list[Face]]:
    """A session beside its cluster, as ``mews up --web`` has one."""
    with on_a_loop(_open, _close) as (server, _):
        address = address_of(server.url)
        yield [
            Face("session with the token", address, session(server.token)),
            Face("session without it", address, session("another")),
            Face("page of a session as nobody", address, page()),
        ]


async def _open() -> tuple[SessionServer, LiveSession]:
    scenario = parse_scenario(SCENARIO, shipped("hardware", "demo").parent / "live.yaml")
    cluster = await open_cluster(scenario, seed=1)
    session = LiveSession("live", scenario, cluster)
    await session.start()
    server = SessionServer(session, live_file)
    await server.start()
    return server, session


async def _close(opened: tuple[SessionServer, LiveSession]) -> None:
    server, session = opened
    await server.close()
    await session.close()
    await session.cluster.close()
