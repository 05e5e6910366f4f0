"""Our values and the wire's messages, both ways. Imports protobuf: wall clock only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mews.kube.deviceplugin.pb import deviceplugin_v1beta1_pb2 as plugin
from mews.kube.deviceplugin.pb import podresources_v1_pb2 as resources
from mews.kube.deviceplugin.port import (
    Allocation,
    ClaimDevice,
    ContainerDevices,
    DeviceNode,
    DynamicResource,
    Mount,
    PluginDevice,
    PluginOptions,
    PodDevices,
)

API_VERSION = "v1beta1"


def register_request(endpoint: str, resource: str, options: PluginOptions) -> Any:
    """Build a RegisterRequest."""
    return plugin.RegisterRequest(
        version=API_VERSION, endpoint=endpoint, resource_name=resource, options=options_message(options)
    )


def options_message(options: PluginOptions) -> Any:
    """Build a DevicePluginOptions message from our value."""
    return plugin.DevicePluginOptions(
        pre_start_required=options.pre_start_required,
        get_preferred_allocation_available=options.preferred_allocation_available,
    )


def options_value(message: Any) -> PluginOptions:
    """Read our PluginOptions out of a DevicePluginOptions message."""
    return PluginOptions(message.pre_start_required, message.get_preferred_allocation_available)


def list_message(devices: Iterable[PluginDevice]) -> Any:
    """Build a ListAndWatchResponse from a plugin's devices."""
    return plugin.ListAndWatchResponse(
        devices=[plugin.Device(ID=d.id, health=d.health, topology=_topology(plugin, d.numa_nodes)) for d in devices]
    )


def list_value(message: Any) -> tuple[PluginDevice, ...]:
    """Return the devices of a ListAndWatchResponse."""
    return tuple(PluginDevice(d.ID, d.health, _nodes(d)) for d in message.devices)


def preferred_request(available: Sequence[str], must_include: Sequence[str], size: int) -> Any:
    """Build a PreferredAllocationRequest for one container."""
    one = plugin.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, must_include_deviceIDs=must_include, allocation_size=size
    )
    return plugin.PreferredAllocationRequest(container_requests=[one])


def allocate_request(requests: Sequence[Sequence[str]]) -> Any:
    """Build an AllocateRequest for one container."""
    return plugin.AllocateRequest(
        container_requests=[plugin.ContainerAllocateRequest(devices_ids=ids) for ids in requests]
    )


def allocate_message(allocations: Iterable[Allocation]) -> Any:
    """Build an AllocateResponse."""
    return plugin.AllocateResponse(container_responses=[_container_message(a) for a in allocations])


def allocate_value(message: Any) -> tuple[Allocation, ...]:
    """Return the allocations of an AllocateResponse."""
    return tuple(_container_value(response) for response in message.container_responses)


def pod_message(pod: PodDevices) -> Any:
    """Build a PodResources message."""
    claims = dict(pod.claims)
    containers = [
        resources.ContainerResources(
            name=name,
            devices=[devices_message(d) for d in devices],
            dynamic_resources=[_claim_message(claim) for claim in claims.get(name, ())],
        )
        for name, devices in pod.containers
    ]
    return resources.PodResources(name=pod.name, namespace=pod.namespace, containers=containers)


def pod_value(message: Any) -> PodDevices:
    """Return the PodDevices of a PodResources."""
    containers = tuple((c.name, tuple(devices_value(d) for d in c.devices)) for c in message.containers)
    claims = tuple(
        (c.name, tuple(_claim_value(claim) for claim in c.dynamic_resources))
        for c in message.containers
        if c.dynamic_resources
    )
    return PodDevices(message.name, message.namespace, containers, claims)


def _claim_message(claim: DynamicResource) -> Any:
    devices = [
        resources.ClaimResource(
            cdi_devices=[resources.CDIDevice(name=each) for each in device.cdi_ids],
            driver_name=device.driver,
            pool_name=device.pool,
            device_name=device.device,
            share_id=device.share or None,
        )
        for device in claim.devices
    ]
    return resources.DynamicResource(claim_name=claim.claim, claim_namespace=claim.namespace, claim_resources=devices)


def _claim_value(message: Any) -> DynamicResource:
    devices = tuple(
        ClaimDevice(d.driver_name, d.pool_name, d.device_name, tuple(c.name for c in d.cdi_devices), d.share_id)
        for d in message.claim_resources
    )
    return DynamicResource(message.claim_name, message.claim_namespace, devices)


def devices_message(devices: ContainerDevices) -> Any:
    """Build a ContainerDevices message."""
    return resources.ContainerDevices(
        resource_name=devices.resource,
        device_ids=devices.device_ids,
        topology=_topology(resources, devices.numa_nodes),
    )


def devices_value(message: Any) -> ContainerDevices:
    """Return the value of a ContainerDevices."""
    return ContainerDevices(message.resource_name, tuple(message.device_ids), _nodes(message))


def _container_message(allocation: Allocation) -> Any:
    return plugin.ContainerAllocateResponse(
        envs=allocation.envs,
        mounts=[
            plugin.Mount(container_path=m.container_path, host_path=m.host_path, read_only=m.read_only)
            for m in allocation.mounts
        ],
        devices=[
            plugin.DeviceSpec(container_path=d.container_path, host_path=d.host_path, permissions=d.permissions)
            for d in allocation.devices
        ],
        annotations=allocation.annotations,
        cdi_devices=[plugin.CDIDevice(name=name) for name in allocation.cdi_devices],
    )


def _container_value(message: Any) -> Allocation:
    return Allocation(
        dict(message.envs),
        tuple(Mount(m.container_path, m.host_path, m.read_only) for m in message.mounts),
        tuple(DeviceNode(d.container_path, d.host_path, d.permissions) for d in message.devices),
        dict(message.annotations),
        tuple(device.name for device in message.cdi_devices),
    )


def _topology(module: Any, nodes: Sequence[int]) -> Any:
    """Return None without NUMA nodes: an absent topology is not one without nodes."""
    return module.TopologyInfo(nodes=[module.NUMANode(ID=node) for node in nodes]) if nodes else None


def _nodes(message: Any) -> tuple[int, ...]:
    return tuple(node.ID for node in message.topology.nodes)
