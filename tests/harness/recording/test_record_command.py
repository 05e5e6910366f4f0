"""`mews record` of clusters: what is watched, and what is refused before anything is."""

import asyncio
import json
import socket

import pytest

import mews.testing
from mews.harness.cli import exit_code
from mews.harness.clock import EPOCH_S
from mews.harness.errors import RequirementError
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.recording.chassis_polls import ChassisPolls, WatchedChassis
from mews.harness.recording.clocks import server_offset
from mews.harness.recording.cluster_watch import ClusterWatch
from mews.harness.recording.inference import recorded_files
from mews.harness.recording.live import watched
from mews.kube.api.errors import ForbiddenError
from mews.kube.api.resources import PODS, SECRETS
from mews.kube.clock import Clock
from tests.harness.live.sessions import a_pod, in_session


class ReadOnly:
    """A KubeApi of which only what changes nothing may be called; ``refused``: plurals that may not be listed."""

    def __init__(self, kube, refused=()):
        self._kube = kube
        self._refused = refused
        self.asked = set()

    async def discovery(self):
        return await self._kube.discovery()

    async def list(self, resource, **options):
        self.asked.add(resource)
        if resource.plural in self._refused:
            raise ForbiddenError(f"{resource.plural} is forbidden")
        return await self._kube.list(resource, **options)

    def watch(self, resource, **options):
        self.asked.add(resource)
        return self._kube.watch(resource, **options)


async def recorded(session, *, for_s=30.0, refused=(), stop=None, play=None):
    now = Clock(EPOCH_S).now
    kube, stop, shown = ReadOnly(session.cluster.kube, refused), stop or asyncio.Event(), []
    task = asyncio.create_task(
        watched(kube, "url", [], for_s=for_s, now=now, stop=stop, progress=lambda *seen: shown.append(seen))
    )
    if play is not None:
        await play(session)
    return await task, kube, shown


async def a_pod_comes(session):
    await asyncio.sleep(5)
    await session.cluster.kube.create(PODS, a_pod("one", 1), namespace="default", field_manager="kubectl")


def test_pods_that_come_while_it_is_watched_are_seen_and_secrets_are_never_asked_for():
    async def play(session):
        return await recorded(session, play=a_pod_comes)

    seen, kube, shown = in_session(play)
    assert {each.key[2] for each in seen.objects if each.key[0] == "Pod"} == {"one"}
    assert {each.key[2] for each in seen.objects if each.key[0] == "Node"} == {"host-1", "host-2", "host-3"}
    assert SECRETS not in kube.asked
    assert seen.ended - seen.began == pytest.approx(30, abs=1)
    assert "1 pods" in shown[-1][1]
    files = recorded_files(seen, name="lab", hardware_file="h.yaml")
    assert [step["apply"]["metadata"]["name"] for step in files.scenario["steps"] if "apply" in step] == ["one"]


def test_a_missing_permission_is_a_note_and_none_at_all_is_what_the_environment_lacks():
    async def play(session):
        seen, _, _ = await recorded(session, for_s=2.0, refused=("events", "jobs"))
        with pytest.raises(RequirementError, match="may list neither nodes nor pods"):
            await recorded(session, for_s=2.0, refused=("nodes", "pods"))
        return seen

    notes = in_session(play).notes
    assert [note for note in notes if "may not list events (HTTP 403)" in note]
    assert [note for note in notes if "may not list jobs (HTTP 403)" in note]


def test_it_ends_early_when_asked_to():
    async def stopped(session):
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(7, stop.set)
        return await recorded(session, for_s=600.0, stop=stop)

    seen, _, _ = in_session(stopped)
    assert seen.ended - seen.began == pytest.approx(7, abs=1)


def test_a_machine_whose_clock_is_off_is_corrected_by_new_objects():
    assert server_offset([0.4, 0.6, 0.5]) == server_offset([]) == 0.0
    assert server_offset([120.4, 120.6, 120.5]) == pytest.approx(-120, abs=0.1)


def test_a_watch_of_nothing_served_lists_what_is_there():
    async def play(session):
        watch = ClusterWatch(session.cluster.kube, asyncio.get_running_loop().time)
        await watch.open("url")
        return watch

    assert in_session(play).notes == []


def opened(url, **more):
    async def main():
        polls = ChassisPolls(WatchedChassis("A", url, **more), asyncio.get_running_loop().time)
        dialect = await polls.open()
        await polls.look()
        return dialect, polls

    return asyncio.run(main())


@pytest.mark.wall
def test_the_dialect_is_found_out_and_only_changes_are_kept():
    with mews.testing.chassis(in_process=True, speed=1000) as pool:
        urls = pool.urls["A"]
        dialect, polls = opened(urls["h3api"])
        assert (dialect, len(polls.readings), polls.lost) == ("h3api", 1, [])
        assert opened(urls["resource-pool"], dialect="resource-pool")[0] == "resource-pool"
        assert polls.readings[0].ports == ("1", "2", "3")
        with pytest.raises(RequirementError, match="requires an account"):
            opened(urls["redfish"], insecure=True)


@pytest.mark.wall
def test_a_chassis_that_is_not_there_or_is_something_else_is_lacking():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(RequirementError, match="no chassis answers there"):
            opened(f"http://127.0.0.1:{free.getsockname()[1]}")


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, server={"server": "https://127.0.0.1:9"}, user={"token": "x"})
    return path


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--kubeconfig K --from .", 2, "--kubeconfig --from: only one of them"),
        ("--name lab --from .", 2, "--name --from: only one of them"),
        ("--kubeconfig K", 2, "--kubeconfig: requires --out FILE"),
        ("--from T", 2, "--from: requires --out FILE"),
        ("--kubeconfig K --out -", 2, "--out -: must be a file"),
        ("--kubeconfig K --out T/no/x.yaml", 2, "no folder"),
        ("--kubeconfig K --out T", 2, "is a folder"),
        ("--kubeconfig K --out T/x.yaml --for 0", 2, "--for 0: must be above 0"),
        ("--kubeconfig K --out T/x.yaml --for abc", 2, "--for abc: must be a span of time"),
        ("--kubeconfig K --out T/x.yaml --for 900h", 2, "at most 7 days"),
        ("--kubeconfig K --out T/x.yaml --dialect redfish", 2, "--dialect: applies only to --chassis URL"),
        ("--kubeconfig K --out T/x.yaml --chassis http://h --dialect h3", 2, "--dialect h3: must be one of"),
        ("--kubeconfig K --out T/x.yaml --chassis box", 2, "box: must be http://HOST"),
        ("--kubeconfig K --out T/x.yaml --chassis http://u:p@h", 2, "credentials come from"),
        ("--kubeconfig K --out T/x.yaml --context other", 2, "--context other: must be one of mews"),
        ("--kubeconfig T/none --out T/x.yaml", 2, "none: no such file"),
        ("--kubeconfig K --out T/x.yaml --for 1s", 3, "the cluster cannot be read"),
        ("--from T/none --out T/x.yaml", 2, "must be a folder of collected files, or an included recording: lab-bug"),
        ("--from lab-bug --out T/x.yaml --for 5m", 2, "--for: applies only to --kubeconfig"),
        ("--from lab-bug --out T/x.yaml --chassis http://h", 2, "--chassis: applies only to --kubeconfig"),
        ("--redact", 2, "--redact: applies only to --kubeconfig and --from"),
        ("--chassis http://h", 2, "--chassis: applies only to --kubeconfig"),
    ],
)
def test_wrong_words_are_one_line(words, code, message, kubeconfig, tmp_path, capsys):
    typed = words.replace("T/", f"{tmp_path}/").replace("K ", f"{kubeconfig} ").split()
    typed = [str(kubeconfig) if word == "K" else str(tmp_path) if word == "T" else word for word in typed]
    assert exit_code(["record", *typed]) == code
    said = capsys.readouterr().err.splitlines()
    assert message in said[-1]
    assert not (tmp_path / "x.yaml").exists()


def test_a_hardware_file_that_was_not_recorded_is_kept_and_a_recorded_one_replaced(tmp_path, capsys):
    out, beside = tmp_path / "x.yaml", tmp_path / "x-hardware.yaml"
    words = ["record", "--from", "lab-bug", "--out", str(out)]
    assert exit_code(words) == 0
    out.write_text("mine, and named")
    assert exit_code(words) == 0
    assert "kind: Scenario" in out.read_text()
    beside.write_text("mine, and not named")
    assert exit_code(words) == 2
    assert "exists and was not recorded" in capsys.readouterr().err
    assert beside.read_text() == "mine, and not named"
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["x-hardware.yaml", "x.yaml"]'
