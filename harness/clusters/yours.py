"""Your software in the place of ours: scheduler plugins and policies, processes, images, manifests, extenders."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

import mews
from mews.harness.clusters.embedded.world import World
from mews.harness.clusters.plane import Program
from mews.harness.clusters.process import ProcessComponent
from mews.harness.errors import Lacks
from mews.harness.kubelet.images import load_images
from mews.harness.ports.fence import Fence
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Extender, Replacement
from mews.kube.component import Component
from mews.kube.kubecomp.config import KubeCompConfig
from mews.kube.kubecomp.config_file import as_document
from mews.kube.kubecomp.plugin import NodeScore
from mews.kube.scheduling.config import load_callable, load_plugin
from mews.kube.scheduling.errors import BadPlugin
from mews.kube.scheduling.framework import PluginFactory

Configure = Callable[[Mapping[str, str]], KubeCompConfig]
"""KubeComp's configuration, with the chassis' base URLs by name."""


class Yours:
    """What a scenario brings along, made ready for one cluster.

    Raises ScenarioError for what cannot be used, Lacks for a program that is not here.
    """

    def __init__(self, scenario: Scenario, world: World, *, dialect: str, configure: Configure) -> None:
        self._stack = scenario.stack
        self._folder = scenario.path.absolute().parent if scenario.path is not None else Path.cwd()
        self._world = world
        self._dialect = dialect
        self._configure = configure
        self._ports: dict[int, int] = {}

    def plugin(self, component: str) -> PluginFactory | None:
        """The plugin for that scheduler, if it is given one."""
        yours = self._stack.replace.get(component)  # type: ignore[call-overload]
        if yours is None or yours.plugin is None:
            return None
        with self._importable(component):
            return load_plugin(yours.plugin, yours.options)

    def policy(self) -> NodeScore | None:
        """The node score in place of KubeComp's, if one is given."""
        yours = self._stack.replace.get("scheduler")
        if yours is None or yours.policy is None:
            return None
        with self._importable("scheduler"):
            score: NodeScore = load_callable(yours.policy, "the devices requested and those available")
            return score

    @contextlib.contextmanager
    def _importable(self, component: str) -> Iterator[None]:
        """The scenario's own folder is looked through first."""
        sys.path.insert(0, str(self._folder))
        try:
            yield
        except BadPlugin as error:
            raise ScenarioError(f"stack.replace.{component}: {error}") from error
        finally:
            sys.path.remove(str(self._folder))

    def is_elsewhere(self, component: str) -> bool:
        """Whether a manifest brings that component: then nothing is started for it."""
        yours = self._stack.replace.get(component)  # type: ignore[call-overload]
        return yours is not None and yours.manifest is not None

    def program(self, component: str, host: str | None = None) -> Program | None:
        """The process or image in that component's place, if one is given; ``host``: of a component that each node
        has."""
        yours = self._stack.replace.get(component)  # type: ignore[call-overload]
        if yours is None or (yours.process is None and yours.image is None):
            return None
        argv = yours.process or _image_argv(component, yours)
        places = self._places(host)
        log = self._world.scratch() / f"yours-{component}{f'-{host}' if host else ''}.log"
        named = {} if host is None else {"NODE_NAME": host}
        return self._process(argv, {"KUBECONFIG": places["kubeconfig"], **named, **yours.env}, places, log)

    def _process(self, argv: Sequence[str], env: Mapping[str, str], places: Mapping[str, str], log: Path) -> Program:
        filled = [fill(word, places) for word in argv]
        whole = {**os.environ, **{name: fill(value, places) for name, value in env.items()}}

        def make(fence: Fence) -> Component:
            return ProcessComponent(filled, fence=fence, log=log, env=whole, cwd=self._folder)

        return make

    def objects(self) -> list[dict[str, Any]]:
        """What all manifests hold, their texts filled in."""
        found: list[dict[str, Any]] = []
        for component, yours in self._stack.replace.items():
            if yours.manifest is None:
                continue
            try:
                documents = list(yaml.safe_load_all(Path(yours.manifest).read_text(encoding="utf-8")))
            except (OSError, yaml.YAMLError) as error:
                text = " ".join(str(error).split())
                raise ScenarioError(f"stack.replace.{component}.manifest: {yours.manifest}: {text}") from error
            places = self._places(None)
            found += [_filled(document, places) for document in documents if document is not None]
        return found

    def extenders(self) -> list[dict[str, Any]]:
        """The extenders' configuration, their ports filled in."""
        return [
            _filled(extender.config, {"port": str(self._port(number))})
            for number, extender in enumerate(self._stack.extenders)
        ]

    def extender_programs(self) -> Iterator[tuple[str, Program]]:
        """Name and program of each extender that is to be started."""
        for number, extender in enumerate(self._stack.extenders):
            if extender.process is not None:
                yield f"extender/{number + 1}", self._extender(number, extender, extender.process)

    def _extender(self, number: int, extender: Extender, argv: Sequence[str]) -> Program:
        places = {**self._places(None), "port": str(self._port(number))}
        log = self._world.scratch() / f"extender-{number + 1}.log"
        return self._process(argv, {"KUBECONFIG": places["kubeconfig"], **extender.env}, places, log)

    def _port(self, number: int) -> int:
        if number not in self._ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._ports[number] = int(probe.getsockname()[1])
        return self._ports[number]

    def _places(self, host: str | None) -> dict[str, str]:
        ready, scratch = self._world.ready(), self._world.scratch()
        config = scratch / "kubecomp.json"
        if not config.exists():
            urls = {name: faces[self._dialect] for name, faces in ready["chassis"].items()}
            config.write_text(json.dumps(as_document(self._configure(urls))), encoding="utf-8")
        places = {
            "python": sys.executable,
            "pythonpath": str(Path(mews.__file__).parent.parent),
            "kubeconfig": str(ready["kubeconfig"]),
            "config": str(config),
            "root": str(scratch),
            **{f"chassis:{name}": faces[self._dialect] for name, faces in ready["chassis"].items()},
        }
        if host is None:
            return places
        node, cabled = ready["nodes"][host], self._configure({}).node(host)
        sockets = {name: str(node[name]) for name in ("device_plugins", "pod_resources")}
        ports = {} if cabled is None else {f"port:{name}": port for name, port in cabled.ports.items()}
        return {**places, "node": host, **sockets, **ports}


def fill(text: str, places: Mapping[str, str]) -> str:
    """The text with ``{name}`` replaced for every known name; all else in braces stays."""
    for name, value in places.items():
        text = text.replace("{" + name + "}", value)
    return text


def _filled(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return fill(value, places)
    if isinstance(value, dict):
        return {key: _filled(item, places) for key, item in value.items()}
    return [_filled(item, places) for item in value] if isinstance(value, list) else value


def _image_argv(component: str, yours: Replacement) -> tuple[str, ...]:
    image = load_images().find(str(yours.image))
    if image is None or image.process is None:
        raise Lacks(
            f"stack.replace.{component}.image: {yours.image}: emulated nodes run images as processes, and images.yaml "
            "names none for it; use --cluster kind, or process instead of image"
        )
    return (*image.process, *yours.args)
