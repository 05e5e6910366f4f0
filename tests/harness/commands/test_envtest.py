"""``mews envtest``: a cluster for as long as a command runs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mews.harness.cli import exit_code

MEWS = [sys.executable, "-m", "mews.harness.cli"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "mews envtest: CMD: missing; say what to run, such as mews envtest -- go test ./..."),
        (["--", "no-such-program"], "mews envtest: no-such-program: no such program"),
        (["--frob", "--", "true"], "mews envtest: unrecognized arguments: --frob"),
    ],
)
def test_bad_words_are_told_in_one_line_before_anything_starts(words, complaint, capsys):
    assert exit_code(["envtest", *words]) == 2
    assert capsys.readouterr().err == complaint + "\n"


@pytest.mark.wall
def test_what_the_cluster_does_not_take_is_told_and_ends_it(capsys):  # gRPC of an earlier test may write on its own
    assert exit_code(["envtest", "--cluster", "nowhere", "--", "true"]) == 2
    assert capsys.readouterr().err == "--cluster nowhere: must be one of embedded, control-plane, kind\n"


LOOKS = """
import json, os, ssl, sys, urllib.request
ready = json.load(open(os.environ["MEWS_READY"]))
access = json.load(open(os.environ["KUBECONFIG"]))
token = access["users"][0]["user"]["token"]
request = urllib.request.Request(ready["api"] + "/api/v1/nodes", headers={"Authorization": f"Bearer {token}"})
context = ssl.create_default_context(cafile=ready["ca"])
nodes = json.load(urllib.request.urlopen(request, context=context))["items"]
ready_nodes = [n for n in nodes for c in n["status"]["conditions"] if c["type"] == "Ready" and c["status"] == "True"]
print(len(ready_nodes), os.environ["USE_EXISTING_CLUSTER"], bool(os.environ["KUBEBUILDER_ASSETS"]), ready["pid"])
sys.exit(7)
"""


MAKES_A_POD = """
import json, os, ssl, urllib.request
ready = json.load(open(os.environ["MEWS_READY"]))
token = json.load(open(os.environ["KUBECONFIG"]))["users"][0]["user"]["token"]
pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
url = ready["api"] + "/api/v1/namespaces/default/pods"
request = urllib.request.Request(url, json.dumps(pod).encode(), headers)
print(urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ready["ca"])).status)
"""


@pytest.mark.wall
def test_where_nobody_makes_service_accounts_pods_need_none():
    argv = [*MEWS, "envtest", "--bare", "--", sys.executable, "-c", MAKES_A_POD]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stdout == "201\n", done.stderr


WARNINGS_AND_METRICS = """
import json, os, ssl, urllib.error, urllib.request
ready = json.load(open(os.environ["MEWS_READY"]))
token = json.load(open(os.environ["KUBECONFIG"]))["users"][0]["user"]["token"]
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
def ask(path, body=None):
    request = urllib.request.Request(ready["api"] + path, body and json.dumps(body).encode(), headers)
    try:
        return urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ready["ca"]))
    except urllib.error.HTTPError as error:
        return error
schema = {"metadata": {"name": "s"}, "spec": {"priorityLevelConfiguration": {"name": "global-default"}}}
made = ask("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", schema)
groups = [group["name"] for group in json.load(ask("/apis"))["groups"]]
metrics = ask("/apis/metrics.k8s.io/v1beta1/nodes")
print(made.status, made.headers.get("Warning"), "metrics.k8s.io" in groups, metrics.status)
"""


@pytest.mark.wall
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("--bare", "201 None False 404"),
        (
            "--stack=none",
            '201 299 - "FlowSchema is stored and ignored here: requests are neither queued nor limited" True 200',
        ),
    ],
)
def test_a_bare_api_server_warns_as_the_real_one_and_serves_no_metrics(how, expected):
    argv = [*MEWS, "envtest", how, "--", sys.executable, "-c", WARNINGS_AND_METRICS]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stdout == f"{expected}\n", done.stderr


@pytest.mark.wall
def test_the_command_finds_a_cluster_and_its_code_is_returned():
    done = subprocess.run([*MEWS, "envtest", "--", sys.executable, "-c", LOOKS], capture_output=True, text=True)
    assert done.stdout.startswith("3 true True "), done.stderr
    assert done.returncode == 7
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout.split()[-1]), 0)


@pytest.mark.wall
@pytest.mark.parametrize("obeys", [True, False])
def test_signals_reach_the_command_and_the_cluster_ends_after_it(tmp_path, obeys):
    told = tmp_path / "told"
    handler = "lambda *_: sys.exit(9)" if obeys else "signal.SIG_DFL"
    text = (
        "import os, pathlib, signal, sys, time\n"
        f"signal.signal(signal.SIGTERM, {handler})\n"
        f"pathlib.Path({str(told)!r}).write_text(os.environ['MEWS_READY'])\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([*MEWS, "envtest", "--", sys.executable, "-c", text])
    try:
        end = time.monotonic() + 90
        while not told.exists() or not told.read_text():
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.05)
        pid = json.loads(Path(told.read_text()).read_text())["pid"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == (9 if obeys else 128 + signal.SIGTERM)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    finally:
        process.kill()
        process.wait()
