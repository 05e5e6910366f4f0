"""From what a scenario brings along to what is deployed of it: programs with their files, or a reason why not.

All of it is decided on this machine, before anything is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mews.harness.clusters.brought import Brought
from mews.harness.clusters.real.replacement_files import ReplacementFiles
from mews.harness.clusters.real.rewriting import COMPONENTS
from mews.harness.errors import Lacks
from mews.harness.manifests.replacements import ReplacementProgram, extender_port
from mews.harness.manifests.parts import CONFIG_FILE, Object
from mews.harness.manifests.stack import StackSpec
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Extender, Replacement, fill, filled
from mews.kube.emulated.kubelet.images import ImageBook, load_images

_OUR_SCHEDULER = ("{python}", "-m", "mews.systems.kubecomp", "scheduler", "--config", CONFIG_FILE, "--records", "-")
_ACCESS = {"KUBECONFIG": "{kubeconfig}"}


@dataclass(frozen=True, slots=True)
class ReplacementDeployment:
    """What a scenario brings: see ``StackSpec``. ``settings`` are the extenders' entries in the scheduler's
    configuration; ``images`` those that are not ours, in programs and manifests."""

    guests: Mapping[str, ReplacementProgram] = field(default_factory=dict)
    documents: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    extenders: Sequence[ReplacementProgram | None] = ()
    settings: Sequence[Mapping[str, Any]] = ()
    images: Sequence[str] = ()

    def into(self, spec: StackSpec) -> StackSpec:
        """The stack with it."""
        return replace(spec, guests=self.guests, documents=self.documents, extenders=self.extenders)

    def with_images(self, known: Mapping[str, str]) -> ReplacementDeployment:
        """The same where the nodes have those images already; name -> what Docker calls its content."""
        guests = {
            component: replace(guest, pull="IfNotPresent", identity=known[guest.image])
            if guest.image is not None and guest.image in known
            else guest
            for component, guest in self.guests.items()
        }
        return replace(self, guests=guests)


def baggage(scenario: Scenario, nodes: Mapping[str, str]) -> ReplacementDeployment:
    """What the scenario brings, where its hosts are those nodes.

    Raises ScenarioError for what is not there or cannot be loaded, Lacks for files that cannot be carried into a pod.
    """
    stack, book = scenario.stack, load_images()
    if not stack.replace and not stack.extenders:
        return ReplacementDeployment()
    brought = Brought(scenario)
    guests: dict[str, ReplacementProgram] = {
        component: _guest(brought, component, yours, book, nodes)
        for component, yours in stack.replace.items()
        if yours.manifest is None
    }
    documents = brought.documents()
    return ReplacementDeployment(
        guests,
        documents,
        [_extender(brought, number, extender) for number, extender in enumerate(stack.extenders)],
        [_setting(number, extender) for number, extender in enumerate(stack.extenders)],
        _strange([*(g.image for g in guests.values()), *_images_in(list(documents.values()))], book),
    )


def _guest(brought: Brought, component: str, yours: Replacement, book: ImageBook, nodes: Mapping[str, str]) -> ReplacementProgram:
    where = f"stack.replace.{component}"
    carried = ReplacementFiles(brought.folder, f"{where}.{yours.way}")
    if yours.plugin is not None and component == "default-scheduler":
        raise Lacks(f"{where}.plugin: the real kube-scheduler loads none; use process or image")
    if yours.plugin is not None or yours.policy is not None:
        argv: Sequence[str] = (*_OUR_SCHEDULER, *_setting_of_plugin(brought, component, yours, nodes))
        carried.module((yours.plugin or yours.policy or "").partition(":")[0])
        env: Mapping[str, str] = {}
    else:
        known = None if yours.image is None else book.find(yours.image)
        env = {**_ACCESS, **yours.env}
        if yours.image is not None and (known is None or not known.image):
            return ReplacementProgram(yours.args, env=env, image=yours.image)
        if known is not None and known.image != COMPONENTS:
            return ReplacementProgram(yours.args, env=env, image=known.image)
        argv = yours.process or (*(known.written if known is not None else ()), *yours.args)
        carried.argv(argv)
        carried.words(yours.env.values())
    carried.patterns(yours.files)
    return ReplacementProgram(argv, env=env, files=carried.files)


def _setting_of_plugin(
    brought: Brought, component: str, yours: Replacement, nodes: Mapping[str, str]
) -> tuple[str, ...]:
    """Options of our scheduler. A host among the plugin's options becomes its node."""
    if yours.policy is not None:
        brought.policy()
        return ("--score", yours.policy)
    brought.plugin(component)
    try:
        options = json.dumps(_on_nodes(yours.options, nodes))
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"stack.replace.{component}.options: cannot be told in JSON: {error}") from error
    return ("--plugin", str(yours.plugin), "--plugin-options", options)


def _on_nodes(value: Any, nodes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _on_nodes(item, nodes) for key, item in value.items()}
    if isinstance(value, list):
        return [_on_nodes(item, nodes) for item in value]
    return nodes.get(value, value) if isinstance(value, str) else value


def _extender(brought: Brought, number: int, extender: Extender) -> ReplacementProgram | None:
    if extender.process is None:
        return None
    where, port = f"stack.extenders[{number}]", extender_port(number)
    argv = [fill(word, {"port": str(port)}) for word in extender.process]
    env = {name: fill(value, {"port": str(port)}) for name, value in extender.env.items()}
    carried = ReplacementFiles(brought.folder, f"{where}.process")
    carried.argv(argv)
    carried.words(env.values())
    carried.patterns(extender.files)
    return ReplacementProgram(argv, env={**_ACCESS, **env}, files=carried.files, port=port)


def _setting(number: int, extender: Extender) -> Mapping[str, Any]:
    found: Mapping[str, Any] = filled(extender.config, {"port": str(extender_port(number))})
    return found


def _images_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [image for item in value for image in _images_in(item)]
    if not isinstance(value, dict):
        return []
    found = [image for key, item in value.items() if key != "image" for image in _images_in(item)]
    return [*found, *([value["image"]] if isinstance(value.get("image"), str) else [])]


def _strange(images: Sequence[str | None], book: ImageBook) -> list[str]:
    """Those that nothing else stands for."""
    named = [image for image in dict.fromkeys(images) if image]
    return [image for image in named if not ((known := book.find(image)) and known.image)]
