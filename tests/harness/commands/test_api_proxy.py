"""``mews proxy --kubeconfig``: by hand, before any kubeconfig, and the commands on it."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from mews.harness.commands.api_proxy import fault_of
from mews.harness.errors import BadInputError

MEWS = [sys.executable, "-m", "mews.harness.cli"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("p")


@pytest.fixture(scope="module")
def environment(folder):
    return {**os.environ, "XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(folder)}


@pytest.fixture(scope="module")
def proxy(folder, environment):
    """Before an API server alone: what it printed, and the ready.json of what is behind."""
    program = "import os, time; print(os.environ['KUBECONFIG'], flush=True); time.sleep(600)"
    behind = [*MEWS, "envtest", "--bare", "--", sys.executable, "-c", program]
    with subprocess.Popen(behind, env=environment, stdout=subprocess.PIPE, text=True) as server:
        kubeconfig = server.stdout.readline().strip()
        command = [*MEWS, "proxy", "--kubeconfig", kubeconfig, "--fault", "conflict,count=1", "--json"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as started:
            try:
                yield json.loads(started.stdout.readline())
            finally:
                started.send_signal(signal.SIGTERM)
                started.wait(timeout=30)
                server.send_signal(signal.SIGTERM)


@pytest.fixture
def mews(environment):
    def run(*words):
        done = subprocess.run([*MEWS, *words], env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    return run


def ask(ready, path, method="GET", body=None):
    """The status and the object that the program behind the proxy gets."""
    import ssl

    with open(ready["kubeconfig"]) as file:
        known = json.load(file)
    token = known["users"][0]["user"]["token"]
    context = ssl.create_default_context(cafile=known["clusters"][0]["cluster"]["certificate-authority"])
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(ready["api"] + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


DEFAULT = "/api/v1/namespaces/default"


@pytest.mark.wall
def test_a_program_gets_the_fault_and_then_the_answer(proxy, mews):
    label = {"metadata": {"labels": {"a": "b"}}}
    code, status = ask(proxy, DEFAULT, "PATCH", label)
    assert (code, status["reason"]) == (409, "Conflict")
    assert "labels" not in ask(proxy, DEFAULT)[1]["metadata"] or "a" not in ask(proxy, DEFAULT)[1]["metadata"]["labels"]
    code, patched = ask(proxy, DEFAULT, "PATCH", label)
    assert (code, patched["metadata"]["labels"]["a"]) == (200, "b")
    assert "fired" in mews("events", "--name", "proxy")[1]


@pytest.mark.wall
def test_faults_come_and_go_by_the_commands_of_a_session(proxy, mews):
    assert mews("fault", "add", "--name", "proxy", "expired-token") == (0, "done\n")
    assert ask(proxy, DEFAULT)[0] == 401
    assert "expired-token" in mews("fault", "list", "--name", "proxy")[1]
    assert "expired-token" in mews("status", "--name", "proxy")[1]
    assert mews("fault", "clear", "--name", "proxy") == (0, "done\n")
    assert ask(proxy, DEFAULT)[0] == 200
    assert "expired-token" not in mews("fault", "list", "--name", "proxy")[1]


@pytest.mark.wall
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fault", "add", "--component", "other", "conflict"), "component 'other': must be one of program"),
        (("fault", "add", "--chassis", "A", "conflict"), "is a fault of a component, not of a chassis"),
        (("fault", "add", "no-such"), "fault kind 'no-such'"),
        (("step", "kill: program"), "only faults between the program and its API server"),
        (("get", "table"), "`mews proxy` starts no cluster and therefore has no hardware"),
    ],
)
def test_what_there_is_not_is_said_in_a_line(proxy, mews, words, said):
    code, text = mews(*words, "--name", "proxy")
    assert code == 2
    assert said in text
    assert len(text.splitlines()) == 1


@pytest.mark.wall
def test_a_name_is_taken_once(proxy, mews):
    code, text = mews("proxy", "--kubeconfig", proxy["kubeconfig"])
    assert code == 2
    assert "--name proxy: already runs" in text


def test_a_fault_is_written_as_words():
    assert fault_of("lagging-watch,by_s=10,resource=pods") == {
        "kind": "lagging-watch",
        "by_s": 10,
        "resource": "pods",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lagging", "fault kind 'lagging': must be one of"),
        ("conflict,times", "'times': must be NAME=VALUE"),
        ("lagging-watch,by_s=-1", "by_s"),
        ("conflict,by_s=1", "unknown key 'by_s'"),
    ],
)
def test_a_wrong_fault_is_refused_in_a_line(text, said):
    with pytest.raises(BadInputError) as refused:
        fault_of(text)
    assert str(refused.value).startswith(f"--fault {text}: ")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fault", "conflict", "http://box"), "--fault conflict: only with --kubeconfig"),
        (("--json",), "--json: only with --kubeconfig"),
        (("--kubeconfig", "k", "http://box"), "--kubeconfig k http://box: only one of the two"),
        (("--kubeconfig", "k", "--list"), "--kubeconfig k --list: only one of the two"),
        (("--kubeconfig", "k", "--wrong", "stale"), "--wrong stale: not with --kubeconfig"),
        (("--kubeconfig", "no-such-file"), "no-such-file"),
    ],
)
def test_wrong_words_are_refused_in_a_line(mews, words, said):
    code, text = mews("proxy", *words)
    assert code == 2
    assert said in text
    assert len(text.splitlines()) == 1
