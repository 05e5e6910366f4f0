"""Collected files of every kind, recognised by their content; what cannot be known is a comment or a line."""

import json
import stat
from pathlib import Path

import pytest
import yaml

from mews.harness.catalogue.files import recording_folder
from mews.harness.cli import exit_code
from mews.harness.errors import BadInputError
from mews.harness.recording.collected import collected
from mews.harness.recording.inference import recorded_files
from mews.harness.recording.observations import SeenOperation
from mews.harness.recording.stamps import dated, zone_offset
from mews.kube.api.objects import timestamp
from tests.harness.recording.seen import PLACES, T, raw_pod

SECRETS = ("hunter2", "s3cr3t", "t0ken", "passw0rd", "k3y-data")


def listing(places):
    rows = [
        {"dev_type": "GPU", "Dev_GID": d, "Host_Port#": p or "", "OB_GPU_GUID": f"GPU-{d}"} for d, p in places.items()
    ]
    return json.dumps([*rows, {"Port#": "1", "Port_GID": "01h"}, {"Port#": "2", "Port_GID": "02h"}])


def node(name, gpus, at=T):
    allocatable = {"cpu": "8", "falcon.com/gpu": str(gpus)}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": timestamp(at)}
    status = {"allocatable": allocatable, "capacity": {**allocatable, "memory": "16Gi"}, "conditions": [ready]}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": name}, "status": status}


def a_list(*items):
    return {"kind": "List", "apiVersion": "v1", "items": list(items)}


def with_secrets(name="trainer"):
    container = {
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "envFrom": [{"secretRef": {"name": "s3cr3t"}}],
        "args": ["--token=t0ken"],
        "command": ["run", "passw0rd"],
    }
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"env": "hunter2"}', "vault": "k3y-data"}
    volume = {"name": "v", "secret": {"secretName": "s3cr3t"}}
    return raw_pod(name, 3, T + 2, container=container, metadata={"annotations": applied}, volumes=[volume])


def folder_of(tmp_path, **files):
    folder = tmp_path / "collected"
    folder.mkdir()
    for name, content in files.items():
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path = folder / name.replace("__", ".")
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def both_of(tmp_path, folder, *more):
    """The exit code and the texts that were written."""
    out = tmp_path / "bug.yaml"
    code = exit_code(["record", "--from", str(folder), "--out", str(out), *more])
    written = [path.read_text() for path in (out, tmp_path / "bug-hardware.yaml") if path.exists()]
    return code, "\n".join(written)


NODES = a_list(node("host-1", 2, T + 60), node("host-2", 2, T + 60))
MOVED = {**PLACES, "000300": None}
LOG = "\n".join(f"{timestamp(T + t)} {listing(places)}" for t, places in ((0, PLACES), (4, MOVED), (60, MOVED)))


def test_the_included_recording_of_a_real_control_plane_shows_the_move_that_stopped(tmp_path, capsys):
    code, text = both_of(tmp_path, recording_folder(Path("lab-bug")))
    assert code == 0
    assert "went wrong: device 000500 was taken off port 2" in capsys.readouterr().out
    assert "kind: never-trains" in text
    assert not [word for word in SECRETS if word in text]
    assert exit_code(["run", str(tmp_path / "bug.yaml")]) == 1
    assert 'pod/default/trainer with phase "Running"' in capsys.readouterr().out


def test_yaml_json_watches_and_audit_logs_show_the_same_pod(tmp_path):
    pod = raw_pod("trainer", 3, T + 2)
    event = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "verb": "create"}
    event |= {"objectRef": {"resource": "pods", "name": "trainer", "namespace": "default"}, "responseObject": pod}
    event |= {"stageTimestamp": timestamp(T + 2), "responseStatus": {"code": 201}}
    forms = {
        "yaml": yaml.safe_dump(a_list(pod)),
        "json": json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [{k: pod[k] for k in pod if k != "kind"}]}),
        "watch": "".join(f"---\n{yaml.safe_dump({'type': kind, 'object': pod})}" for kind in ("ADDED", "MODIFIED")),
        "single": json.dumps(pod, indent=1),
        "audit": json.dumps(event) + "\n",
    }
    steps = {}
    for name, text in forms.items():
        (tmp_path / name).mkdir()
        seen = collected(folder_of(tmp_path / name, pods__txt=text, nodes__json=NODES, chassis__log=LOG))
        files = recorded_files(seen, name="lab", hardware_file="h.yaml")
        steps[name] = files.scenario["steps"]
    assert [name for name in forms if steps[name] != steps["yaml"]] == []
    assert [key for step in steps["yaml"] for key in step if key in ("apply", "fault")] == ["fault", "apply"]


def test_nothing_that_may_be_secret_is_written_and_files_are_their_owners(tmp_path):
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"key": "k3y-data"}}
    config = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"key": "passw0rd"}}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j", "namespace": "default"}}
    job |= {"spec": {"template": {"spec": with_secrets()["spec"]}}}
    owner = {"kind": "Job", "name": "j", "uid": "j", "controller": True}
    owned = with_secrets("owned")
    owned["metadata"]["ownerReferences"] = [owner]
    log = f"{timestamp(T + 3)} host-1 kubelet: started with hunter2 t0ken\n"
    folder = folder_of(
        tmp_path,
        all__yaml=yaml.safe_dump(a_list(with_secrets(), owned, secret, config, job)),
        n__json=NODES,
        k__log=log,
    )
    code, text = both_of(tmp_path, folder)
    assert code == 0
    assert [word for word in SECRETS if word in text] == []
    assert "left out: volumes, annotation vault" in text
    assert "kinds that a replay does not use: 1 ConfigMap, 1 Secret" in text
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("bug.yaml", "bug-hardware.yaml")} == {0o600}


def test_redacted_files_name_no_namespace_pod_host_or_image(tmp_path):
    pod = raw_pod("resnet-train", 3, T + 2, metadata={"namespace": "team-blue", "labels": {"run": "resnet-train"}})
    message = "0/2 nodes fit resnet-train: rack7-a, rack7-b"
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": message}]
    nodes = a_list(node("rack7-a", 2, T + 60), node("rack7-b", 2, T + 60))
    xid = "NVRM: Xid (PCI:0000:23:00): 31, pid=1"
    log = f"{timestamp(T + 5)} rack7-b kernel: {xid}\nnot dated {xid}\n"
    folder = folder_of(tmp_path, p__json=a_list(pod), n__json=nodes, chassis__log=LOG, rack7_b__log=log)
    (folder / "rack7_b.log").rename(folder / "rack7-b.log")
    code, text = both_of(tmp_path, folder)
    assert code == 0
    assert [
        word for word in ("resnet-train", "team-blue", "rack7-a", "rack7-b", "registry.test") if word not in text
    ] == []
    code, text = both_of(tmp_path, folder, "--redact", "--as", "public")
    assert code == 0
    assert [word for word in ("resnet", "team-blue", "rack7", "registry.test") if word in text] == []
    assert "0/2 nodes fit pod-1: host-1, host-2" in text
    assert exit_code(["run", str(tmp_path / "bug.yaml")]) == 1


def test_a_chassis_log_of_requests_shows_which_answers_were_wrong(tmp_path):
    asked = 'POST /h3api/v1/allocation {"gep":"0","port_gid":"01h","dev_gid":"000300"}'
    lines = [
        f"{timestamp(T)} GET /h3api/v1/resources 200 {listing(PLACES)}",
        f'{timestamp(T + 3)} DELETE /h3api/v1/allocation {{"gep":"0","dev_gid":"000300"}} 200 {{"result":[true]}}',
        f"{timestamp(T + 4)} GET /h3api/v1/resources 200 {listing({**PLACES, '000300': None})}",
        f"{timestamp(T + 5)} {asked} 503 Internal Server Error",
        f"{timestamp(T + 25)} {asked} EOF",
    ]
    seen = collected(folder_of(tmp_path, chassis__log="\n".join(lines), nodes__json=NODES))
    assert [(each.kind, each.device, each.port, each.answer) for each in seen.operations] == [
        ("detach", "000300", None, "done"),
        ("attach", "000300", "1", "error"),
        ("attach", "000300", "1", "lost"),
    ]
    rows = [{"time": timestamp(T + 5), "method": "POST", "path": "/allocation", "status": 204, "answer": ""}]
    rows[0]["body"] = {"devid": "000300", "hostport": "1"}
    (tmp_path / "json").mkdir()
    seen = collected(folder_of(tmp_path / "json", log__json="\n".join(map(json.dumps, rows)), nodes__json=NODES))
    assert seen.operations == (SeenOperation("A", T + 5, "attach", "000300", "1", "done", 204),)


def test_a_recording_of_conform_gives_the_hardware(tmp_path):
    from mews.harness.conformance.exchange import Exchange
    from mews.harness.conformance.recording import record

    record(
        tmp_path / "c" / "box", "h3api", [Exchange("GET", "/h3api/v1/resources", {}, "", 200, {}, listing(PLACES), 0.1)]
    )
    code, text = both_of(tmp_path, tmp_path / "c")
    assert code == 0
    assert "- id: '000800'" in text
    assert "a recording of conform has no dates" in text
    assert "no objects of the cluster were recorded" in text


def test_logs_of_other_zones_without_dates_or_hosts_are_comments(tmp_path):
    xid = "kernel: NVRM: Xid (PCI:0000:23:00): 79, pid=1"
    folder = folder_of(
        tmp_path,
        nodes__json=NODES,
        pods__json=a_list(raw_pod("one", 1, T + 2, node="host-1")),
        zone__log=f"{timestamp(T + 5 + 7200).replace('Z', '')} host-1 {xid}",
        dmesg__log=f"[12.5] {xid}",
        nobody__log=f"{timestamp(T + 5)} elsewhere {xid}",
        days__log=f"{timestamp(T - 9 * 86400)} host-1 {xid}",
        binary__bin=b"\x00\x01",
        latin__txt=b"caf\xe9",
        empty__txt="",
        prose__txt="nothing of use",
    )
    code, text = both_of(tmp_path, folder)
    assert code == 0
    for note in (
        "zone.log: its clock is +120 minutes off, or in another zone: corrected by that",
        "dmesg.log: 1 GPU errors have no date",
        "nobody.log: its host is not known",
        "days.log: its dates are days away",
        "binary.bin: skipped, because it is not text",
        "latin.txt: skipped, because it is not text",
        "empty.txt: empty",
        "prose.txt: not recognised",
    ):
        assert f"# not known: {note}" in text
    assert text.count("kind: xid") == 1


def test_clocks_minutes_apart_are_brought_together_with_a_comment(tmp_path):
    late = "\n".join(
        f"{timestamp(T + 600 + t)} {listing(places)}"
        for t, places in ((0, PLACES), (4, {**PLACES, "000300": None}), (6, {**PLACES, "000300": "1"}))
    )
    pods = a_list(raw_pod("trainer", 3, T + 2, node="host-1", started=T + 15))
    nodes = a_list(node("host-1", 3, T + 60), node("host-2", 1, T + 60))
    code, text = both_of(tmp_path, folder_of(tmp_path, chassis__log=late, p__json=pods, n__json=nodes))
    assert code == 0
    assert "the chassis' clock is +10.0 minutes off the cluster's" in text
    assert "edit:" not in text


def test_an_audit_log_without_contents_names_the_pods_and_a_deletion(tmp_path):
    reference = {"resource": "pods", "name": "gone", "namespace": "default"}
    head = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "objectRef": reference}
    lines = [{**head, "verb": verb, "stageTimestamp": timestamp(T + t)} for verb, t in (("create", 3), ("delete", 9))]
    lines[1]["objectRef"] = {**reference, "name": "one"}
    audit = "\n".join(map(json.dumps, lines)) + '\n{"cut": '
    folder = folder_of(
        tmp_path, audit__log=audit, n__json=NODES, p__json=a_list(raw_pod("one", 1, T + 2, node="host-1"))
    )
    code, text = both_of(tmp_path, folder)
    assert code == 0
    assert "pod default/gone was created, but the log does not hold its spec" in text
    assert "delete:" in text


@pytest.mark.parametrize("files", [{}, {"a__bin": b"\x00"}, {"log__txt": "2026-01-01T00:00:00Z nothing\n"}])
def test_nothing_to_record_is_bad_input(files, tmp_path):
    with pytest.raises(BadInputError, match="no objects of Kubernetes and no listing of a chassis found"):
        collected(folder_of(tmp_path, **files))


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-11-24T15:31:28Z x", 1795534288.0),
        ("2026-11-24T16:31:28+0100 host x", 1795534288.0),
        ("2026-11-24 15:31:28,500 x", 1795534288.5),
        ("I1124 15:31:28.500000   16794 server.go:175] x", 1795534288.5),
        ("Nov 24 15:31:28 host-1 kernel: x", 1795534288.0),
        ("[12.5] x", None),
        ("2026-13-45T99:31:28Z x", None),
    ],
)
def test_dates_at_the_beginning_of_lines(line, at):
    assert dated(line, 2026)[0] == at


def test_a_zone_is_a_whole_number_of_quarters_of_an_hour():
    assert zone_offset([T + 7200], T, T + 60) == -7200
    assert zone_offset([T + 30], T, T + 60) == 0.0
    assert zone_offset([T + 20 * 3600], T, T + 60) is None
