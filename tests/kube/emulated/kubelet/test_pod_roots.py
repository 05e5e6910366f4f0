"""Containers that are processes have a root of their own: volumes, names, a program, and nothing else to write to."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.kube.client.port import ExecResult
from mews.kube.deviceplugin.port import DeviceNode
from mews.kube.emulated.kubelet import namespace_entry, namespace_mounts
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.hosts_files import with_short_names
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.mount_namespace import ContainerRoot, namespaces_lacking
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits
from mews.kube.emulated.kubelet.pod_roots import PodRoots
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.volumes.host_paths import NodeHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(namespaces_lacking()), reason=f"no namespaces: {namespaces_lacking()}"),
]

Exec = Callable[..., Awaitable[ExecResult]]


class Api:
    """One ConfigMap."""

    data = {"a": "1"}  # noqa: RUF012

    async def get(self, resource: Any, name: str, *, namespace: str | None = None) -> dict[str, Any]:
        return {"data": dict(self.data)}


def launch(
    *command: str, mounts: Any = (), volumes: Any = (), process: Any = ("sh",), name: str = "p", **more: Any
) -> Launch:
    """A start of a container of the image ``team/app``; ``spec`` and ``container`` add fields."""
    container = {"name": "main", "image": "team/app", "volumeMounts": list(mounts), **more.pop("container", {})}
    spec = {"nodeName": "n1", "containers": [container], "volumes": list(volumes), **more.pop("spec", {})}
    pod = {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": spec}
    return Launch(pod, "main", 0, Image("team/app", tuple(process)), command, (), {}, ip="127.9.9.9", **more)


def runtime_in(folder: Path, *, host_allowed: bool = False) -> ProcessRuntime:
    kube: Any = lambda: Api()  # noqa: E731
    paths = NodeHostPaths(lambda node: folder / node, lambda host: None)
    pods = folder / "pods"
    roots = PodRoots(pods, PodVolumes(kube, pods, paths), shared=[pods], host_allowed=host_allowed)
    return ProcessRuntime(pods, roots=roots)


def said(folder: Path, start: Launch, **how: Any) -> list[str]:
    """The lines that a container printed until it ended."""

    async def main() -> bytes:
        runtime = runtime_in(folder, **how)
        try:
            process = await runtime.start(start)
            async with asyncio.timeout(20):
                await process.wait()
            return process.log.read()
        finally:
            await runtime.close()

    return asyncio.run(main()).decode().splitlines()


RESOLVER = Path("/etc/resolv.conf").read_text() if Path("/etc/resolv.conf").exists() else ""
CONFIG = {"name": "cm", "configMap": {"name": "cm"}}
EMPTY: dict[str, Any] = {"name": "e", "emptyDir": {}}


@pytest.mark.parametrize(
    "path", ["/etc/not/here", "/mews-test/deep/er", "/var/run/x/y", "/tmp/k8s-webhook-server/certs"]
)
def test_a_volume_is_where_it_is_mounted_and_nowhere_else(tmp_path: Path, path: str) -> None:
    """Also where this machine has no such folder; its own neighbours stay visible."""
    look = f"cat {path}/a; echo; ls -d /etc/passwd /usr/bin; touch {path}/new 2>/dev/null || echo refused"
    found = said(tmp_path, launch("sh", "-c", look, mounts=[{"name": "cm", "mountPath": path}], volumes=[CONFIG]))
    assert found == ["1", "/etc/passwd", "/usr/bin", "refused"]
    assert not os.path.lexists(path)


def test_the_machine_is_read_only_and_what_a_container_writes_is_its_own(tmp_path: Path) -> None:
    places = ["/etc", "/usr", "/var", "/", "/etc/app", str(tmp_path), "/tmp", "/cache", "$HOME", "/dev/shm/../null"]
    look = "; ".join(f"(echo x > {place}/mews-x) 2>/dev/null && echo {place}" for place in places[:-1])
    mounts = [{"name": "cm", "mountPath": "/etc/app"}, {"name": "e", "mountPath": "/cache"}]
    found = said(tmp_path, launch("sh", "-c", f"{look}; echo y > /dev/null", mounts=mounts, volumes=[CONFIG, EMPTY]))
    work = tmp_path / "pods" / "uid-p" / "main" / "work"
    assert found == ["/tmp", "/cache", str(work)]
    assert (work / "mews-x").exists()
    assert not Path("/tmp/mews-x").exists()


def test_device_nodes_of_the_node_stand_at_their_paths(tmp_path: Path) -> None:
    nodes = []
    for number in range(2):
        file = tmp_path / f"node-{number}"
        file.write_text("")
        nodes.append(DeviceNode(f"/dev/mews-{number}", str(file)))
    look = "ls /dev | grep mews-; echo open >> /dev/mews-1; echo x > /dev/null; touch /dev/mews-2 && echo made"
    found = said(tmp_path, launch("sh", "-c", look, edits=ContainerEdits(devices=tuple(nodes))))
    assert found == ["mews-0", "mews-1", "made"], "a container's /dev is a tmpfs, as of containerd"
    assert [(tmp_path / f"node-{number}").read_text() for number in range(2)] == ["", "open\n"]
    assert not list(Path("/dev").glob("mews-*"))


def test_access_to_this_machine_can_be_allowed(tmp_path: Path) -> None:
    target = tmp_path / "allowed"
    found = said(tmp_path, launch("sh", "-c", f"echo x > {target} && echo done"), host_allowed=True)
    assert found == ["done"]
    assert target.read_text() == "x\n"


def test_read_only_volumes_and_a_read_only_root_cannot_be_written(tmp_path: Path) -> None:
    mounts = [{"name": "e", "mountPath": "/w"}, {"name": "e", "mountPath": "/r", "readOnly": True}]
    look = "for p in /w /r /tmp; do (echo x > $p/f) 2>/dev/null && echo $p; done; ls /r"
    fixed = {"securityContext": {"readOnlyRootFilesystem": True}}
    assert said(tmp_path, launch("sh", "-c", look, mounts=mounts, volumes=[EMPTY], container=fixed)) == ["/w", "f"]


def test_a_container_has_the_resolver_that_its_pod_asks_for(tmp_path: Path) -> None:
    spec = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.9"], "searches": ["team.example"]}}
    found = said(tmp_path, launch("sh", "-c", "cat /etc/resolv.conf", spec=spec))
    assert found == ["nameserver 192.0.2.9", "search team.example"]
    assert said(tmp_path, launch("sh", "-c", "cat /etc/resolv.conf")) == RESOLVER.splitlines()


def test_a_pod_of_a_subdomain_knows_its_whole_name_and_can_be_called_by_it(tmp_path: Path) -> None:
    spec = {"hostname": "job-0", "subdomain": "jobs"}
    look = launch("sh", "-c", "hostname; grep 127.9.9.9 /etc/hosts", spec=spec)
    named = "127.9.9.9\tjob-0.jobs.ns.svc.cluster.local\tjob-0"
    assert said(tmp_path, look) == ["job-0", named]
    whole = launch("sh", "-c", "hostname; grep 127.9.9.9 /etc/hosts", spec={**spec, "setHostnameAsFQDN": True})
    assert said(tmp_path, whole) == ["job-0.jobs.ns.svc.cluster.local", named]
    assert said(tmp_path, launch("hostname", spec={"setHostnameAsFQDN": True})) == ["p"]


def test_a_name_that_is_too_long_for_the_kernel_is_refused(tmp_path: Path) -> None:
    spec = {"hostname": "j" * 40, "subdomain": "jobs", "setHostnameAsFQDN": True}
    with pytest.raises(StartError, match="is the max, 66 characters requested") as raised:
        said(tmp_path, launch("hostname", spec=spec))
    assert raised.value.reason == "CreateContainerConfigError"


def test_an_images_files_are_where_it_has_them_and_a_volume_covers_them(tmp_path: Path) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "a").write_text("of the image")
    look = launch("sh", "-c", "cat /opt/app/a; echo; touch /opt/app/b 2>/dev/null || echo refused")
    files = {"/opt/app": str(assets)}
    assert said(tmp_path, replace(look, image=replace(look.image, files=files))) == ["of the image", "refused"]
    covered = launch("cat", "/opt/app/a", mounts=[{"name": "cm", "mountPath": "/opt/app"}], volumes=[CONFIG])
    assert said(tmp_path, replace(covered, image=replace(covered.image, files=files))) == ["1"]


def test_a_command_among_an_images_files_is_that_file(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "run"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho the file\n")
    program.chmod(0o755)
    start = launch("/opt/app/run", process=["echo", "the process"])
    image = replace(start.image, files={"/opt/app": str(program.parent)})
    assert said(tmp_path, replace(start, image=image)) == ["the file"]


def test_a_program_that_this_machine_lacks_is_named_where_a_command_stands_for_it(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="exec: '/manager': its image's program is not on this machine: /no/such"):
        said(tmp_path, launch("/manager", process=["/no/such"]))


def test_a_host_path_is_the_nodes(tmp_path: Path) -> None:
    volume = {"name": "h", "hostPath": {"path": "/var/run/cdi"}}
    mounts = [{"name": "h", "mountPath": "/mews-test-cdi"}]
    said(tmp_path, launch("sh", "-c", "echo main > /mews-test-cdi/main", mounts=mounts, volumes=[volume]))
    assert (tmp_path / "n1" / "run-cdi" / "main").read_text() == "main\n"


def test_a_containers_devices_are_its_own(tmp_path: Path) -> None:
    script = "ls /dev; echo x > /dev/null; echo x > /dev/shm/x && ls /dev/shm; touch /dev/mews-y && echo made"
    found = said(tmp_path, launch("sh", "-c", script))
    assert {"null", "zero", "urandom", "shm"} <= {*found}
    assert not {"loop0", "vda", "sda", "mem"} & {*found}
    assert found[-1] == "made"
    assert "x" in found
    assert not list(Path("/dev").glob("mews-*"))
    assert not Path("/dev/shm/x").exists()
    shared = said(tmp_path, launch("sh", "-c", "touch /dev/shm/mews-ipc", name="host", spec={"hostIPC": True}))
    there = Path("/dev/shm/mews-ipc")
    assert (shared, there.exists()) == ([], True)
    there.unlink()


def test_containers_of_a_pod_share_their_memory(tmp_path: Path) -> None:
    async def main() -> bytes:
        runtime = runtime_in(tmp_path)
        first = await runtime.start(launch("sh", "-c", "echo one > /dev/shm/x"))
        await first.wait()
        second = await runtime.start(launch("sh", "-c", "cat /dev/shm/x"))
        other = await runtime.start(launch("sh", "-c", "ls /dev/shm", name="other"))
        await asyncio.gather(second.wait(), other.wait())
        await runtime.close()
        return second.log.read() + other.log.read()

    assert asyncio.run(main()) == b"one\n"


@pytest.mark.parametrize("path", ["/dev/termination-log", "/var/why"])
def test_a_container_leaves_its_last_words(tmp_path: Path, path: str) -> None:
    async def main() -> bytes:
        runtime = runtime_in(tmp_path)
        words = launch("sh", "-c", f"echo why > {path}", container={"terminationMessagePath": path})
        process = await runtime.start(words)
        await process.wait()
        await runtime.close()
        return process.kernel.last_words()

    assert asyncio.run(main()) == b"why\n"
    assert not Path(path).exists()


def test_services_of_its_namespace_have_short_names(tmp_path: Path) -> None:
    lines = "10.96.0.1 api.other api.other.svc\n10.96.0.2 web.ns web.ns.svc\n"
    assert with_short_names(lines, "ns") == "10.96.0.1 api.other api.other.svc\n10.96.0.2 web.ns web.ns.svc web\n"
    assert with_short_names("1.2.3.4 a.sub.ns a.sub.ns.svc\n", "ns") == "1.2.3.4 a.sub.ns a.sub.ns.svc a.sub\n"


def test_names_are_the_pods(tmp_path: Path) -> None:
    aliases = {"hostAliases": [{"ip": "127.1.2.3", "hostnames": ["other"]}]}
    found = said(tmp_path, launch("sh", "-c", "hostname; cat /etc/hosts", name="pod-a", spec=aliases))
    assert found[0] == "pod-a"
    assert "127.9.9.9\tpod-a" in found
    assert "127.1.2.3\tother" in found
    assert os.uname().nodename != "pod-a"
    of_node = said(tmp_path, launch("sh", "-c", "hostname", name="pod-b", spec={"hostNetwork": True}))
    assert of_node == ["n1"]
    assert said(tmp_path, launch("hostname", name="c", spec={"hostname": "mine"})) == ["mine"]


@pytest.mark.parametrize(
    ("spec", "container", "shown"),
    [
        ({}, {}, f"{os.getuid()}:{os.getgid()}"),
        ({"runAsUser": 1234, "runAsGroup": 77}, {}, "1234:77"),
        ({"runAsUser": 1234, "fsGroup": 2000}, {"runAsUser": 5}, "5:2000"),
        ({"runAsNonRoot": True}, {}, f"65532:{os.getgid()}"),
    ],
)
def test_users_are_called_what_the_pod_says(tmp_path: Path, spec: Any, container: Any, shown: str) -> None:
    """Files of the pod's volumes are the container's own."""
    start = launch(
        "sh", "-c", "echo $(id -u):$(id -g); stat -c %u:%g /cache; echo x > /cache/x && echo written",
        mounts=[{"name": "e", "mountPath": "/cache"}], volumes=[EMPTY],
        spec={"securityContext": spec}, container={"securityContext": container},
    )  # fmt: skip
    assert said(tmp_path, start) == [shown, shown, "written"]


def test_who_must_not_be_root_and_asks_for_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError) as caught:
        said(tmp_path, launch("true", container={"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}))
    text = 'container\'s runAsUser breaks non-root policy (pod: "p_ns(uid-p)", container: main)'
    assert caught.value.message == text


def program(folder: Path, name: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho {name} as $0: "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_the_images_program_stands_where_the_command_names_one(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "my-build")
    program(tmp_path / "bin", "worker")
    assert said(tmp_path, launch("/manager", "--x", process=[own])) == ["my-build as /manager: --x"]
    assert said(tmp_path, launch("/worker", process=[own])) == ["worker as /worker:"]  # of several, by its name
    assert said(tmp_path, launch("my-manager", process=[own])) == ["my-build as /usr/local/bin/my-manager:"]
    wrapped = said(tmp_path, launch("/manager", "a b", process=["sh", own, "-c d"]))
    assert wrapped == [f"my-build as {own}: -c d a b"]
    assert said(tmp_path, launch("/bin/echo", "1", process=[own])) == ["1"]  # this machine has it


def test_a_command_that_nobody_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="No such file or directory"):
        said(tmp_path, launch("/no/such/program"))


def test_a_program_in_a_volume_is_not_replaced(tmp_path: Path) -> None:
    own = program(tmp_path / "bin", "my-build")
    mounts = [{"name": "e", "mountPath": "/tools"}]
    with pytest.raises(StartError, match="No such file or directory"):
        said(tmp_path, launch("/tools/run", mounts=mounts, volumes=[EMPTY], process=[own]))


def test_a_working_folder_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert said(tmp_path, launch("sh", "-c", "pwd; echo x > y; cat y", working_dir="/folder/of/mine")) == [
        "/folder/of/mine",
        "x",
    ]


def test_commands_see_what_the_container_sees_and_updates_arrive(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = runtime_in(tmp_path)
        try:
            mounts = [{"name": "cm", "mountPath": "/etc/app"}, {"name": "cm", "mountPath": "/one", "subPath": "a"}]
            start = launch("sleep", "30", mounts=mounts, volumes=[CONFIG], working_dir="/mews-work")
            process = await runtime.start(start)
            done = await process.exec(["sh", "-c", "pwd; hostname; cat /etc/app/a /one"])
            assert done.stdout.decode().splitlines() == ["/mews-work", "p", "11"]
            Api.data = {"a": "2"}
            assert runtime._roots is not None
            await runtime._roots._volumes.refresh(start.pod)
            done = await process.exec(["cat", "/etc/app/a", "/one"])
            assert done.stdout == b"21"  # a file mounted by itself stays what it was
        finally:
            Api.data = {"a": "1"}
            await runtime.close()

    asyncio.run(main())


def test_what_ran_before_is_not_in_tmp(tmp_path: Path) -> None:
    assert said(tmp_path, launch("sh", "-c", "ls /tmp/mine; touch /tmp/mine"))[0].startswith("ls: ")
    assert said(tmp_path, launch("sh", "-c", "ls /tmp/mine; touch /tmp/mine"))[0].startswith("ls: ")


def test_an_unprivileged_user_gets_the_same(tmp_path: Path) -> None:
    """Whoever runs these tests as root does it as nobody; others have just done it."""
    python = shutil.which("python3", path="/usr/bin")
    if os.getuid() != 0 or python is None:
        pytest.skip("not root, or no python3 in /usr/bin")
    shared = Path("/dev/shm") / f"mews-roots-{os.getpid()}"
    shutil.rmtree(shared, ignore_errors=True)
    for folder in ("stage", "volume"):
        (shared / folder).mkdir(parents=True)
        os.chown(shared / folder, 65534, 65534)
    script = shared / Path(namespace_entry.__file__).name
    for module in (namespace_entry, namespace_mounts):
        shutil.copy(module.__file__, shared)
    root = ContainerRoot((), shared / "stage", "/", 0, 0, hostname="h")
    words = ["contain", "2", *root.words, "rw", str(shared / "volume"), "/etc/a/b", "--"]
    look = ["sh", "-c", "id -u; hostname; echo x > /etc/a/b/c; cat /etc/a/b/c; touch /usr/x /etc/x /x"]
    try:
        asked = subprocess.run(
            [python, "-I", "-S", str(script), *words, *look],
            user=65534, group=65534, extra_groups=[], capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert asked.stdout.splitlines() == ["0", "h", "x"], asked.stderr
        assert asked.stderr.count("Read-only file system") == 3
        assert (shared / "volume" / "c").stat().st_uid == 65534
    finally:
        shutil.rmtree(shared)


DYING = """
import asyncio, sys
from pathlib import Path
from tests.kube.emulated.kubelet.test_pod_roots import launch, runtime_in
async def main():
    runtime = runtime_in(Path(sys.argv[1]))
    process = await runtime.start(launch("sleep", "60"))
    print(process.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_a_container_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", DYING, str(tmp_path)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        handle = os.pidfd_open(child)
        parent.kill()
        parent.wait()
    import select

    try:
        assert select.select([handle], [], [], 10)[0], "the container is still there"
    finally:
        os.close(handle)


def test_what_this_python_imports_is_found_in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation may be anywhere, and its packages elsewhere."""
    with tempfile.TemporaryDirectory(dir="/tmp") as packages:
        assert said(tmp_path, launch("ls", "/tmp"))[0] != Path(packages).name
        monkeypatch.syspath_prepend(packages)
        assert Path(packages).name in said(tmp_path, launch("ls", "/tmp"))
