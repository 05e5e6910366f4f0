"""Your software in the place of ours where nodes are emulated: processes, images as processes, manifests, extenders."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mews
from mews.harness.clusters.brought import Brought
from mews.harness.clusters.ports import ClusterPorts
from mews.harness.clusters.process import ProcessComponent
from mews.harness.clusters.programs.control_plane import Program
from mews.harness.errors import Lacks
from mews.harness.ports.fence import Fence
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Extender, Replacement, fill, filled
from mews.kube.component import Runnable
from mews.kube.emulated.kubelet.images import load_images
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.config_file import as_document

Configure = Callable[[Mapping[str, str]], KubeCompConfig]
"""KubeComp's configuration, with the chassis' base URLs by name."""


class Yours:
    """What a scenario brings along, made ready for one cluster.

    Raises ScenarioError for what cannot be used, Lacks for a program that is not here.
    """

    def __init__(self, scenario: Scenario, ports: ClusterPorts, *, dialect: str, configure: Configure) -> None:
        self._stack = scenario.stack
        self._brought = Brought(scenario)
        self._ports = ports
        self._dialect = dialect
        self._configure = configure
        self._free_ports: dict[int, int] = {}

    @property
    def brought(self) -> Brought:
        """What can be said of it without a cluster."""
        return self._brought

    def program(self, component: str, host: str | None = None) -> Program | None:
        """The process or image in that component's place, if one is given; ``host``: of a component that each node
        has."""
        yours = self._brought.of(component)
        if yours is None or (yours.process is None and yours.image is None):
            return None
        argv = yours.process or _image_argv(component, yours)
        places = self._places(host)
        log = self._ports.needed_processes().scratch / f"yours-{component}{f'-{host}' if host else ''}.log"
        named = {} if host is None else {"NODE_NAME": host}
        return self._process(argv, {"KUBECONFIG": places["kubeconfig"], **named, **yours.env}, places, log)

    def _process(self, argv: Sequence[str], env: Mapping[str, str], places: Mapping[str, str], log: Path) -> Program:
        filled = [fill(word, places) for word in argv]
        whole = {**os.environ, **{name: fill(value, places) for name, value in env.items()}}

        def make(fence: Fence) -> Runnable:
            return ProcessComponent(filled, fence=fence, log=log, env=whole, cwd=self._brought.folder)

        return make

    def objects(self) -> list[dict[str, Any]]:
        """What all manifests hold, their texts filled in."""
        documents = [each for objects in self._brought.documents().values() for each in objects]
        return [filled(document, self._places(None)) for document in documents]

    def extenders(self) -> list[dict[str, Any]]:
        """The extenders' configuration, their ports filled in."""
        return [
            filled(extender.config, {"port": str(self._port(number))})
            for number, extender in enumerate(self._stack.extenders)
        ]

    def extender_programs(self) -> Iterator[tuple[str, Program]]:
        """Name and program of each extender that is to be started."""
        for number, extender in enumerate(self._stack.extenders):
            if extender.process is not None:
                yield f"extender/{number + 1}", self._extender(number, extender, extender.process)

    def _extender(self, number: int, extender: Extender, argv: Sequence[str]) -> Program:
        places = {**self._places(None), "port": str(self._port(number))}
        log = self._ports.needed_processes().scratch / f"extender-{number + 1}.log"
        return self._process(argv, {"KUBECONFIG": places["kubeconfig"], **extender.env}, places, log)

    def _port(self, number: int) -> int:
        if number not in self._free_ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._free_ports[number] = int(probe.getsockname()[1])
        return self._free_ports[number]

    def _places(self, host: str | None) -> dict[str, str]:
        processes = self._ports.needed_processes()
        ready, scratch = processes.ready(), processes.scratch
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


def _image_argv(component: str, yours: Replacement) -> tuple[str, ...]:
    image = load_images().find(str(yours.image))
    if image is None or image.process is None:
        raise Lacks(
            f"stack.replace.{component}.image: {yours.image}: emulated nodes run images as processes, and images.yaml "
            "names none for it; use --cluster kind, or process instead of image"
        )
    return (*image.process, *yours.args)
