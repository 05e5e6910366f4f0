"""Pods that are processes behind the real API server: it proxies to them, and calls their webhooks by a Service."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from mews.certificates import make_certificates
from mews.kube.emulated.kubelet.mount_namespace import filters_lacking
from tests.emulator.nvml.gobuild import built
from tests.harness.as_nobody import NOBODY, as_nobody, lacking, run
from tests.harness.test_static_program import PROBE, ROOT, SOURCE, Client, await_true, service
from tests.upstream.up import cluster

pytestmark = [
    pytest.mark.wall,
    pytest.mark.usefixtures("programs"),
    pytest.mark.skipif(bool(filters_lacking()), reason=f"no network of pods: {filters_lacking()}"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]
OPTIONS = ["--cluster", "control-plane", "--stack", "none", "--speed", "10"]


def pod(name: str, **more: Any) -> dict[str, Any]:
    address = {"name": "COLOR", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    container = {
        "name": "main", "image": "case/static", "env": [address], "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
    }  # fmt: skip
    spec = {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": "tls"}}], **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def secured(folder: Path) -> tuple[dict[str, Any], ...]:
    """The pods' certificate, the Service of the second pod's webhook, and whom it is to be asked about."""
    made = make_certificates(folder, time.time(), ["hook.default.svc"])
    files = {"tls.crt": made.certificate, "tls.key": made.key}
    data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    tls = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls"}, "data": data}
    spec = {"selector": {"app": "two"}, "ports": [{"port": 443, "targetPort": 8443}]}
    hook = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": spec}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "hook.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": {"asked": "yes"}},
        "clientConfig": {
            "service": {"name": "hook", "namespace": "default", "path": "/review"},
            "caBundle": base64.b64encode(made.authority.read_bytes()).decode(),
        },
    }  # fmt: skip
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return tls, hook, {**kind, "metadata": {"name": "hook"}, "webhooks": [webhook]}


def check(client: Client, folder: Path) -> None:
    """What a user of a real cluster does."""
    client.apply(*secured(folder), pod("one"), pod("two"), service("one"))
    client.run("wait", "--for=condition=Ready", "pod/one", "pod/two", "--timeout", "60s")
    address = {name: client.run("get", "pod", name, "-o", "jsonpath={.status.podIP}") for name in ("one", "two")}
    assert all(ip.startswith("10.244.") for ip in address.values()), address
    seen = client.seen("one", dial=f"{address['two']}:8080")
    assert (seen["color"], seen["local"]) == (address["one"], f"{address['one']}:8080")
    assert [end.rpartition(":")[0] for end in seen["ends"]] == list(address.values())
    answer = json.loads(client.seen("one", ask=f"http://{address['two']}:8080/")["answer"])
    assert (answer["local"], answer["remote"].rpartition(":")[0]) == (f"{address['two']}:8080", address["one"])
    path = f"/api/v1/namespaces/default/services/one:80/proxy/?ask={quote('http://hook.default.svc:443/', safe='')}"

    def endpoints(name: str) -> str:
        words = ("-l", f"kubernetes.io/service-name={name}", "-o", "jsonpath={.items[*].endpoints[*].addresses[0]}")
        return client.run("get", "endpointslices", *words)

    await_true(lambda: (endpoints("one"), endpoints("hook")) == (address["one"], address["two"]), "no EndpointSlices")
    answer = json.loads(client.run("get", "--raw", path))
    assert answer["hostname"] == "one"
    assert "HTTP request to an HTTPS server" in answer["answer"]
    refused = client.refused("create", "-f", "-", stdin=json.dumps(asked_about("yes")))
    assert 'admission webhook "hook.example.com" denied the request: refused for 10.244.' in refused
    client.run("create", "-f", "-", stdin=json.dumps(asked_about("no")))
    check_in_hosts_network(client, address["two"])


def check_in_hosts_network(client: Client, address: str) -> None:
    """It has this machine's addresses, and finds pods by theirs."""
    command = ["/server", "healthy", f"http://{address}:8080/healthz"]
    container = {"name": "main", "image": "case/static", "command": command}
    spec = {"containers": [container], "hostNetwork": True, "restartPolicy": "Never"}
    client.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "host"}, "spec": spec})
    phase = lambda: client.run("get", "pod", "host", "-o", "jsonpath={.status.phase}")  # noqa: E731
    await_true(lambda: phase() in ("Succeeded", "Failed"), "it has not ended")
    assert phase() == "Succeeded", client.run("logs", "host")


def asked_about(answer: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"asked": answer}}}


@contextmanager
def images(folder: Path) -> Iterator[list[str]]:
    program = shutil.copy(built(SOURCE, cgo=False), folder / "server")
    file = folder / "images.yaml"
    file.write_text(yaml.safe_dump({"images": {"case/static": {"process": [str(program)]}}}))
    yield [*OPTIONS, "--images", str(file)]


def test_the_real_api_server_reaches_pods_and_their_webhooks(tmp_path: Path) -> None:
    with images(tmp_path) as options, cluster(options) as ready:
        check(Client(ready["kubeconfig"]), tmp_path)


def test_a_user_without_rights_has_it_as_well(tmp_path: Path) -> None:
    if lacking():
        pytest.skip(lacking())
    with tempfile.TemporaryDirectory(prefix="n", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        home, stage = folder / "home", folder / "stage"
        home.mkdir()
        stage.mkdir()
        sees = [Path(sys.base_prefix), Path(sys.prefix), ROOT, *programs_folder()]

        def as_user(argv: list[str], own: Path) -> list[str]:
            own.chmod(0o777)
            environment = ["env", f"HOME={home}", f"XDG_CACHE_HOME={home}", f"TMPDIR={own}"]
            return as_nobody([*environment, *argv], home=home, sees=sees, stage=stage)

        said = run(as_user([sys.executable, "-c", PROBE], home)).strip()
        if said:
            pytest.skip(f"no namespaces for users without rights: {said}")
        with images(folder) as options, cluster(options, started=as_user) as ready:
            check(Client(ready["kubeconfig"]), tmp_path)
            assert Path(f"/proc/{ready['pid']}").stat().st_uid == NOBODY


def programs_folder() -> Iterator[Path]:
    """Where kube-apiserver is, for whoever may not enter its user's home."""
    found = shutil.which("kube-apiserver")
    if found is not None:
        yield Path(found).resolve().parent


def pid_of(program: Path, hostname: str) -> int:
    """Of the process of that program whose pod has that name."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.path.samefile(entry / "exe", program) and f"{hostname}\n" in (entry / "root/etc/hosts").read_text():
                return int(entry.name)
    raise AssertionError(f"no process of {hostname}")


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").is_symlink() and "Z (" not in Path(f"/proc/{pid}/status").read_text()


def clear_up(ready: dict[str, Any]) -> None:
    """What a killed one leaves is removed as its user does it."""
    folder = str(Path(ready["kubeconfig"]).parents[1])
    env = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
    run([sys.executable, "-m", "mews.harness.cli", "down"], env=env)


def test_two_clusters_have_the_same_addresses_and_do_not_meet_when_one_is_killed(tmp_path: Path) -> None:
    with images(tmp_path) as options, cluster(options) as one, cluster(options) as two:
        clients = [Client(each["kubeconfig"]) for each in (one, two)]
        for client, word in zip(clients, ("first", "second"), strict=True):
            client.apply(*secured(tmp_path)[:1], pod("one", hostname=word, nodeName="host-1"))
        for client in clients:
            client.run("wait", "--for=condition=Ready", "pod/one", "--timeout", "60s")
        seen = [client.seen("one") for client in clients]
        assert [each["hostname"] for each in seen] == ["first", "second"]
        assert seen[0]["local"] == seen[1]["local"]
        pids = [pid_of(tmp_path / "server", word) for word in ("first", "second")]
        os.kill(one["pid"], signal.SIGKILL)
        await_true(lambda: not is_there(pids[0]), "a pod of the killed cluster is still there")
        assert is_there(pids[1])
        assert clients[1].seen("one")["hostname"] == "second"
        clear_up(one)
        port = int(one["api"].rpartition(":")[2])
        await_true(lambda: not listens(port), "the API server of the killed cluster is still there")


def listens(port: int) -> bool:
    """Whether a connection to that port of this machine is accepted."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
