"""MIG as programs use it: pynvml changes a host's GPUs, which its state shows to all."""

import re

import pytest

from mews.emulator.nvml.requests import ChangeMig, decode_request, encode_request
from mews.emulator.telemetry.load import parse_load
from tests.emulator.nvml.mig_host import A100, H100, MigHost
from tests.emulator.nvml.test_hotplug import Client

NVML_OF = {A100: 0, H100: 1}


@pytest.fixture
def mig(host):
    with MigHost(host) as served:
        yield served


class User(Client):
    """A program with the handle of one GPU as ``kept['h']``."""

    def __init__(self, mig, device=H100, **environment):
        super().__init__(mig.folder, **environment)
        self.mig = mig
        self.ask("p.nvmlInit()")
        self.ask(f"kept.setdefault('h', p.nvmlDeviceGetHandleByIndex({NVML_OF[device]}))")

    def __exit__(self, *_):
        super().__exit__()
        self.mig.await_end_of(self.child.pid)

    def keep(self, name, expression):
        return self.ask(f"kept.__setitem__('{name}', {expression})")

    def divide(self, *profiles):
        """MIG on, GPU instances of these IDs, each with a compute instance of all its slices."""
        assert self.ask("p.nvmlDeviceSetMigMode(kept['h'], 1)") == "0"
        for number, (profile, compute) in enumerate(profiles):
            assert self.keep(f"gi{number}", f"p.nvmlDeviceCreateGpuInstance(kept['h'], {profile})") == "None"
            made = f"p.nvmlGpuInstanceCreateComputeInstance(kept['gi{number}'], {compute})"
            assert self.keep(f"ci{number}", made) == "None"
            assert self.keep(f"m{number}", f"p.nvmlComputeInstanceGetInfo_v2(kept['ci{number}']).device") == "None"


def numbers(*names):
    return "(lambda i: (" + ", ".join(f"i.{name}" for name in names) + "))"


@pytest.mark.parametrize("request_", [ChangeMig("0000:10:00.0", "create-gpu", (19, 3)), ChangeMig("0000:10:00.0", "x")])
def test_a_change_is_a_line(request_):
    assert decode_request(encode_request(request_)) == request_


def test_the_mode_changes_at_once_on_a_hopper(mig):
    with User(mig) as user:
        assert user.ask("p.nvmlDeviceGetMigMode(kept['h'])") == "[0, 0]"
        assert user.ask("p.nvmlDeviceGetMaxMigDeviceCount(kept['h'])") == "0"
        assert user.ask("p.nvmlDeviceSetMigMode(kept['h'], 1)") == "0"
        assert user.ask("p.nvmlDeviceGetMigMode(kept['h'])") == "[1, 1]"
        assert user.ask("p.nvmlDeviceGetMaxMigDeviceCount(kept['h'])") == "7"
        for call in ("UtilizationRates(kept['h'])", "EncoderUtilization(kept['h'])"):
            assert user.ask(f"p.nvmlDeviceGet{call}") == "NVMLError_NotSupported"


def test_an_ampere_that_another_program_has_open_changes_at_its_next_reset(mig):
    with User(mig, A100) as user:
        mig.pair.hold(A100, "monitor")
        assert user.ask("p.nvmlDeviceSetMigMode(kept['h'], 1)") == "19"  # in use
        assert user.ask("p.nvmlDeviceGetMigMode(kept['h'])") == "[0, 1]"
        mig.pair.release("monitor")
        mig.pair.nvml_calls.reset_gpu(mig.function(A100).bdf, 0.0, asker=["nvml/1"])
        mig.pair.later(60)
        mig.show()
        assert user.ask("p.nvmlDeviceGetMigMode(p.nvmlDeviceGetHandleByIndex(0))") == "[1, 1]"


def test_a_hopper_on_which_a_program_computes_keeps_its_mode(mig):
    with User(mig) as user:
        mig.compute(mig.function(H100).device.uuid)
        assert user.ask("p.nvmlDeviceSetMigMode(kept['h'], 1)") == "19"
        assert user.ask("p.nvmlDeviceGetMigMode(kept['h'])") == "[0, 0]"


@pytest.mark.parametrize(("call", "error"), [
    ("p.nvmlDeviceSetMigMode(kept['h'], 2)", "NVMLError_InvalidArgument"),
    ("p.nvmlDeviceCreateGpuInstance(kept['h'], 19)", "NVMLError_NotSupported"),
    ("p.nvmlDeviceGetGpuInstanceById(kept['h'], 1)", "NVMLError_NotSupported"),
    ("p.nvmlDeviceGetGpuInstanceRemainingCapacity(kept['h'], 19)", "NVMLError_NotSupported"),
    ("p.nvmlDeviceGetMigDeviceHandleByIndex(kept['h'], 0)", "NVMLError_NotFound"),
    ("p.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(kept['h'])", "NVMLError_InvalidArgument"),
    ("p.nvmlDeviceGetGpuInstanceId(kept['h'])", "NVMLError_NotSupported"),
    ("p.nvmlDeviceGetAttributes_v2(kept['h'])", "NVMLError_NotSupported"),
    ("p.nvmlDeviceGetGpuInstanceProfileInfo(kept['h'], 18)", "NVMLError_InvalidArgument"),
    ("p.nvmlDeviceGetGpuInstanceProfileInfo(kept['h'], 5)", "NVMLError_NotSupported"),
    ("p.nvmlDeviceGetMigMode(p.nvmlDeviceGetHandleByIndex(2))", "NVMLError_NotSupported"),
    ("p.nvmlDeviceSetMigMode(p.nvmlDeviceGetHandleByIndex(2), 1)", "NVMLError_NotSupported"),
])  # fmt: skip
def test_a_gpu_with_mig_off_refuses_by_the_librarys_codes(mig, call, error):
    with User(mig) as user:
        assert user.ask(call) == error


def test_profiles_are_told_in_all_versions_also_while_mig_is_off(mig):
    of = numbers("id", "sliceCount", "instanceCount", "multiprocessorCount", "copyEngineCount", "memorySizeMB")
    with User(mig) as user:
        assert user.ask(f"{of}(p.nvmlDeviceGetGpuInstanceProfileInfo(kept['h'], 9))") == "(15, 1, 4, 16, 1, 20096)"
        assert user.ask("p.nvmlDeviceGetGpuInstanceProfileInfoV(kept['h'], 2).name") == "'3g.40gb'"
        user.keep("room", "((p.c_nvmlGpuInstancePlacement_t * 8)(), p.c_uint())")
        asked = "p.nvmlDeviceGetGpuInstancePossiblePlacements(kept['h'], 15, kept['room'][0], p.byref(kept['room'][1]))"
        assert user.ask(asked) == "0"
        places = "[(one.start, one.size) for one in kept['room'][0][:kept['room'][1].value]]"
        assert user.ask(places) == "[(0, 2), (2, 2), (4, 2), (6, 2)]"


def test_a_mig_device_is_a_device_with_a_name_memory_and_engines_of_its_own(mig):
    with User(mig) as user:
        user.divide((9, 2), (19, 0))
        assert user.ask("p.nvmlDeviceGetName(kept['m0'])") == "'NVIDIA H100 PCIe MIG 3g.40gb'"
        assert re.fullmatch(r"'MIG-[0-9a-f]{8}-.*'", user.ask("p.nvmlDeviceGetUUID(kept['m0'])"))
        of = numbers("multiprocessorCount", "sharedDecoderCount", "gpuInstanceSliceCount", "computeInstanceSliceCount",
                     "memorySizeMB")  # fmt: skip
        assert user.ask(f"{of}(p.nvmlDeviceGetAttributes_v2(kept['m0']))") == "(48, 3, 3, 3, 40448)"
        memory = numbers("total", "used")
        assert user.ask(f"{memory}(p.nvmlDeviceGetMemoryInfo(kept['m0']))") == f"({40448 << 20}, {44 << 20})"
        ids = "(p.nvmlDeviceGetGpuInstanceId(kept[m]), p.nvmlDeviceGetComputeInstanceId(kept[m]))"
        assert user.ask(f"[{ids} for m in ('m0', 'm1')]") == "[(1, 0), (11, 0)]"
        assert user.ask("p.nvmlDeviceIsMigDeviceHandle(kept['m1']).value") == "1"
        assert user.ask("p.nvmlDeviceIsMigDeviceHandle(kept['h']).value") == "0"
        assert user.ask("p.nvmlDeviceGetIndex(kept['m1'])") == "1"
        parent = "p.nvmlDeviceGetUUID(p.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(kept['m1']))"
        assert user.ask(parent) == repr(mig.function(H100).device.uuid)
        uuid = user.ask("p.nvmlDeviceGetUUID(kept['m1'])")
        assert user.ask(f"p.nvmlDeviceGetGpuInstanceId(p.nvmlDeviceGetHandleByUUID({uuid}))") == "11"
        old = f"'MIG-{mig.function(H100).device.uuid}/11/0'"
        assert user.ask(f"p.nvmlDeviceGetUUID(p.nvmlDeviceGetHandleByUUID({old}))") == uuid
        for call in ("PowerUsage", "Serial", "MinorNumber", "Temperature"):
            assert user.ask(f"p.nvmlDeviceGet{call}(kept['m1'], *[0] * {call == 'Temperature'})") in (
                "NVMLError_NotSupported",
                "NVMLError_InvalidArgument",
            )


def test_another_program_sees_the_same_and_stale_handles_are_refused(mig):
    with User(mig) as user, User(mig) as other:
        user.divide((19, 0))
        assert other.keep("m", "p.nvmlDeviceGetMigDeviceHandleByIndex(kept['h'], 0)") == "None"
        assert other.ask("p.nvmlDeviceGetUUID(kept['m'])") == user.ask("p.nvmlDeviceGetUUID(kept['m0'])")
        assert user.ask("p.nvmlGpuInstanceDestroy(kept['gi0'])") == "NVMLError_InUse"
        assert user.ask("p.nvmlComputeInstanceDestroy(kept['ci0'])") == "0"
        assert other.ask("p.nvmlDeviceGetUUID(kept['m'])") == "NVMLError_InvalidArgument"
        assert user.ask("p.nvmlGpuInstanceDestroy(kept['gi0'])") == "0"
        assert user.ask("p.nvmlDeviceCreateGpuInstance(kept['h'], 19) and None") == "None"
        # Of the same ID, and yet not the one that the handle was given for.
        assert user.ask("p.nvmlGpuInstanceGetInfo(kept['gi0'])") == "NVMLError_InvalidArgument"


def test_what_does_not_fit_is_refused_with_the_codes_of_the_reference(mig):
    with User(mig) as user:
        user.divide((9, 2), (9, 2))
        assert user.ask("p.nvmlDeviceCreateGpuInstance(kept['h'], 19)") == "NVMLError_InsufficientResources"
        assert user.ask("p.nvmlDeviceCreateGpuInstance(kept['h'], 77)") == "NVMLError_InvalidArgument"
        assert user.ask("p.nvmlGpuInstanceCreateComputeInstance(kept['gi0'], 0)") == "NVMLError_InsufficientResources"
        assert user.ask("p.nvmlGpuInstanceCreateComputeInstance(kept['gi0'], 4)") == "NVMLError_NotSupported"
        assert user.ask("p.nvmlDeviceGetGpuInstanceById(kept['h'], 5)") == "NVMLError_NotFound"
        assert user.ask("p.nvmlDeviceSetMigMode(kept['h'], 0)") == "19"


def test_a_container_without_rights_changes_nothing(mig):
    with User(mig, MEWS_NVML_RIGHTS="none") as user:
        assert user.ask("p.nvmlDeviceSetMigMode(kept['h'], 1)") == "NVMLError_NoPermission"
    assert not mig.function(H100).mig.enabled


def test_a_process_is_shown_on_its_device_alone(mig):
    with User(mig) as user:
        user.divide((9, 2), (19, 0))
        uuid = user.ask("p.nvmlDeviceGetUUID(kept['m1'])").strip("'")
        mig.compute(uuid, pid=5001, load=parse_load(50))
        running = "p.nvmlDeviceGetComputeRunningProcesses_v3(kept[m])"
        of = f"[(i.pid, i.gpuInstanceId, i.computeInstanceId) for i in {running}]"
        assert user.ask(f"[{of} for m in ('m0', 'm1', 'h')]") == "[[], [(5001, 11, 0)], [(5001, 11, 0)]]"
        used = "p.nvmlDeviceGetMemoryInfo(kept['m1'])"
        assert user.ask(f"11 << 20 < {used}.used < {used}.total") == "True"
        assert user.ask("p.nvmlDeviceGetMemoryInfo(kept['m0']).used >> 20") == "44"
        assert user.ask("p.nvmlComputeInstanceDestroy(kept['ci1'])") == "NVMLError_InUse"
        assert user.ask("p.nvmlComputeInstanceDestroy(kept['ci0'])") == "0"
        mig.end()
        assert user.ask("p.nvmlComputeInstanceDestroy(kept['ci1'])") == "0"


def test_a_container_sees_the_devices_that_it_was_given(mig):
    with User(mig) as user:
        user.divide((19, 0), (19, 0), (19, 0))
        uuids = [user.ask(f"p.nvmlDeviceGetUUID(kept['m{n}'])").strip("'") for n in range(3)]
    count = "p.nvmlInit(), p.nvmlDeviceGetCount()"
    device = "p.nvmlDeviceGetMigDeviceHandleByIndex(p.nvmlDeviceGetHandleByIndex(0), {})"
    both = f"{uuids[0]},{uuids[2]}"
    for visible, wanted in ((uuids[1], [uuids[1]]), (both, [uuids[2], uuids[0]]), ("1:0", [uuids[1]])):
        with Client(mig.folder, NVIDIA_VISIBLE_DEVICES=visible) as inside:
            assert inside.ask(count) == "(None, 1)"
            seen = f"[p.nvmlDeviceGetUUID({device.format('n')}) for n in range({len(wanted)})]"
            assert inside.ask(seen) == str(wanted)
            assert inside.ask(device.format(len(wanted))) == "NVMLError_NotFound"
            hidden = next(uuid for uuid in uuids if uuid not in wanted)
            assert inside.ask(f"p.nvmlDeviceGetHandleByUUID('{hidden}')") == "NVMLError_NotFound"


def test_an_xid_of_an_instance_reaches_those_who_see_it_alone(mig):
    with User(mig) as user:
        user.divide((19, 0), (19, 0))
        first, second = (user.ask(f"p.nvmlDeviceGetUUID(kept['m{n}'])").strip("'") for n in range(2))
    register = (
        "p.nvmlInit(), kept.setdefault('s', p.nvmlEventSetCreate()), "
        "p.nvmlDeviceRegisterEvents(p.nvmlDeviceGetHandleByIndex({}), p.nvmlEventTypeXidCriticalError, kept['s'])"
    )
    heard = "[(e.eventData, e.gpuInstanceId) for e in [p.nvmlEventSetWait_v2(kept['s'], {})]]"
    numbers = [uuid for _, one in mig.function(H100).mig.devices() for uuid in [one.uuid]]
    instance = next(parent.id for parent, one in mig.function(H100).mig.devices() if one.uuid == second)
    with (
        Client(mig.folder, NVIDIA_VISIBLE_DEVICES=first) as other,
        Client(mig.folder, NVIDIA_VISIBLE_DEVICES=second) as own,
        Client(mig.folder) as whole,
    ):
        for client, index in ((other, 0), (own, 0), (whole, 1)):
            client.ask(register.format(index))
        with mig.lock:
            spec = {"kind": "xid", "device": H100, "xid": 48, "mig_device": numbers.index(second)}
            mig.pair.host.faults.add(spec, mig.pair.t)
            mig.pair.later(1)
            mig.show()
        assert own.ask(heard.format(5000)) == whole.ask(heard.format(5000)) == f"[(48, {instance})]"
        assert other.ask(heard.format(300)) == "NVMLError_Timeout"
        with mig.lock:
            mig.pair.host.faults.add({"kind": "xid", "device": H100, "xid": 62}, mig.pair.t)
            mig.pair.later(1)
            mig.show()
        assert [int(client.ask(heard.format(5000))[2:4]) for client in (other, own, whole)] == [62] * 3


def test_instances_end_with_a_reset_and_the_mode_by_the_model(mig):
    for device, kept in ((A100, True), (H100, False)):
        with User(mig, device) as user:
            user.divide((19, 0))
        function = mig.function(device)
        mig.pair.nvml_calls.reset_gpu(function.bdf, mig.pair.t)
        mig.pair.later(60)
        assert (function.mig.enabled, function.mig.instances) == (True, ())
        mig.pair.host.set_power(False, mig.pair.t)
        mig.pair.host.set_power(True, mig.pair.t)
        mig.pair.later(60)
        assert mig.function(device).mig.enabled is kept
