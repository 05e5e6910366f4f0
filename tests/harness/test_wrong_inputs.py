"""Wrong inputs as users make them, over all commands, options and files: one clear line, and a code."""

import csv
import os
import shlex
from pathlib import Path

import pytest

from mews.harness import cli
from mews.harness.cli import exit_code
from mews.harness.commands.further import all_commands

HEAD = "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: x}\nhardware: demo\n"
HARDWARE = "apiVersion: mews/v1\nkind: Hardware\n"
TRACE = "job,type,arrival_s,gpus,cpus,duration_s\n"
HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
HELIOS_ROW = "1,u,v,{gpus},4,1,COMPLETED,{submitted},2020-06-01 00:00:00,2020-06-01 00:00:09,9,0\n"
KUBECONFIG = "apiVersion: v1\nkind: Config\n"
FILES = {
    "good.yaml": HEAD + "steps: [{sleep: 1s}]\n",
    "empty.yaml": "",
    "binary.yaml": b"\x00\xff\xfe\x80",
    "list.yaml": "- 1\n",
    "syntax.yaml": "a: [\n",
    "twice.yaml": HEAD + "seed: 1\nseed: 2\n",
    "tabs.yaml": "a:\n\tb: 1\n",
    "alias.yaml": "a: &a [*a]\n",
    "other.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
    "two.yaml": HEAD + "---\n" + HEAD,
    "v2.yaml": HEAD.replace("mews/v1", "mews/v2"),
    "hw-list.yaml": "- 1\n",
    "hw-nohosts.yaml": HARDWARE,
    "hw-bad.yaml": HARDWARE + "hosts: 5\nchassis: text\n",
    "hw.csv": "a,b\n1,2\n",
    "trace-empty.csv": "",
    "trace-cols.csv": "a,b\n1,2\n",
    "trace-bad.csv": TRACE + "a,A,soon,1,1,1\n",
    "trace-neg.csv": TRACE + "a,A,-5,1,1,1\n",
    "trace-nan.csv": TRACE + "a,A,nan,1,1,1\n",
    "trace-inf.csv": TRACE + "a,A,1,1,1,inf\n",
    "trace-ok.csv": TRACE + "a,A,1,1,1,5\n",
    "trace-short.csv": TRACE + "a,A\n",
    "trace-twice.csv": TRACE + "a,A,1,1,1,5\na,A,1,1,1,5\n",
    "trace-float.csv": TRACE + "a,A,1,1.5,1,5\n",
    "log-cols.csv": HELIOS.replace("gpu_num,", ""),
    "log-head.csv": HELIOS,
    "log-gpus.csv": HELIOS + HELIOS_ROW.format(gpus="many", submitted="2020-06-01 00:00:00"),
    "log-date.csv": HELIOS + HELIOS_ROW.format(gpus=1, submitted="01.06.2020"),
    "log-may.csv": HELIOS + HELIOS_ROW.format(gpus=1, submitted="2020-05-01 00:00:00"),
    "log-none.csv": HELIOS + HELIOS_ROW.format(gpus=0, submitted="2020-06-01 00:00:00"),
    "kube-empty": "",
    "kube-bad": "a: [\n",
    "kube-list": "- 1\n",
    "kube-noctx": KUBECONFIG + "clusters: []\n",
    "kube-dead": KUBECONFIG + "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"
    "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\nusers: [{name: u, user: {}}]\n",
    "snap-empty": "",
    "snap-bad.json": "{}",
    "snap-text.json": "hello",
    "snap-list.json": "[1]",
    "snap-v.json": '{"apiVersion":"mews/v9","kind":"Snapshot"}',
    "res-text.jsonl": "hello\n",
    "res-list.jsonl": "[1]\n",
    "res-keys.jsonl": '{"sweep":"a","item":0,"items":2,"result":{}}\n',
    "res-empty.jsonl": "",
    "res-cut.jsonl": '{"sweep"',
    "quirk.yaml": "a: [\n",
    "waiver.yaml": "- 1\n",
    "cred": "",
    "cred2": "nocolon\n",
    "pem": "text\n",
    "img-list.yaml": "- 1\n",
    "img-bad.yaml": "images: {x: {process: 5}}\n",
    "img-kind.yaml": "x: {frob: 1}\n",
    "img-twice.yaml": "images:\n  a: idle\n  a: idle\n",
    "img-program.yaml": "images: {a: {simulate: {program: x}}}\n",
    "img-load.yaml": "images: {a: {simulate: {}, load: 500}}\n",
    "rec-text/recording.json": "{",
    "rec-list/recording.json": "[]",
    "rec-keys/recording.json": '{"dialect": "h3api"}',
}


ROWS = list(csv.DictReader(Path(__file__).with_name("wrong_inputs.csv").read_text(encoding="utf-8").splitlines()))
"""What follows ``mews``, the code, and what the one line says."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind, most of them wrong."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "emptydir").mkdir()
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "mixed").mkdir()
    os.mkfifo(folder / "mixed" / "pipe.yaml")
    return folder


@pytest.mark.parametrize(("line", "code", "says"), [(row["arguments"], int(row["code"]), row["says"]) for row in ROWS])
def test_what_is_wrong_is_one_line_and_a_code(line, code, says, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    before = sorted(path.name for path in folder.iterdir())
    assert exit_code(shlex.split(line)) == code
    out, err = capsys.readouterr()
    assert says in err
    assert (out, err.count("\n")) == ("", 1)
    assert "Traceback" not in err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_table_is_about_every_command():
    commands = {row["arguments"].split()[0] for row in ROWS}
    assert {command.name or command.callback.__name__ for command in cli.app.registered_commands} <= commands
    assert {name.split()[0] for name in all_commands()} <= commands
    assert len(ROWS) >= 150
