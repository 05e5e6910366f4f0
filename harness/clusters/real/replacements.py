"""From what a scenario puts in the place of ours to what is deployed of it: programs with their files, or a reason why
not. All of it is decided on this machine, before anything is made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mews.harness.clusters.real.replacement_files import ReplacementFiles
from mews.harness.clusters.real.systems import image_book
from mews.harness.errors import RequirementError
from mews.harness.manifests.parts import Object
from mews.harness.manifests.replacements import extender_port
from mews.harness.manifests.spec import ReplacementProgram, StackSpec
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loaded_replacements import LoadedReplacements
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Extender, Replacement, fill, filled
from mews.kube.emulated.kubelet.images import COMPONENTS, ImageBook
from mews.kube.system.deployment import CONFIG, RECORDS, ComponentDeployment, SystemDeployment
from mews.systems import registry

_ACCESS = {"KUBECONFIG": "{kubeconfig}"}


class ReplacementDeployment(Struct, frozen=True):
    """What a scenario replaces, by components: see ``StackSpec``. ``settings`` are the extenders' entries in the
    scheduler's configuration; ``images`` those that are not ours, in programs and manifests."""

    programs: Mapping[str, ReplacementProgram] = field(default_factory=dict)
    documents: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    extenders: Sequence[ReplacementProgram | None] = ()
    settings: Sequence[Mapping[str, Any]] = ()
    images: Sequence[str] = ()
    written: Mapping[str, str] = field(default_factory=dict)

    def into(self, spec: StackSpec) -> StackSpec:
        """Return the stack with it."""
        return dataclasses.replace(
            spec, programs=self.programs, documents=self.documents, extenders=self.extenders, written=self.written
        )

    def with_images(self, known: Mapping[str, str]) -> ReplacementDeployment:
        """Return the same where the nodes have those images already; name -> what Docker calls its content."""
        programs = {
            component: dataclasses.replace(program, pull="IfNotPresent", identity=known[program.image])
            if program.image is not None and program.image in known
            else program
            for component, program in self.programs.items()
        }
        return replace(self, programs=programs)


def replacement_deployment(scenario: Scenario, nodes: Mapping[str, str]) -> ReplacementDeployment:
    """Return what the scenario replaces, where its hosts are those nodes.

    Raises ScenarioError for what is not there or cannot be loaded, RequirementError for files that cannot be carried
    into a pod.
    """
    stack, book = scenario.stack, image_book(scenario)
    if not stack.replace and not stack.extenders:
        return ReplacementDeployment()
    given = LoadedReplacements(scenario)
    programs: dict[str, ReplacementProgram] = {
        component: _program(given, component, replacement, book, nodes)
        for component, replacement in stack.replace.items()
        if replacement.manifest is None
    }
    documents = given.documents()
    return ReplacementDeployment(
        programs,
        documents,
        [_extender(given, number, extender) for number, extender in enumerate(stack.extenders)],
        [_setting(number, extender) for number, extender in enumerate(stack.extenders)],
        _strange([*(each.image for each in programs.values()), *_images_in(list(documents.values()))], book),
        {component: replacement.where for component, replacement in stack.replace.items()},
    )


def _program(
    given: LoadedReplacements, component: str, replacement: Replacement, book: ImageBook, nodes: Mapping[str, str]
) -> ReplacementProgram:
    where = replacement.where
    files = ReplacementFiles(given.folder, f"{where}.{replacement.way}", given.allow_outside)
    if replacement.plugin is not None and component == DEFAULT_SCHEDULER:
        raise RequirementError(f"{where}.plugin: the real kube-scheduler loads none; use process or image")
    if replacement.plugin is not None or replacement.policy is not None:
        argv: Sequence[str] = _argv_with_part(given, component, replacement, nodes)
        files.module((replacement.plugin or replacement.policy or "").partition(":")[0])
        env: Mapping[str, str] = {}
    else:
        known = None if replacement.image is None else book.find(replacement.image)
        env = {**_ACCESS, **replacement.env}
        if replacement.image is not None and (known is None or not known.image):
            return ReplacementProgram(replacement.args, env=env, image=replacement.image)
        if known is not None and known.image != COMPONENTS:
            return ReplacementProgram(replacement.args, env=env, image=known.image)
        argv = replacement.process or (*(known.written if known is not None else ()), *replacement.args)
        files.argv(argv)
        files.words(replacement.env.values())
    files.patterns(replacement.files)
    return ReplacementProgram(argv, env=env, files=files.files)


def _argv_with_part(
    given: LoadedReplacements, component: str, replacement: Replacement, nodes: Mapping[str, str]
) -> tuple[str, ...]:
    """Our own component, told to load the user's callable in the place of a part of it. A host among the callable's
    options becomes its node."""
    system, deployment = _declared(replacement)
    flag = deployment.part_flags.get(replacement.way)
    if flag is None:
        where = f"{replacement.where}.{replacement.way}"
        raise RequirementError(f"{where}: a component in a real cluster cannot use it; use process or image")
    words = (word.replace(CONFIG, system.config_path).replace(RECORDS, "-") for word in deployment.argv)
    argv = ("{python}", *words)
    given.parts(component)  # raises for what cannot be loaded
    if replacement.policy is not None:
        return (*argv, flag, replacement.policy)
    try:
        options = json.dumps(_on_nodes(replacement.options, nodes))
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{replacement.where}.options: cannot be written as JSON: {error}") from error
    return (*argv, flag, str(replacement.plugin), f"{flag}-options", options)


def _declared(replacement: Replacement) -> tuple[SystemDeployment, ComponentDeployment]:
    """Return what is said of the component and its system; raises RequirementError where nothing is."""
    system = registry.system(replacement.system)
    component = next(each for each in system.components if each.name == replacement.component)
    if system.deployment is None or component.deployment is None:
        raise RequirementError(f"{replacement.where}: {system.name} does not define how a real cluster runs it")
    return system.deployment, component.deployment


def _on_nodes(value: Any, nodes: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _on_nodes(item, nodes) for key, item in value.items()}
    if isinstance(value, list):
        return [_on_nodes(item, nodes) for item in value]
    return nodes.get(value, value) if isinstance(value, str) else value


def _extender(given: LoadedReplacements, number: int, extender: Extender) -> ReplacementProgram | None:
    if extender.process is None:
        return None
    where, port = f"stack.extenders[{number}]", extender_port(number)
    argv = [fill(word, {"port": str(port)}) for word in extender.process]
    env = {name: fill(value, {"port": str(port)}) for name, value in extender.env.items()}
    files = ReplacementFiles(given.folder, f"{where}.process", given.allow_outside)
    files.argv(argv)
    files.words(env.values())
    files.patterns(extender.files)
    return ReplacementProgram(argv, env={**_ACCESS, **env}, files=files.files, port=port)


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
    """Return those that nothing else stands for."""
    named = [image for image in dict.fromkeys(images) if image]
    return [image for image in named if not ((known := book.find(image)) and known.image)]
