"""Your software in the place of ours where nodes are emulated: processes, images as processes, manifests, extenders."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import mews
from mews.harness.clusters.embedded.program_proxies import ProgramProxies
from mews.harness.clusters.ports import ClusterPorts
from mews.harness.ports.fence import Fence
from mews.harness.scenario.loaded_replacements import LoadedReplacements
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.replacement import Extender, Replacement, fill, filled
from mews.harness.scenario.requirements import check_images, image_argv
from mews.kube.clock import rest
from mews.kube.component import Runnable
from mews.kube.deviceplugin.sockets import KUBELET_SOCKET
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.facility import Facility
from mews.kube.system.foreign import ForeignProgram
from mews.listening.ports import free_port
from mews.own_files import make_own_folder, write_own

if TYPE_CHECKING:
    from mews.harness.clusters.programs.control_plane import Program

_LOOK_S = 0.02
FacilityAt = Callable[[Mapping[str, str], str], Facility]
"""What the systems are installed on, with the chassis' base URLs by name and the certificates to trust there."""
_ACCOUNT = {"user": "MEWS_REDFISH_USER", "password": "MEWS_REDFISH_PASSWORD"}
"""Where programs are given a chassis' account."""


class _OnceTheKubeletRuns:
    """A program of a node: its pod is started by the kubelet, which empties the folder of sockets as it begins."""

    def __init__(self, program: Runnable, plugins: Path) -> None:
        self._program = program
        self._socket = plugins / KUBELET_SOCKET

    async def run(self) -> None:
        """Wait for the kubelet's socket, then run the program."""
        while not self._socket.exists():
            await rest(_LOOK_S)
        await self._program.run()


class ReplacementProcesses:
    """What a scenario puts in the place of ours, made ready for one cluster of emulated nodes.

    Raises ScenarioError for what cannot be used.
    """

    def __init__(
        self, scenario: Scenario, ports: ClusterPorts, proxies: ProgramProxies, *, dialect: str, facility: FacilityAt
    ) -> None:
        self._scenario = scenario
        self._proxies = proxies
        self._stack = scenario.stack
        self._loaded = LoadedReplacements(scenario)
        self._ports = ports
        self._dialect = dialect
        self._facility = facility
        self._free_ports: dict[int | str, int] = {}

    @property
    def loaded(self) -> LoadedReplacements:
        """What can be said of it without a cluster."""
        return self._loaded

    def program(self, component: str, host: str | None = None, *, serves: bool = False) -> Program | None:
        """Return the process or image in that component's place, if one is given; ``host``: of a component that each
        node has; ``serves``: it is to listen on ``{port}``."""
        yours = self._loaded.of(component)
        if yours is None or (yours.process is None and yours.image is None):
            return None
        check_images(self._scenario)
        argv = yours.process or (*(image_argv(str(yours.image)) or ()), *yours.args)
        places = self._places(host, yours.system)
        if serves:
            places["port"] = str(self.port(component))
        name = f"yours-{component}{f'-{host}' if host else ''}"
        unit = f"{component}/{host}" if host else component
        return self._process(unit, argv, yours.env, places, name, host=host, yours=yours)

    def foreign(self, component: str, given: ForeignProgram) -> Program:
        """Return the program that a component of a system is."""
        places = {**self._places(None), **self._faces()}
        return self._process(component, given.argv, given.env, places, f"theirs-{component}")

    def first_objects(self, systems: Sequence[ConfiguredSystem]) -> list[dict[str, Any]]:
        """Return what the systems have applied as the cluster comes up, their texts filled in."""
        found = [each for system in systems for each in system.system.objects(system.configuration)]
        return [filled(each, self._faces()) for each in found] if found else []

    def _faces(self) -> dict[str, str]:
        """Return where the chassis are in every dialect, and with which accounts."""
        ready = self._ports.needed_processes().ready()
        urls = {f"{name}:{face}": url for name, faces in ready["chassis"].items() for face, url in faces.items()}
        accounts = {face: each for face, each in ready["accounts"].items() if each}
        return {
            "ca": str(ready.get("ca") or ""),
            "ca-text": Path(ready["ca"]).read_text(encoding="ascii") if ready.get("ca") else "",
            **{f"chassis:{at}": url for at, url in urls.items()},
            **{f"address:{at}": url.partition("://")[2] for at, url in urls.items()},
            **{f"host:{at}": urlsplit(url).hostname or "" for at, url in urls.items()},
            **{f"port:{at}": str(urlsplit(url).port) for at, url in urls.items()},
            **{f"{word}:{face}": str(each[word]) for face, each in accounts.items() for word in ("user", "password")},
        }

    def _process(
        self,
        unit: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        places: Mapping[str, str],
        name: str,
        *,
        host: str | None = None,
        yours: Replacement | None = None,
    ) -> Program:
        from mews.harness.clusters.embedded.program_view import own_mounts, program_view
        from mews.harness.clusters.process import ProcessComponent

        processes = self._ports.needed_processes()
        folder = processes.scratch / "programs" / name
        make_own_folder(folder)
        ready, authority = self._proxies.seen_by(unit)
        places = {**places, "kubeconfig": str(ready["kubeconfig"])}
        env = {"KUBECONFIG": places["kubeconfig"], **env}
        view = program_view(ready, authority, folder / "account", host)
        mounts = [*view.mounts, *(own_mounts(yours, folder, lambda text: fill(text, places)) if yours else ())]

        filled = [fill(word, places) for word in argv]
        account = ready["accounts"].get(self._dialect, {})
        known = {_ACCOUNT[name]: str(value) for name, value in account.items() if name in _ACCOUNT}
        whole = {**os.environ, **known, **view.env, **{key: fill(value, places) for key, value in env.items()}}
        log = processes.scratch / f"{name}.log"

        def make(fence: Fence) -> Runnable:
            program = ProcessComponent(
                filled,
                fence=fence,
                log=log,
                env=whole,
                cwd=self._loaded.folder,
                mounts=mounts,
                callers=processes.callers,
            )
            return program if host is None else _OnceTheKubeletRuns(program, Path(places["device_plugins"]))

        return make

    def objects(self) -> list[dict[str, Any]]:
        """Return what all manifests hold, their texts filled in."""
        return [
            filled(document, self._places(None, self._stack.replace[component].system))
            for component, documents in self._loaded.documents().items()
            for document in documents
        ]

    def extenders(self) -> list[dict[str, Any]]:
        """Return the extenders' configuration, their ports filled in."""
        return [
            filled(extender.config, {"port": str(self.port(number))})
            for number, extender in enumerate(self._stack.extenders)
        ]

    def extender_programs(self) -> Iterator[tuple[str, Program]]:
        """Name and program of each extender that is to be started."""
        for number, extender in enumerate(self._stack.extenders):
            if extender.process is not None:
                yield f"extender/{number + 1}", self._extender(number, extender, extender.process)

    def _extender(self, number: int, extender: Extender, argv: Sequence[str]) -> Program:
        places = {**self._places(None), "port": str(self.port(number))}
        return self._process(f"extender/{number + 1}", argv, extender.env, places, f"extender-{number + 1}")

    def port(self, whose: int | str) -> int:
        """Return a free port of loopback: an extender's, by its number, or that of a component with a service."""
        if whose not in self._free_ports:
            self._free_ports[whose] = free_port()
        return self._free_ports[whose]

    def _places(self, host: str | None, system: str = "") -> dict[str, str]:
        """Return what is filled in, for a component of that system ("": the cluster's own)."""
        processes = self._ports.needed_processes()
        ready, scratch = processes.ready(), processes.scratch
        chassis = {name: faces[self._dialect] for name, faces in ready["chassis"].items()}
        facility = self._facility(chassis, str(ready.get("ca") or ""))
        places = {
            "python": sys.executable,
            "pythonpath": str(Path(mews.__file__).parent.parent),
            "kubeconfig": str(ready["kubeconfig"]),
            **_configurations(self._stack.configured(facility), scratch, system),
            "root": str(scratch),
            **{f"chassis:{name}": url for name, url in chassis.items()},
        }
        if host is None:
            return places
        node = ready["nodes"][host]
        sockets = {name: str(node[name]) for name in ("device_plugins", "pod_resources")}
        cabled = next((each.ports for each in facility.nodes if each.name == host), {})
        return {**places, "node": host, **sockets, **{f"port:{name}": port for name, port in cabled.items()}}


def _configurations(systems: Sequence[ConfiguredSystem], folder: Path, wanted: str) -> dict[str, str]:
    """Return the systems' configuration files, by name; without a name that of the wanted system, else that of the
    first that pools devices, else of the first."""
    found: dict[str, str] = {}
    for configured in systems:
        name = configured.system.name
        file = folder / f"{name}.json"
        if not file.exists():
            write_own(file, json.dumps(configured.system.document(configured.configuration)))
        found[f"config:{name}"] = str(file)
    pooling = [configured.system.name for configured in systems if configured.pooled is not None]
    names = [*([wanted] if wanted else []), *pooling, *(configured.system.name for configured in systems)]
    return {**found, "config": found[f"config:{names[0]}"]} if names else found
