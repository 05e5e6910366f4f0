"""No class has so many methods that nobody sees what it is for."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("ci", "emulator", "harness", "kube", "src", "systems")
MOST = 19
"""Methods and properties that a class itself defines, private ones too; a property and its setter are one."""

STILL_LARGE = {
    "emulator/dialects/cdim/service.py:CdimFace": 34,
    "kube/scheduling/scheduler.py:Scheduler": 33,
    "systems/kod2/operator.py:Kod2Operator": 33,
    "kube/emulated/kubelet/pod_worker.py:PodWorker": 31,
    "kube/dra/driver.py:DriverComponent": 30,
    "systems/koordinator/plugin.py:DeviceShare": 30,
    "systems/kubecomp/device_manager.py:ChassisDeviceManager": 30,
    "harness/conformance/bench.py:ClauseContext": 29,
    "kube/cel/parser.py:_Parser": 29,
    "kube/emulated/kubelet/containerd.py:Containerd": 29,
    "systems/kubecomp/plugin.py:FalconResources": 29,
    "emulator/host/sysfs.py:Sysfs": 28,
    "emulator/telemetry/gpu.py:GpuTelemetry": 28,
    "harness/live/session.py:LiveSession": 28,
    "kube/scheduling/plugins/claims.py:DynamicResources": 27,
    "systems/kod2/reconciler.py:Reconciler": 27,
    "systems/kubecomp/node_devices.py:NodeDevices": 27,
    "kube/emulated/core/store/store.py:Store": 25,
    "systems/gpushare/extender.py:GpuShareExtender": 25,
    "harness/conformance/dialects/fm_table.py:FmTableClient": 24,
    "systems/gpushare/node_plan.py:NodePlan": 24,
    "systems/kubecomp/pool_worker.py:PoolWorker": 24,
    "harness/live/server.py:SessionServer": 23,
    "kube/cel/costs.py:_Coster": 23,
    "kube/emulated/controllers/deployment/controller.py:_Work": 23,
    "kube/emulated/controllers/job/work.py:JobPass": 23,
    "kube/emulated/controllers/volumebinder/controller.py:VolumeBinder": 23,
    "kube/emulated/kubelet/kubelet.py:Kubelet": 23,
    "kube/scheduling/queue.py:Queue": 23,
    "harness/conformance/client.py:Client": 22,
    "kube/cel/checker.py:_Checker": 22,
    "kube/nvml_library.py:NvmlLibrary": 22,
    "systems/koordinator/koordlet.py:Koordlet": 22,
    "systems/kubecomp/simulated_pool.py:SimulatedPool": 22,
    "harness/conformance/dialects/redfish_table.py:RedfishTableClient": 21,
    "kube/scheduling/devices/allocator.py:_Search": 21,
    "systems/kod2/policy.py:_Scheduling": 21,
    "emulator/dialects/fm/service.py:FmFace": 20,
    "emulator/dialects/redfish/service.py:RedfishFace": 20,
    "emulator/hostd/rack.py:HostRack": 20,
    "emulator/telemetry/chassis.py:ChassisTelemetry": 20,
    "harness/api_faults/control.py:ApiFaults": 20,
    "harness/clusters/embedded/served.py:ServedPorts": 20,
    "harness/clusters/embedded/stack_units.py:StackUnits": 20,
    "kube/emulated/controllers/devicetaints/controller.py:DeviceTaintEviction": 20,
    "kube/emulated/controllers/garbage.py:GarbageCollector": 20,
    "kube/system/host_steps.py:HostSteps": 20,
    "systems/koordinator/cache.py:NodeDeviceCache": 20,
    "systems/kubecomp/laws/board.py:Board": 20,
}
"""Classes that are not split yet, with their methods. None joins them, and none grows."""


def sizes(text):
    """Class -> how many methods it defines itself."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name: len({child.name for child in node.body if isinstance(child, functions)})
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }


def test_classes_have_fewer_than_twenty_methods():
    found = {
        f"{path.relative_to(ROOT)}:{name}": size
        for package in PRODUCT
        for path in sorted((ROOT / package).rglob("*.py"))
        for name, size in sizes(path.read_text(encoding="utf-8")).items()
        if size > MOST
    }
    assert found == STILL_LARGE  # after a split, take the class out of the list or lower its number


def test_methods_are_counted_once_whatever_they_are():
    text = """
class Outer:
    x: int = 0
    def a(self): ...
    async def _b(self):
        def inner(): ...
    @property
    def c(self): ...
    @c.setter
    def c(self, value): ...
    class Inner:
        def d(self): ...
"""
    assert sizes(text) == {"Outer": 3, "Inner": 1}
