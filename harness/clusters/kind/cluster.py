"""A kind cluster of our own: created with one worker per host, used again by later scenarios, deleted in the end.

Which one is ours is written down in a folder (``mews.harness.leftovers.kind_state``): a run that was killed, or told
to keep it, leaves one without a living owner, which the next run adopts and ``mews down`` removes. Blocking.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mews.harness.clusters.kind.features import PLAIN, ClusterFeatures, kind_config
from mews.harness.clusters.kind.image.build import component_image
from mews.harness.clusters.kind.processors import ask_nothing_of_nodes, give_processors, processors_of
from mews.harness.clusters.kind.tools import NODE_IMAGE, call, needed
from mews.harness.clusters.real.systems import default_namespace
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.errors import RequirementError
from mews.harness.leftovers import (
    KIND_FILE,
    RuntimeFolder,
    delete_kind_cluster,
    end_creation,
    kept_kind_clusters,
    kind_state,
)
from mews.harness.manifests.foreign import PROGRAMS_FOLDER
from mews.own_files import write_own

Notify = Callable[[str], None]

_CREATE_S = 600.0
_INOTIFY = "no inotify instances are left: delete other kind clusters, or raise fs.inotify.max_user_instances"


class KindCluster:
    """One kind cluster over several scenarios. ``keep``: it outlives this process."""

    def __init__(self, *, keep: bool = False, notify: Notify = lambda _: None) -> None:
        self._keep = keep
        self._notify = notify
        self._owned: RuntimeFolder | None = None
        self._name = ""
        self._hosts: tuple[str, ...] = ()
        self._loaded = ""
        self._brought: dict[str, str] = {}
        self._image: str | None = None
        self._cpus: dict[str, int] = {}
        self._features = PLAIN
        self._programs: dict[str, str] = {}
        self._whole = False
        self._interrupted = False

    @property
    def kubeconfig(self) -> Path:
        """The cluster's, once it is there."""
        assert self._owned is not None
        return self._owned.folder / "kubeconfig"

    def container(self, host: str) -> str:
        """Return the Docker container that is that host's node."""
        number = self._hosts.index(host) + 1
        return f"{self._name}-worker{number if number > 1 else ''}"

    @property
    def control_plane(self) -> str:
        """The Docker container with the control plane."""
        return f"{self._name}-control-plane"

    def target(
        self,
        hosts: Sequence[str],
        cpus: Mapping[str, int] = MappingProxyType({}),
        features: ClusterFeatures = PLAIN,
    ) -> DeploymentTarget:
        """Return the cluster with at least these hosts, with so many processors (those of this machine), with those
        features and no others, and our image.

        Raises RequirementError for what this machine does not have.
        """
        needed()
        if self._owned is None:
            self._adopt()
        self._check()
        if self._owned is not None and not set(hosts) <= set(self._hosts):
            self._notify(f"the cluster has the hosts {', '.join(self._hosts)}: a new one is needed")
            self._delete()
        if self._owned is not None and self._features != features:
            self._notify(f"the cluster has {self._features}: a new one is needed")
            self._delete()
        if self._owned is None:
            self._create(hosts, features)
        if self._image is None:
            self._notify("building the component image")
            assert self._owned is not None
            self._image = component_image(env=self._owned.env())
        self._check()
        if self._loaded != self._image:
            self._load(self._image)
            self._loaded = self._image
            self._note()
        self._equip(cpus)
        nodes = {host: host for host in self._hosts}
        namespace, image = default_namespace(), self._image
        return DeploymentTarget(
            self.kubeconfig, None, namespace, image, nodes, ours=self._hosts, prefix=f"{namespace}-"
        )

    def bring(self, images: Sequence[str]) -> dict[str, str]:
        """Load those of these images that Docker has here into the nodes; name -> what Docker calls its content.

        Raises RequirementError.
        """
        known = {image: identity for image in images if (identity := image_identity(image)) is not None}
        for image, identity in known.items():
            self._check()
            if self._brought.get(image) != identity:
                self._load(image)
                self._brought[image] = identity
                self._note()
        return known

    def bring_programs(self, files: Mapping[str, Path]) -> dict[str, str]:
        """Put these files into a folder of the control plane's node; name -> what tells its content from others.

        Raises RequirementError.
        """
        known = {name: _digest(file) for name, file in files.items()}
        node = self.control_plane
        for name, identity in known.items():
            self._check()
            if self._programs.get(name) != identity:
                self._notify(f"copying {name} into {node}")
                there = f"{PROGRAMS_FOLDER}/{name}"
                call(["docker", "exec", node, "mkdir", "-p", PROGRAMS_FOLDER])
                call(["docker", "cp", "--follow-link", str(files[name]), f"{node}:{there}"])
                call(["docker", "exec", node, "chmod", "755", there])  # a pod's user is another one
                self._programs[name] = identity
        return known

    def interrupt(self) -> None:
        """From another thread: let ``place`` end soon, by raising RequirementError."""
        self._interrupted = True
        if self._owned is not None:
            end_creation(self._owned.folder)

    def _check(self) -> None:
        if self._interrupted:
            raise RequirementError("interrupted")

    def _adopt(self) -> None:
        """Take over a cluster that an earlier run left, if it lives."""
        for folder in kept_kind_clusters():
            try:
                known = json.loads((folder / KIND_FILE).read_text(encoding="utf-8"))
                name, hosts = str(known["name"]), tuple(known["hosts"])
            except (OSError, ValueError, LookupError, TypeError):
                continue
            if not hosts or not known.get("whole") or name not in call(["kind", "get", "clusters"]).split():
                continue
            if not (folder / "kubeconfig").exists():
                continue
            self._owned = RuntimeFolder.claim(folder)
            if self._owned is None:
                continue
            self._name, self._hosts, self._whole = name, hosts, True
            self._loaded = str(known.get("image") or "")
            self._cpus = processors_of(self.control_plane)
            self._brought = dict(known.get("brought") or {})
            self._features, self._programs = ClusterFeatures.read(known.get("features")), {}
            self._notify(f"using the kind cluster {name} again")
            return

    def _create(self, hosts: Sequence[str], features: ClusterFeatures) -> None:
        self._name, self._hosts, self._loaded, self._whole = _free_name(), tuple(hosts), "", False
        self._brought, self._features, self._programs = {}, features, {}
        self._owned = RuntimeFolder.below(kind_state(), self._name)
        self._note()
        config = self._owned.folder / "kind.yaml"
        write_own(config, kind_config(hosts, features))
        self._notify(f"creating the kind cluster {self._name}: a control plane and {len(hosts)} workers")
        argv = ["kind", "create", "cluster", "--name", self._name, "--config", str(config)]
        argv += ["--kubeconfig", str(self.kubeconfig), "--wait", "180s"]
        image = os.environ.get(NODE_IMAGE)
        try:
            self._call_kind([*argv, *(["--image", image] if image else [])])
            self._check_nodes()
            self._check_provider_ids()
            ask_nothing_of_nodes(self.control_plane)
        except BaseException as error:
            try:
                self._delete()
            except RequirementError as left:
                raise RequirementError(f"{error}; {left}") from error
            raise
        self._whole = True
        self._note()

    def _call_kind(self, argv: Sequence[str]) -> None:
        """kind waits four minutes for a kubelet that another cluster's nodes leave no inotify instances, and then names
        kubeadm's exit code alone."""
        assert self._owned is not None
        try:
            call(argv, timeout_s=_CREATE_S, env=self._owned.env())
        except RequirementError as error:
            others = sorted(set(call(["kind", "get", "clusters"]).split()) - {self._name})
            beside = f"; other kind clusters run here ({', '.join(others)}): {_INOTIFY}" if others else ""
            raise RequirementError(f"{error}{beside}") from error

    def _check_nodes(self) -> None:
        """kind creates a cluster though its workers' kubelets do not start."""
        there = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "wait", "--for=create", "--timeout=60s")
        for host in self._hosts:
            try:
                call(["docker", "exec", self.control_plane, *there, f"node/{host}"])
            except RequirementError as error:
                output = call(
                    ["docker", "exec", self.container(host), "journalctl", "--unit", "kubelet", "--lines", "50"]
                )
                why = _INOTIFY if "too many open files" in output else " / ".join(output.splitlines()[-3:])
                raise RequirementError(f"--cluster kind: the kubelet of {host} did not start: {why}") from error

    def _check_provider_ids(self) -> None:
        """kind names its own in the very flags that its file may name others in."""
        get = ("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "-o", "jsonpath={.spec.providerID}")
        for host, wanted in self._features.provider_ids.items():
            found = call(["docker", "exec", self.control_plane, *get, f"node/{host}"]).strip()
            if found != wanted:
                why = f"has the provider ID {found!r}, not {wanted!r}: this kind names its own"
                raise RequirementError(f"--cluster kind: node {host} {why}")

    def _equip(self, cpus: Mapping[str, int]) -> None:
        missing = {host: count for host, count in cpus.items() if self._cpus.get(host) != count}
        if missing:
            self._notify(f"giving {', '.join(f'{count} processors to {host}' for host, count in missing.items())}")
            give_processors(self.control_plane, {host: self.container(host) for host in missing}, missing)
            self._cpus |= missing

    def _load(self, image: str) -> None:
        self._notify(f"loading {image} into {len(self._hosts) + 1} nodes")
        assert self._owned is not None
        argv = ["kind", "load", "docker-image", "--name", self._name, image]
        call(argv, timeout_s=_CREATE_S, env=self._owned.env())

    def _note(self) -> None:
        assert self._owned is not None
        known: dict[str, object] = {"name": self._name, "hosts": self._hosts, "image": self._loaded}
        known |= {"whole": self._whole, "brought": self._brought, "features": self._features.written()}
        write_own(self._owned.folder / KIND_FILE, json.dumps(known))

    def _delete(self) -> None:
        owned, self._owned = self._owned, None
        self._cpus.clear()
        if owned is None:
            return
        try:
            delete_kind_cluster(owned.folder)
        except RequirementError as error:
            raise RequirementError(f"{error}; mews down tries again") from error
        owned.release()

    def close(self) -> None:
        """Delete it, unless it is to be kept."""
        if self._owned is None:
            return
        if self._keep:
            owned, self._owned = self._owned, None
            with contextlib.suppress(OSError):
                owned.abandon()
            return
        self._notify(f"deleting the kind cluster {self._name}")
        self._delete()


def _free_name() -> str:
    """This process' number tells clusters apart, but where several machines' or containers' processes share a
    Docker engine: what bears that name is not ours to be deleted."""
    taken, mine = call(["kind", "get", "clusters"]).split(), f"mews-{os.getpid()}"
    name, number = mine, 1
    while name in taken:
        number += 1
        name = f"{mine}-{number}"
    return name


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise RequirementError(f"{file}: cannot be read: {error.strerror}") from error


def image_identity(image: str) -> str | None:
    """Return what Docker here calls that image's content; None for one that it does not know."""
    try:
        return call(["docker", "image", "inspect", "--format", "{{.Id}}", image]).strip()
    except RequirementError:
        return None
