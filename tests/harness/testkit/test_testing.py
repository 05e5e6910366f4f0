"""``mews.testing``: what unittest, notebooks and scripts use."""

import json
import subprocess
import sys
import typing
import unittest
import urllib.request

import pytest

import mews.testing


def ask(url, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.fixture
def pool():
    with mews.testing.chassis(in_process=True, tls=False, speed=1000) as pool:
        yield pool


def test_all_names_are_there_documented_and_typed():
    for name in mews.testing.__all__:
        assert getattr(mews.testing, name).__doc__
    for function in (mews.testing.chassis, mews.testing.hosts, mews.testing.cluster, mews.testing.run):
        names = {each: getattr(mews.testing, each) for each in mews.testing._FROM}
        assert "return" in typing.get_type_hints(
            function.__wrapped__ if hasattr(function, "__wrapped__") else function, localns=names
        )
    with pytest.raises(AttributeError, match="has no attribute 'chasis'; it has"):
        mews.testing.chasis  # noqa: B018


def test_importing_it_imports_nothing_heavy():
    code = (
        "import sys; before = set(sys.modules); import mews.testing;"
        "print(sorted(m for m in set(sys.modules) - before if m.partition('.')[0] in"
        " ('pydantic', 'yaml', 'aiohttp', 'grpc', 'flask', 'kubernetes')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.wall
def test_each_request_of_a_client_is_logged_with_its_answer_in_every_dialect(pool):
    urls = pool.urls["A"]
    assert ask(urls["h3api"] + "/h3api/v1/resources")[0] == 200
    seen = pool.requests.assert_requested("GET", "/h3api/v1/resources", status=200, times=1, dialect="h3api")
    assert json.loads(seen.answer)
    account = pool.accounts["redfish"]
    login = {"UserName": account["user"], "Password": account["password"]}
    assert ask(urls["redfish"] + "/redfish/v1/SessionService/Sessions", "POST", login)[0] == 201
    session = pool.requests.assert_requested("POST", "*/Sessions", dialect="redfish", status=201)
    assert session.json() == {"UserName": "admin", "Password": "***"}
    assert account["password"] not in str(list(pool.requests))
    pool.requests.clear()
    assert len(pool.requests) == 0


@pytest.mark.wall
def test_a_dropped_connection_is_a_request_without_a_status(pool):
    pool.fault("A", "dropped-connection", count=1)
    with pytest.raises((ConnectionError, urllib.error.URLError)):
        ask(pool.urls["A"]["h3api"] + "/h3api/v1/resources")
    pool.requests.assert_requested("GET", status=None)


@pytest.mark.wall
def test_devices_are_moved_and_the_reset_puts_them_back(pool):
    pool.move("000100", "host-2")
    assert pool.table()["A"]["000100"]["host"] == "host-2"
    pool.move("000100", None)
    assert pool.table()["A"]["000100"]["port"] is None
    pool.reset()
    assert pool.table()["A"]["000100"]["host"] == "host-1"
    with pytest.raises(ValueError, match="device '1': must be one of 000100, 000200"):
        pool.move("1", "host-2")
    with pytest.raises(ValueError, match="host 'host-9': chassis A is cabled to host-1, host-2, host-3"):
        pool.move("000100", "host-9")


@pytest.mark.wall
def test_unittest_enters_it_and_one_dialect_is_all_that_is_spoken():
    class OfAClient(unittest.TestCase):
        def test_it(self):
            pool = self.enterContext(
                mews.testing.chassis(in_process=True, dialect="resource-pool", hardware="two-pools")
            )
            self.assertEqual({"resource-pool"}, set(next(iter(pool.urls.values()))))

    result = unittest.TestResult()
    OfAClient("test_it").run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])


@pytest.mark.parametrize(
    ("open_", "line"),
    [
        (
            lambda: mews.testing.chassis(hardware="dmo"),
            "hardware='dmo': no such file, and no included hardware",
        ),
        (lambda: mews.testing.chassis(speed=-1), "speed=-1: must be a number above 0"),
        (lambda: mews.testing.hosts(dialect="morse"), "dialect='morse': must be one of h3api,"),
        (lambda: mews.testing.cluster("moon"), "backend moon: must be one of embedded,"),
        (lambda: mews.testing.cluster(stack=["kubecmp"]), "did you mean kubecomp"),
        (lambda: mews.testing.cluster(images="none.yaml"), "images='none.yaml': no such file"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(open_, line):
    with pytest.raises(mews.testing.BadInputError) as refused, open_():
        pass
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_scenario_runs_by_a_call(tmp_path):
    result = mews.testing.run("demo", seed=3, artefacts=tmp_path)
    assert (result.verdict, result.metrics["moved_gpus"]) == ("passed", 1)


@pytest.mark.wall
def test_hosts_show_their_devices_without_kubernetes():
    with mews.testing.hosts(speed=1000) as hosts:
        assert sorted(hosts) == ["host-1", "host-2", "host-3"]
        assert len(list((hosts["host-1"].root / "sys/bus/pci/devices").iterdir())) > 4
        assert len(hosts.view()["host-1"]["devices"]) == 4
        hosts.fault("host-1", "xid", device="000100", xid=79)
        with pytest.raises(ValueError, match="moonquake"):
            hosts.fault("host-1", "moonquake")
        hosts.reset()


@pytest.mark.wall
def test_a_cluster_is_used_by_helpers_alone(tmp_path):
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": {"falcon.com/gpu": "2"}}}
            ],
        },
    }
    with mews.testing.cluster(speed=20) as cluster:
        cluster.apply(pod)
        cluster.wait(pod={"name": "a", "phase": "Running"}, gpus={"pod": "a", "count": 2})
        assert cluster.logs("a").count("GPU-") >= 2
        with pytest.raises(AssertionError, match=r"pod/default/a with phase .*seen: .*Running"):
            cluster.wait(timeout="500ms", pod={"name": "a", "phase": "Failed"})
        with pytest.raises(ValueError, match="pod default/b: "):
            cluster.logs("b")
        cluster.fault("lying-result", count=1)
        cluster.step({"kill": "reconfig-manager"})
        cluster.move("000C00", None)
        cluster.keep(tmp_path / "kept")
        cluster.reset()
        assert cluster.chassis.faults() == {"A": []}
        assert cluster.chassis.table()["A"]["000C00"]["host"] == "host-3"
        with pytest.raises(ValueError, match="pod default/a: "):
            cluster.logs("a")
    kept = {str(each.relative_to(tmp_path / "kept")) for each in (tmp_path / "kept").rglob("*") if each.is_file()}
    assert {"journal.jsonl", "report.html", "pods.json", "table.json", "logs/default_a_main.log"} <= kept
