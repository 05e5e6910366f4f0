"""``mews manifests``: the stack for users who deploy it themselves."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mews.dialects import DEFAULT
from mews.harness import terminal
from mews.harness.clusters.real.opening import stack_spec
from mews.harness.clusters.real.replacements import replacement_deployment
from mews.harness.clusters.real.rewriting import Fitting
from mews.harness.clusters.real.systems import default_namespace, deployments, image_book
from mews.harness.clusters.real.target import DeploymentTarget
from mews.harness.commands.up import scenario_of
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.manifests.parts import COMPONENT, Object
from mews.harness.manifests.replacement_objects import manifest_objects
from mews.harness.manifests.spec import StackSpec
from mews.harness.manifests.stack import as_yaml, manifests
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.hardware import hardware_document, hardware_of
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.references import is_image
from mews.own_files import make_own_folder, write_own

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_LABEL_MOST = 63
"""What names of namespaces are (RFC 1123, a DNS label); a node's are several, with dots."""


class ManifestsOptions(Struct, frozen=True):
    """The options as given; ``nodes`` are ``HOST=NODE``, other hosts are nodes of their own name."""

    hardware: Path | None
    scenario: Path | None
    folder: Path | None
    namespace: str | None
    image: str
    nodes: Sequence[str]
    dialect: str | None
    allow_outside: bool = False


def write_manifests(options: ManifestsOptions) -> int:
    """Print all as one stream, or write a file per component into the folder.

    Raises BadInputError.
    """
    objects = stack_objects(options)
    if options.folder is None:
        terminal.out(as_yaml(objects))
        return 0
    try:
        make_own_folder(options.folder)
        for name, text in files_of(objects).items():
            write_own(options.folder / name, text)  # one holds a token
            terminal.out(f"{options.folder / name}\n")
    except OSError as error:
        raise BadInputError(f"--out {options.folder}: cannot be written: {error.strerror}") from error
    return 0


def stack_objects(options: ManifestsOptions) -> list[Object]:
    """Return the manifests of the options.

    Raises BadInputError, RequirementError for a system with programs of the user's machine.
    """
    namespace = default_namespace() if options.namespace is None else options.namespace
    if not _LABEL.fullmatch(namespace) or len(namespace) > _LABEL_MOST:
        allowed = f"small letters, digits and '-', at most {_LABEL_MOST}, beginning and ending with one of the former"
        raise BadInputError(f"--namespace {namespace!r}: must be {allowed}")
    if not is_image(options.image):
        raise BadInputError(
            f"--image {options.image!r}: must be the name of an image, such as registry.example.com/mews:1"
        )
    scenario = scenario_of(options.hardware, options.scenario, allow_outside=options.allow_outside)
    try:
        hardware = hardware_of(scenario)
        document, _ = hardware_document(scenario)
        nodes = node_map([host.name for host in hardware.hosts], options.nodes)
        # Cluster-wide names tell the stacks of several namespaces apart.
        place = DeploymentTarget(None, None, namespace, options.image, nodes, prefix=f"{namespace}-")
        dialect = options.dialect or scenario.stack.dialect or DEFAULT
        token = secrets.token_urlsafe(24)
        replaced = replacement_deployment(scenario, place.nodes)
        spec = stack_spec(scenario, hardware, document, place, dialect=dialect, token=token, replacements=replaced)
        _check_carried(spec)
    except ScenarioError as error:
        raise BadInputError(str(error)) from error
    return [*manifests(spec), *_replacement_objects(scenario, spec, place)]


def _check_carried(spec: StackSpec) -> None:
    """Raise RequirementError for a program of others: it lies on this machine, and no object can bring it."""
    for name in filter(spec.runs_foreign, spec.programs):
        system = spec.system_of(name).system.name
        raise RequirementError(f"stack.{system}: {name} is a program that no manifest can carry: use --cluster kind")


def _replacement_objects(scenario: Scenario, spec: StackSpec, place: DeploymentTarget) -> list[Object]:
    """Return what manifests of the user's have, as it would be created; each bears its component, which names its
    file."""
    fit = Fitting(image_book(scenario), place.image, place.nodes, spec.speed, deployments())
    made = []
    for component, objects in manifest_objects(spec).items():
        for given in objects:
            obj = fit(given)
            known = obj["metadata"].get("labels") or {}
            obj["metadata"]["labels"] = {COMPONENT: f"{component}-yours", **known}
            made.append(obj)
    return made


def node_map(hosts: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Host -> node.

    Raises BadInputError for what names no host of the hardware, and for a node that two hosts would share.
    """
    nodes = {host: host for host in hosts}
    for text in given:
        host, equals, node = text.partition("=")
        if not equals or not node or host not in nodes:
            raise BadInputError(f"--node {text}: must be HOST=NODE with one of the hosts {', '.join(hosts)}")
        if not all(_LABEL.fullmatch(part) for part in node.split(".")):
            raise BadInputError(
                f"--node {text}: {node!r} is not a valid node name: lower-case letters, digits, '-' and '.'"
            )
        if any(other.partition("=")[0] == host and other != text for other in given):
            raise BadInputError(f"--node {text}: {host} is given two nodes; give one")
        nodes[host] = node
    taken = list(nodes.values())
    twice = next((node for node in taken if taken.count(node) > 1), None)
    if twice is not None:
        raise BadInputError(f"--node: {twice} is the node of two hosts; each host needs a different node")
    return nodes


def files_of(objects: Sequence[Object]) -> Mapping[str, str]:
    """File name -> text, in the order of their names when applied as a folder."""
    groups: dict[str, list[Object]] = {}
    for obj in objects:
        groups.setdefault(str(obj["metadata"]["labels"][COMPONENT]), []).append(obj)
    return {f"{number:02d}-{name}.yaml": as_yaml(group) for number, (name, group) in enumerate(groups.items())}
