"""Commands on a running ``mews up``, as their users type them."""

import html
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import pytest
import yaml

pytestmark = pytest.mark.wall

MEWS = [sys.executable, "-m", "mews.harness.cli"]


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    """(run(words) -> (code, output, complaint), ready.json, folder) of a session called live."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as runtime:
        folder = tmp_path_factory.mktemp("live")
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        command = [*MEWS, "up", "--dir", str(folder), "--json", "--name", "live", "--wait", "devices", "--speed", "10"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()

            def run(*words, name="live"):
                given = [*MEWS, *words, "--name", name]
                done = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=120, check=False)
                return done.returncode, done.stdout, done.stderr

            yield run, json.loads(line), folder
        finally:
            process.terminate()
            process.communicate(timeout=60)
            assert process.returncode == 0
            subprocess.run([*MEWS, "down", "--all"], env=environment, capture_output=True, check=True)


def ask(ready, path, token=None, host=None):
    headers = {"Authorization": f"Bearer {token or ready['session']['token']}", **({"Host": host} if host else {})}
    request = urllib.request.Request(ready["session"]["url"] + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_session_is_acted_on_explained_and_recorded(up, tmp_path):
    run, _, folder = up
    code, text, _ = run("status")
    assert code == 0
    assert text.startswith("live: embedded, up for ")
    assert "node host-1: Ready\n" in text
    assert "chassis A: host-1 4, host-2 4, host-3 4\n" in text

    assert run("fault", "add", "--chassis", "A", "lying-result", "count=1") == (0, "done\n", "")
    shown = run("fault", "list")[1]
    assert "on chassis/A: lying-result since " in shown
    assert "triggered 0 of 1 times, active\n" in shown
    assert run("fault", "clear", "A") == (0, "done\n", "")
    assert run("host", "host-1", "drain", "device=0-000100", "on=true")[0] == 0

    pod = {
        "kind": "Pod",
        "metadata": {"name": "greedy"},
        "spec": {
            "schedulerName": "kubecomp-scheduler",
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {"falcon.com/gpu": "13"}}}],
        },
    }
    assert run("step", json.dumps({"apply": pod})) == (0, "done\n", "")
    waited = {"wait": {"event": {"reason": "FailedScheduling", "object": "Pod/greedy"}}}
    assert run("step", json.dumps(waited))[0] == 0
    code, text, _ = run("explain", "pod/greedy")
    assert code == 0
    assert text.splitlines()[0] == "pod default/greedy: over-ask"

    assert run("chassis", "edit", "A", "000C00", "--free") == (0, "done\n", "")
    assert "A        000C00  GPU   pool-0  -     -" in run("get", "table")[1]
    assert "free 1, host-1 4, host-2 4, host-3 3" in run("status")[1]

    saved = tmp_path / "live.json"
    assert run("snapshot", "save", str(saved)) == (0, "saved: 1 objects, 0 faults\n", "")
    assert run("chassis", "edit", "A", "000100", "--free") == (0, "done\n", "")
    assert run("step", "delete: {kind: Pod, name: greedy}")[0] == 0
    assert run("snapshot", "restore", str(saved)) == (0, "restored\n", "")
    assert "free 1, host-1 4, host-2 4, host-3 3" in run("status")[1]
    assert run("step", "assert: {pod: {name: greedy, phase: Pending}}") == (0, "done\n", "")

    assert run("telemetry", "--device", "000100", "temperature=91") == (0, "", "")
    assert run("telemetry", "--device", "000100", "watts=3")[0] == 2

    code, text, _ = run("step", "get: {kind: Node, name: host-1}")
    assert (code, yaml.safe_load(text)["metadata"]["name"]) == (0, "host-1")
    code, text, _ = run("step", "logs: {pod: nobody}")
    assert (code, text) == (1, 'failed: expected logs to be accepted; seen: pods "nobody" not found\n')

    code, text, _ = run("events", "--layer", "step")
    assert code == 0
    assert [line.split()[2:4] for line in text.splitlines()][:2] == [["live", "begun"], ["live", "passed"]]
    assert (folder / "journal.jsonl").read_text().count('"event":"passed"') == text.count(" passed ")

    code, text, _ = run("report", "--out", str(tmp_path / "live.html"))
    assert (code, text.partition(" (")[0]) == (0, "passed: a live session, so far")
    greedy = run("explain", "pod/greedy")
    assert run("explain", "pod", "greedy") == run("explain", "-n", "default", "greedy") == greedy
    assert run("explain", "-n", "kube-system", "greedy")[0] == 2
    assert run("fault", "add", "--chassis", "A", "--count", "1", "lying-result", "--says=false") == (0, "done\n", "")
    assert "triggered 0 of 1 times" in run("fault", "list")[1]
    code, text, complaint = run("explain", "pod/nobody")
    assert (code, text) == (2, "")
    assert complaint == "There is no pod nobody in namespace default.\n"
    code, _, complaint = run("explain", "deployment/web")
    assert code == 2
    assert complaint.startswith("There is no namespace deployment;")
    assert "<!doctype html>" in (tmp_path / "live.html").read_text()

    out = tmp_path / "again.yaml"
    assert run("record", "--out", str(out)) == (0, "", "")
    assert "do: drain" in out.read_text()
    assert "temperature: 91" in out.read_text()
    again = subprocess.run([*MEWS, "run", str(out)], capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["fault", "add", "nonsense"], "fault kind 'nonsense': must be one of "),
        (["fault", "add", "--host", "host-9", "xid", "device=000100", "xid=79"], "host-9"),
        (["fault"], "must be one of mews fault list, mews fault add, mews fault clear"),
        (["step", "kill: nobody"], "component 'nobody': must be one of "),
        (["step", "workload: run"], "workload: belongs to a scenario; a live session has none"),
        (
            ["step", "wait: {pod: {name: a, phase: Runing}}"],
            "wait.pod.phase: 'Runing': must be one of Pending",
        ),
        (["step", "wait: {hosts: {host-9: 1}}"], "wait.hosts.host-9: 'host-9': must be one of host-1, "),
        (["step", "telemetry: {set: {temperature: 900}}"], "temperature 900: must be a number from 0 to 150"),
        (["step", "get: {kind: Node, name: host-1}\noutputs: {a: .x}"], "outputs: belong to a scenario"),
        (["host", "host-1", "drain", "device=000100", "path=x"], "path: drain does not use it; it takes device, on"),
        (["step", "no-such-file.yaml"], "neither a file nor a step"),
        (["chassis", "edit", "A", "000100"], "one of the arguments --port --host --free is required"),
        (["chassis", "edit", "A", "9", "--free"], "chassis.edit.device: '9': must be one of 000900, "),
        (["host", "host-1", "dance"], "mews host: host.do: 'dance': must be one of "),
        (["explain", "a/b/c"], "must be pod/NAME"),
        (["explain", "five", "six"], "'five six': must be pod/NAME"),
        (["fault", "add", "lying-result", "--nonsense", "1"], "nonsense"),
        (["events", "--layer", "cake"], "invalid choice: 'cake'"),
        (["record", "--out", "/no/such/folder/x.yaml"], "cannot be written: No such file or directory"),
        (["snapshot", "save", "/no/such/folder/x.json"], "cannot be written: No such file or directory"),
        (["snapshot", "restore", "/no/such/file"], "/no/such/file: cannot be read: No such file or directory"),
        (["snapshot", "restore", __file__], "test_live_commands.py: is not JSON"),
        (["snapshot"], "must be one of mews snapshot save, mews snapshot restore"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(up, words, complaint):
    code, out, err = up[0](*words)
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("status",), ("env", "host-1"), ("live", "get", "table"), ("telemetry",)])
def test_a_session_that_is_not_there_is_bad_input_of_every_command(up, words):
    assert up[0](*words, name="other") == (2, "", "--name other: no `mews up` of that name runs; running: live\n")


def test_the_group_runs_the_same_commands_as_their_short_names(up):
    run, _, _ = up
    assert run("live", "get", "table") == run("get", "table")
    assert run("live", "fault", "list") == run("fault", "list")


def test_the_environment_of_a_host_is_what_a_shell_evaluates(up):
    run, ready, _ = up
    env = ready["nodes"]["host-2"]["env"]
    code, text, _ = run("env", "host-2")
    assert (code, text[:7], text.count("\n")) == (0, "export ", 1)
    assert dict(word.split("=", 1) for word in shlex.split(text)[1:]) == env


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("fault", "add", "xid", "device=000100"), "'xid': is a fault of a host, not of a chassis: name the host"),
        (("fault", "add", "--host", "host-1", "timeout"), "'timeout': is a fault of a chassis, not of a host"),
        (("fault", "add", "--host", "host-9", "xid", "device=000100"), "fault.host: 'host-9': must be one of host-1"),
        (("fault", "add", "--host", "host-1", "xdi", "device=000100"), "(did you mean xid?)"),
        (("env", "host-9"), "mews env host-9: must be one of host-1, host-2, host-3 (did you mean host-1?)"),
    ],
)
def test_a_name_that_is_elsewhere_or_nowhere_is_reported_by_itself(up, words, complaint):
    code, out, err = up[0](*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


def test_nobody_gets_in_without_the_token_or_by_another_name(up):
    _, ready, _ = up
    assert ask(ready, "/v1/session")[0] == 200
    assert ask(ready, "/v1/session", token="wrong")[0] == 401
    assert ask(ready, "/v1/session", host="attacker.example")[0] == 403
    assert ask(ready, "/v1/nothing")[0] == 404
    code, answer = ask(ready, "/v1/journal?since=x")
    assert code == 400
    assert answer == {"error": "since='x': must be a whole number from 0 to 9223372036854775807"}


def test_events_are_streamed_from_any_line_on(up):
    _, ready, _ = up
    headers = {"Authorization": f"Bearer {ready['session']['token']}"}
    request = urllib.request.Request(ready["session"]["url"] + "/v1/events?since=3", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        assert stream.readline() == b"id: 3\n"
        line = json.loads(stream.readline().removeprefix(b"data: "))
    assert line["number"] == 3
    assert {"t", "layer", "actor", "event"} <= set(line)


def test_the_page_needs_no_token_and_holds_none(up):
    _, ready, _ = up
    with urllib.request.urlopen(ready["session"]["url"] + "/", timeout=30) as answer:
        page = answer.read().decode()
        assert answer.headers["Content-Type"].startswith("text/html")
        policy = answer.headers["Content-Security-Policy"]
    [inside] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy == f"{html.unescape(inside)}; frame-ancestors 'none'"
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert page.startswith("<!doctype html>")
    assert ready["session"]["token"] not in page
