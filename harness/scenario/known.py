"""What the names in a scenario may stand for, as far as that can be told before there is a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mews.emulator.hardware.inventory import ChassisSpec, Hardware
from mews.harness.api_faults.rpcs import OF_KUBELETS, OF_SERVICES
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.kinds import ambiguity, basic
from mews.harness.scenario.model import Scenario
from mews.kube.api.resources import Resource
from mews.kube.system.configured import ConfiguredSystem

_OUTSIDE = ("process", "image", "manifest")


@dataclass(frozen=True)
class KnownNames:
    """The names that one scenario's hardware, stack and objects bring along. ``document`` is the scenario as written,
    with the objects of files in their places."""

    scenario: Scenario
    hardware: Hardware
    document: Mapping[str, Any]

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """All hosts."""
        return tuple(host.name for host in self.hardware.hosts)

    @cached_property
    def chassis(self) -> Mapping[str, ChassisSpec]:
        """All chassis, by name."""
        return {spec.name: spec for spec in self.hardware.chassis}

    @cached_property
    def gpuids(self) -> tuple[str, ...]:
        """The pool-wide IDs of all devices."""
        return tuple(spec.gpuid(device.id) for spec in self.hardware.chassis for device in spec.devices)

    def devices_at(self, host: str) -> tuple[str, ...]:
        """Return the devices that a host may have: its own, and those of its chassis by pool-wide ID and the chassis'
        own."""
        cabled = [spec for spec in self.hardware.chassis if host in spec.ports.values()]
        own = next((spec.devices for spec in self.hardware.hosts if spec.name == host), ())
        pooled = (name for spec in cabled for each in spec.devices for name in (spec.gpuid(each.id), each.id))
        return tuple(dict.fromkeys((*pooled, *(f"{host}-{each.id}" for each in own))))

    @cached_property
    def systems(self) -> tuple[ConfiguredSystem, ...]:
        """The systems of its stack, installed on its hardware."""
        return self.scenario.stack.configured(facility_of(self.hardware))

    @cached_property
    def components(self) -> tuple[str, ...]:
        """What can be killed and started in one way to run or another."""
        stack = self.scenario.stack
        found = [f"kubelet/{host}" for host in self.hosts]
        found += [f"extender/{number + 1}" for number, each in enumerate(stack.extenders) if each.process is not None]
        if stack.default_scheduler is not None:
            found.append("default-scheduler")
        for configured in self.systems:
            found += ["service-names"] * configured.system.service_names
            for name, component in configured.components():
                nodes = component.nodes(configured.configuration) if component.nodes is not None else None
                found += [name] if nodes is None else [f"{name}/{node}" for node in nodes]
        return (*found, *(f"chassis/{name}" for name in self.chassis), "hosts")

    @cached_property
    def clients(self) -> tuple[str, ...]:
        """The components that ask the API, and may have faults between them and it."""
        others = ("hosts", *(f"chassis/{name}" for name in self.chassis))
        programs = tuple(name for name in self.components if name.startswith("extender/"))
        return ("controller-manager", *(name for name in self.components if name not in (*others, *programs)))

    @cached_property
    def answering(self) -> Mapping[str, tuple[str, ...]]:
        """The components that answer RPCs, and which: kubelets, and those that serve extenders and webhooks."""
        services = [
            name
            for configured in self.systems
            for name, component in configured.components()
            if component.service and name in self.clients
        ]
        return {**{f"kubelet/{host}": OF_KUBELETS for host in self.hosts}, **dict.fromkeys(services, OF_SERVICES)}

    def unserved(self, kind: str, api_version: str) -> str | None:
        """Return why a kind means no resource: none that is built in, defined by the scenario, or brought by what is in
        its stack. None where it means one, and where only the cluster can tell."""
        if basic(kind, api_version) is not None:
            return None
        found = self._built_in(kind)
        found += [resource for resource in self._defined if resource.kind == kind]
        if sum(api_version in ("", resource.api_version) for resource in found) == 1:
            return None
        if not found and self._others_may_define():
            return None
        return ambiguity(found) if found else "neither built in nor defined by the scenario or by what is in its stack"

    def _built_in(self, kind: str) -> list[Resource]:
        """Return the resources of a kind that every release has, else those that the scenario's release adds."""
        from mews.kube.emulated.core.store.released_kinds import standard_kinds

        found = [each.resource for each in standard_kinds() if each.resource.kind == kind]
        if found or self.scenario.stack.release.is_default:
            return found
        from mews.kube.emulated.core.store.released_kinds import kinds_of

        return [each.resource for each in kinds_of(self.scenario.stack.release) if each.resource.kind == kind]

    @cached_property
    def _defined(self) -> tuple[Resource, ...]:
        """The kinds that CustomResourceDefinitions bring: those of the scenario, and those of its stack."""
        brought = (definition for each in self.systems for definition in each.system.kinds())
        return tuple(resource for obj in (*self._objects(), *brought) for resource in _definitions(obj))

    def _objects(self) -> Iterator[Any]:
        """Yield all objects that the scenario makes."""
        yield from _listed(self.document.get("objects"))
        for part in ("steps", "disruptions", "catch", "finally"):
            for step in _listed(self.document.get(part)):
                for action in ("apply", "create"):
                    yield from _listed(step.get(action))

    def _others_may_define(self) -> bool:
        """Return whether kinds may be there of which the scenario says nothing: those of a cluster that is somebody's
        own, or of software that the scenario brings along."""
        return "kubeconfig" in self.scenario.requires.cluster or _mentions(self.document.get("stack"), _OUTSIDE)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _mentions(value: Any, keys: Sequence[str]) -> bool:
    if isinstance(value, Mapping):
        return any(key in keys or _mentions(item, keys) for key, item in value.items())
    return isinstance(value, list) and any(_mentions(item, keys) for item in value)


def _definitions(obj: Any) -> Iterator[Resource]:
    if not isinstance(obj, Mapping) or obj.get("kind") != "CustomResourceDefinition":
        return
    spec = obj.get("spec")
    spec = spec if isinstance(spec, Mapping) else {}
    names = spec.get("names")
    for version in _listed(spec.get("versions")):
        if isinstance(names, Mapping) and isinstance(version, Mapping):
            group, kind = str(spec.get("group")), str(names.get("kind"))
            yield Resource(group, str(version.get("name")), str(names.get("plural")), kind)
