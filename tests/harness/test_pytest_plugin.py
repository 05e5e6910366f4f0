"""The pytest plugin, used as its users do."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: tiny}
hardware: demo
steps:
- sleep: 1s
"""

FAKE = """
import pytest
from mews.harness import engine
from mews.harness.journal import Journal
from mews.harness.report.run import Run
from mews.harness.scenario.result import Result

@pytest.fixture(autouse=True)
def fake(monkeypatch):
    def run(self, scenario, seed=None):
        async def main():
            journal = Journal(lambda: 0.25)
            journal.write("chassis", "chassis/A", "detached", gpuid="0-a")
            seed_ = scenario.seed if seed is None else seed
            verdict = "passed" if scenario.timeout > 60 else "failed"
            path, time = str(scenario.path), self.options.time
            result = Result(scenario.name, path, "embedded", time, seed_, verdict, reason="why")
            return Run(result, journal.lines())
        return engine.in_own_loop(main, virtual=True)
    monkeypatch.setattr(engine.Engine, "run", run)
"""


@pytest.fixture
def project(pytester):
    """A user's project with the plugin, an engine that runs nothing, and a scenario."""
    installed = any(entry.name == "mews" for entry in entry_points(group="pytest11"))
    pytester.makeini("[pytest]\n" + ("" if installed else "addopts = -p mews.harness.pytest_plugin\n"))
    pytester.makeconftest(FAKE)
    (pytester.path / "tiny.yaml").write_text(SCENARIO)
    return pytester


def test_a_scenario_runs_from_a_plain_test_with_seed_and_overrides(project):
    project.makepyfile(
        """
        def test_it(mews_run):
            assert mews_run("tiny.yaml").verdict == "passed"
            assert mews_run("tiny.yaml", seed=7).seed == 7
            assert mews_run("tiny.yaml", timeout="10s").verdict == "failed"
            assert mews_run("tiny.yaml", time="wall").time == "wall"
        """
    )
    project.runpytest_subprocess("-q").assert_outcomes(passed=1)


def test_it_runs_within_a_running_loop_and_in_a_thread(project):
    project.makepyfile(
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        def test_in_a_loop(mews_run):
            async def main():
                return mews_run("tiny.yaml")
            assert asyncio.run(main()).verdict == "passed"

        def test_in_a_thread(mews_run):
            with ThreadPoolExecutor() as pool:
                assert pool.submit(mews_run, "tiny.yaml").result().verdict == "passed"
        """
    )
    project.runpytest_subprocess("-q").assert_outcomes(passed=2)


def test_a_failed_test_tells_how_its_run_went_and_leaves_artefacts(project):
    project.makepyfile(
        """
        def test_bad(mews_run):
            assert mews_run("tiny.yaml", timeout="10s").verdict == "passed"
        """
    )
    outcome = project.runpytest_subprocess("-q")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(["*mews*", "tiny, seed 1: failed", "why", "artefacts: *mews-artefacts*test_bad*"])
    [journal] = (project.path / "mews-artefacts").rglob("journal.jsonl")
    assert '"event":"detached"' in journal.read_text()


def test_a_bad_scenario_is_an_error_in_one_line(project):
    project.makepyfile(
        """
        import pytest
        from mews.harness.scenario.errors import ScenarioError

        def test_it(mews_run):
            with pytest.raises(ScenarioError, match="frob: unknown key"):
                mews_run("tiny.yaml", frob=1)
        """
    )
    project.runpytest_subprocess("-q").assert_outcomes(passed=1)


CURIOUS = """
        import pytest
        from mews.harness.scenario.errors import ScenarioError

        def test_run(mews_run):
            {run}

        @pytest.mark.mews(scenario="tiny.yaml")
        def test_cluster(request):
            from mews.harness.pytest_plugin import _settings
            assert ("--allow-outside" in _settings(request, "mews_cluster").options()) is {allowed}
        """


@pytest.mark.parametrize("way", ["no", "option", "ini"])
def test_scenarios_name_files_outside_their_folders_only_with_the_users_word(project, way, tmp_path):
    (tmp_path / "pods.yaml").write_text("kind: Pod\nmetadata: {name: x}\n")
    (project.path / "tiny.yaml").write_text(SCENARIO + f"objects: {{file: {tmp_path}/pods.yaml}}\n")
    refused = "with pytest.raises(ScenarioError, match='lies outside'): mews_run('tiny.yaml')"
    allowed = "assert mews_run('tiny.yaml').verdict == 'passed'"
    project.makepyfile(CURIOUS.format(run=refused if way == "no" else allowed, allowed=way != "no"))
    if way == "ini":
        ini = project.path / "tox.ini"
        ini.write_text(ini.read_text() + "\nmews_allow_outside = true\n")
    options = ["--mews-allow-outside"] if way == "option" else []
    project.runpytest_subprocess("-q", *options).assert_outcomes(passed=2)


def test_a_cluster_that_cannot_be_had_skips_with_the_reason(project, monkeypatch):
    monkeypatch.setenv("PATH", str(project.path))
    project.makepyfile("def test_it(mews_run):\n    mews_run('tiny.yaml')\n")
    outcome = project.runpytest_subprocess("-q", "-rs", "--mews-cluster=kind")
    outcome.assert_outcomes(skipped=1)
    outcome.stdout.fnmatch_lines(["*--cluster kind: * is not on PATH*"])


def test_another_cluster_is_refused(project):
    outcome = project.runpytest_subprocess("--mews-cluster=moon")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["*invalid choice: 'moon'*"])


def test_workers_run_side_by_side(project):
    project.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("seed", range(4))
        def test_it(mews_run, seed):
            assert mews_run("tiny.yaml", seed=seed).seed == seed
        """
    )
    project.runpytest_subprocess("-q", "-n2").assert_outcomes(passed=4)


@pytest.mark.wall
def test_the_chassis_is_served_once_and_reset_before_each_test(project):
    project.makepyfile(
        """
        seen = []

        def free_one(chassis):
            name = sorted(chassis.table())[0]
            device = sorted(d for d, row in chassis.table()[name].items() if row["port"])[0]
            chassis.edit(name, device, None)
            assert chassis.table()[name][device]["port"] is None
            seen.append(chassis.urls)

        def rows(chassis):
            return [row for devices in chassis.table().values() for row in devices.values()]

        def test_one(mews_chassis):
            assert all(row["port"] for row in rows(mews_chassis))
            free_one(mews_chassis)

        def test_two(mews_chassis):
            assert all(row["port"] for row in rows(mews_chassis))
            free_one(mews_chassis)
            assert seen[0] == seen[1]
        """
    )
    project.runpytest_subprocess("-q").assert_outcomes(passed=2)


@pytest.mark.wall
def test_faults_of_a_chassis_are_added_and_refused_by_name(project):
    project.makepyfile(
        """
        import pytest

        def test_it(mews_chassis):
            name = sorted(mews_chassis.urls)[0]
            assert mews_chassis.fault(name, "lying-result", count=1)
            mews_chassis.clear()
            with pytest.raises(ValueError, match="moonquake"):
                mews_chassis.fault(name, "moonquake")
            assert any(event["event"] == "fault-added" for event in mews_chassis.events())
        """
    )
    project.runpytest_subprocess("-q").assert_outcomes(passed=1)


@pytest.mark.wall
def test_a_hardware_file_that_is_none_is_told_by_the_server(project):
    (project.path / "bad.yaml").write_text("apiVersion: mews/v1\nkind: Nonsense\n")
    project.makepyfile("def test_it(mews_chassis):\n    pass\n")
    outcome = project.runpytest_subprocess("-q", "--mews-hardware=bad.yaml")
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines(["*RuntimeError*exited with code 2*bad.yaml*"])


@pytest.fixture
def real_project(pytester, monkeypatch):
    """A user's project with the plugin and nothing faked."""
    installed = any(entry.name == "mews" for entry in entry_points(group="pytest11"))
    pytester.makeini(
        "[pytest]\nfilterwarnings = error\n" + ("" if installed else "addopts = -p mews.harness.pytest_plugin\n")
    )
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return pytester


def test_a_shipped_scenario_runs_by_its_name(real_project):
    real_project.makepyfile(
        """
        def test_it(mews_run):
            result = mews_run("demo", seed=3)
            assert result.verdict == "passed", result.reason
            assert result.metrics["moved_gpus"] == 1
            assert result.violations == ()
            again = mews_run("demo", seed=3)
            assert again.virtual_s == result.virtual_s

        def test_a_failure(mews_run):
            result = mews_run("demo", stack__kubecomp__reconfig_manager=None)
            assert result.verdict == "passed"
        """
    )
    outcome = real_project.runpytest_subprocess("-q")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["demo, seed 1: failed", "*lines of the journal:"])
    [report] = (real_project.path / "mews-artefacts").rglob("report.txt")
    assert (report.parent / "journal.jsonl").read_text()


@pytest.mark.wall
def test_a_cluster_serves_unmodified_clients_and_is_reset_before_each_test(real_project):
    real_project.makepyfile(
        """
        import time
        from kubernetes import client, config

        def api(mews_cluster):
            config.load_kube_config(str(mews_cluster.kubeconfig))
            return client.CoreV1Api()

        def test_one(mews_cluster):
            core = api(mews_cluster)
            limits = client.V1ResourceRequirements(limits={"falcon.com/gpu": "5"})
            container = client.V1Container(name="main", image="mews/gpu-hold", resources=limits)
            spec = client.V1PodSpec(containers=[container], scheduler_name="kubecomp-scheduler")
            core.create_namespaced_pod("default", client.V1Pod(metadata=client.V1ObjectMeta(name="p"), spec=spec))
            deadline = time.monotonic() + 90
            while core.read_namespaced_pod("p", "default").status.phase != "Running":
                assert time.monotonic() < deadline
            hosts = [row["host"] for row in mews_cluster.chassis.table()["A"].values()]
            assert sorted(hosts.count(host) for host in set(hosts)) == [3, 4, 5]

        def test_two(mews_cluster):
            assert api(mews_cluster).list_pod_for_all_namespaces().items == []
            hosts = [row["host"] for row in mews_cluster.chassis.table()["A"].values()]
            assert sorted(hosts.count(host) for host in set(hosts)) == [4, 4, 4]
        """
    )
    real_project.runpytest_subprocess("-q", "-W", "ignore::DeprecationWarning").assert_outcomes(passed=2)


@pytest.mark.wall
def test_a_marker_says_what_a_cluster_runs(real_project):
    (real_project.path / "two.yaml").write_text(SCENARIO.replace("hardware: demo", "hardware: two-pools"))
    real_project.makepyfile(
        """
        import pytest
        from kubernetes import client, config

        def namespaces(mews_cluster):
            config.load_kube_config(str(mews_cluster.kubeconfig))
            return {each.metadata.name for each in client.CoreV1Api().list_namespace().items}

        @pytest.mark.mews(stack="none")
        def test_bare(mews_cluster):
            assert "kubecomp" not in namespaces(mews_cluster)

        @pytest.mark.mews(scenario="two.yaml", stack=["kod2"])
        def test_scenario(mews_cluster):
            assert len(mews_cluster.nodes) == 4
            config.load_kube_config(str(mews_cluster.kubeconfig))
            kinds = client.ApiextensionsV1Api().list_custom_resource_definition().items
            assert [kind.metadata.name for kind in kinds] == ["tfjobs.kubeflow.org"]
        """
    )
    real_project.runpytest_subprocess("-q", "-W", "ignore::DeprecationWarning").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("marker", "fixture", "complaint"),
    [
        ("stak='none'", "mews_cluster", "stak='none'): must be one of stack, * (did you mean stack?)"),
        ("'none'", "mews_cluster", "'none'): takes words with values alone, such as stack='none'"),
        (
            "hardware='dmo'",
            "mews_chassis",
            "hardware='dmo'): no such file, *(did you mean demo?)*",
        ),
        (
            "scenario='demoo'",
            "mews_cluster",
            "scenario='demoo'): no such file, *(did you mean demo?)*",
        ),
        (
            "stack='kubecmp'",
            "mews_cluster",
            "stack='kubecmp'): 'kubecmp': must be one of *(did you mean kubecomp?)",
        ),
        ("dialect='redfsh'", "mews_hosts", "dialect='redfsh'): *h3api*"),
        ("tls='maybe'", "mews_chassis", "tls='maybe'): must be True or False"),
        ("speed=0", "mews_run", "speed=0): must be a number above 0"),
        ("images='none.yaml'", "mews_cluster", "images='none.yaml'): no such file"),
        ("unknown_images='x'", "mews_cluster", "unknown_images='x'): must be one of fail, idle, container"),
        (
            "stack='none'",
            "mews_chassis",
            "stack='none'): no fixture of this test takes it: mews_chassis takes hardware, *",
        ),
    ],
)
def test_a_marker_that_makes_no_sense_fails_its_test_in_one_line_before_anything_is_served(
    real_project, marker, fixture, complaint
):
    real_project.makepyfile(f"import pytest\n\n@pytest.mark.mews({marker})\ndef test_it({fixture}):\n    pass\n")
    outcome = real_project.runpytest_subprocess("-q", "--strict-markers", "--tb=short")
    outcome.assert_outcomes(errors=1)
    file = "test_a_marker_that_makes_no_sense_fails_its_test_in_one_line_before_anything_is_served.py"
    outcome.stdout.fnmatch_lines([f"{file}::test_it: @pytest.mark.mews({complaint}".replace("[", "[[]")])
    outcome.stdout.no_fnmatch_line("*pytest_plugin.py*")


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--mews-hardware=dmo", "*--mews-hardware dmo: no such file, * (did you mean demo?)*"),
        ("--mews-speed=fast", "*--mews-speed fast: must be a number above 0*"),
        ("--mews-tls=maybe", "*--mews-tls maybe: must be True or False*"),
        ("--mews-stack=kubecmp", "*--mews-stack kubecmp: *(did you mean kubecomp?)*"),
        ("mews_dialect=morse", "*mews_dialect = morse: must be one of h3api, *"),
        ("mews_hardware=dmo", "*mews_hardware = dmo: *(did you mean demo?)*"),
    ],
)
def test_an_option_that_makes_no_sense_ends_the_session_in_one_line(real_project, option, complaint):
    real_project.makepyfile("def test_it():\n    pass\n")
    outcome = real_project.runpytest_subprocess(*([option] if option.startswith("-") else ["-o", option]))
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([complaint])
    assert len(outcome.errlines) <= 2


CHOICES = """
        import pytest
        from mews.harness.pytest_plugin import _settings

        pytestmark = pytest.mark.mews(hardware="two-pools", scenario="demo", unknown_images="idle")

        @pytest.mark.mews(stack=["kod2"], speed=5)
        def test_marked(request):
            words = _settings(request, "mews_cluster").options()
            assert words == ["--hardware", "two-pools", "--speed", "5", "--insecure", "--stack", "kod2"]

        def test_inherited(request):
            words = _settings(request, "mews_cluster").options()
            assert words[-4:] == ["--scenario", "demo", "--unknown-images", "idle"]
            assert _settings(request, "mews_chassis").of_chassis() == [
                "--hardware", "two-pools", "--speed", "7", "--insecure"
            ]

        @pytest.mark.mews(dialect="redfish", tls=True, hardware=None)
        def test_marker_over_option(request):
            words = _settings(request, "mews_chassis").of_chassis()
            assert words == ["--hardware", "unattached", "--dialect", "redfish", "--speed", "7"]
        """


def test_the_marker_comes_before_the_option_and_that_before_the_ini_file(project):
    project.makepyfile(CHOICES)
    ini = project.path / "tox.ini"
    ini.write_text(ini.read_text() + "\nmews_speed = 3\nmews_tls = no\nmews_hardware = unattached\n")
    project.runpytest_subprocess("-q", "--mews-speed=7").assert_outcomes(passed=3)


@pytest.mark.wall
def test_a_failed_test_leaves_what_its_chassis_had_and_no_frame_of_ours(real_project):
    real_project.makepyfile(
        """
        import urllib.request

        def test_it(mews_chassis):
            urllib.request.urlopen(mews_chassis.urls["A"]["h3api"] + "/h3api/v1/resources").close()
            mews_chassis.move("000100", "host-2")
            mews_chassis.requests.assert_requested("POST", "/h3api/*")
        """
    )
    outcome = real_project.runpytest_subprocess("-q")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(
        [
            "E*expected request POST /h3api/*; it came 0 times.",
            "E*GET /h3api/v1/resources  -> 200*",
            "*artefacts of chassis:*",
        ]
    )
    outcome.stdout.no_fnmatch_line("*testkit/*")
    [folder] = (real_project.path / "mews-artefacts").glob("*/chassis")
    assert '"status": 200' in (folder / "requests.jsonl").read_text()
    assert '"event":"edited"' in (folder / "journal.jsonl").read_text()
    assert {"table.json", "report.html"} <= {each.name for each in folder.iterdir()}


def test_logs_of_components_are_captured_by_who_asks_for_them_alone(real_project):
    real_project.makepyfile("def test_it(mews_run):\n    assert mews_run('demo').verdict == 'no'\n")
    outcome = real_project.runpytest_subprocess("-q")
    outcome.stdout.no_fnmatch_line("INFO*")
    outcome.stdout.no_fnmatch_line("*Captured log*")
    real_project.runpytest_subprocess("-q", "--log-level=INFO").stdout.fnmatch_lines(["INFO*mews.run.scheduler*"])


def test_importing_the_plugin_loads_no_heavy_package():
    code = (
        "import sys, pytest; before = set(sys.modules); import mews.harness.pytest_plugin;"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('mews')))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert told.stdout.strip() == "[]"


IMAGES = """
        import pytest

        def test_run(mews_run):
            assert mews_run.images == {"team/app": "idle"}
            assert mews_run.unknown_images == "fail"

        @pytest.mark.mews(stack="none")
        def test_cluster(request):
            from mews.harness.pytest_plugin import _settings
            words = _settings(request, "mews_cluster").options()
            assert words[-4:] == ["--images", str(request.config.rootpath / "own.yaml"), "--unknown-images", "fail"]

        @pytest.mark.mews(images="other.yaml", unknown_images="idle")
        def test_marked(request):
            from mews.harness.pytest_plugin import _settings
            words = _settings(request, "mews_cluster").options()
            assert words == ["--images", str(request.path.parent / "other.yaml"), "--unknown-images", "idle"]
        """


def test_images_of_the_users_own_come_from_the_ini_file_or_the_marker(project):
    for name in ("own.yaml", "other.yaml"):
        (project.path / name).write_text("images: {team/app: idle}\n")
    ini = project.path / "tox.ini"
    ini.write_text(ini.read_text() + "\nmews_images = own.yaml\nmews_unknown_images = fail\n")
    project.makepyfile(IMAGES)
    project.runpytest_subprocess("-q").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("mews_images = own.yaml", "*mews_images = own.yaml: no such file*"),
        ("mews_unknown_images = perhaps", "*mews_unknown_images = perhaps: must be fail, idle or container*"),
    ],
)
def test_a_wrong_ini_option_for_images_is_told(project, line, complaint):
    ini = project.path / "tox.ini"
    ini.write_text(ini.read_text() + f"\n{line}\n")
    project.makepyfile("def test_it(mews_run): pass")
    outcome = project.runpytest_subprocess("-q")
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines([complaint])
