"""Calls of all functions of NVML's header with arguments by chance, under AddressSanitizer: no crash and no leak."""

import re
import subprocess
from pathlib import Path

import pytest

from mews.emulator.hardware.topology import cube_mesh
from mews.emulator.nvml.compile import LIBRARY, system_compiler
from mews.emulator.nvml.library import sources
from mews.emulator.nvml.state import NvmlEvent, NvmlHost, NvmlProcess, render
from tests.emulator.nvml.header import family, functions, types
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.test_every_call import divided
from tests.emulator.nvml.test_hotplug import Driver

DAILY, NIGHTLY = 100_000, 1_000_000
FAMILIES = {
    "nvmlDevice_t": "D",
    "nvmlEventSet_t": "E",
    "nvmlSystemEventSet_t": "S",
    "nvmlUnit_t": "U",
    "nvmlGpuInstance_t": "G",
    "nvmlComputeInstance_t": "I",
    "nvmlGpmSample_t": "P",
}
HOLDING = {"nvmlSystemEventSetCreateRequest_t": "S", "nvmlGpuInstanceInfo_t": "D"}
"""Structs with a handle, by what it is a handle of."""
STRINGS = ("pciBusId", "serial", "uuid")
NO_COUNT = ("EncoderStats", "GetMaxInstances", "GetMemoryErrorCounter", "GetTotalEccErrors")
BYTES = ("nvmlDeviceGetSupportedPerformanceStates", "nvmlDeviceGetVgpuMetadata", "nvmlVgpuInstanceGetMetadata")
"""Functions whose count is one of bytes."""
GSP_VERSION_SIZE = 64
HANDLE = 16384
"""Added to the offset of a handle in a struct: a pointer that the library never follows."""
ENDS = ("nvmlShutdown", "nvmlErrorString")
LACKING = re.findall(r"^UNSUPPORTED\((\w+)\)", (sources() / "lib" / "unsupported.c").read_text(), re.MULTILINE)
NEEDED = 150
"""So many functions have to succeed at least once: the calls get past the checks of their arguments."""


def count_of(name, arguments):
    """The place of the argument that counts the elements of the others, or None."""
    if any(word in name for word in NO_COUNT):
        return None
    for place, one in enumerate(arguments):
        if one.name.lower().endswith(("count", "size", "length")) and one.type in ("unsigned-int", "int"):
            others = [other for other in arguments if other.pointer and other is not one]
            return place if others else None
    return None


def row(name, arguments, known):
    """The function in C."""
    count = count_of(name, arguments)
    words = [described(name, place, arguments, count, known) for place, _ in enumerate(arguments)]
    return f'    {{"{name}", {int(name in LACKING)}, {len(arguments)}, {{{", ".join(words)}}}}},\n'


def described(name, place, arguments, count, known):
    one = arguments[place]
    told = known[one.type]
    if place == count:
        return c("C" if one.pointer else "c")
    if not one.pointer and told.kind == "handle":
        return c("h", handles=FAMILIES[one.type])
    if not one.pointer:
        return c("t" if "timeout" in one.name.lower() else "n", size=told.size)
    if one.type == "char" and one.name in STRINGS and "Handle" in name:
        return c("s")
    if one.type == "char" and count is None:
        return c("a", size=GSP_VERSION_SIZE)
    if count is None or one.name in ("sampleValType", "vmIdType", "branchInfo"):
        return structure(one.type, told, known)
    only_written = arguments[count].name == "count" and place < count
    return c("a", size=1 if name in BYTES else told.size, count=-1 if only_written else count)


def structure(name, told, known):
    pointers = [each.offset + (HANDLE if each.handle else 0) for each in told.members if each.pointer or each.handle]
    handles = HOLDING.get(name, "") or (FAMILIES[name] if told.kind == "handle" else "")
    return c("p", size=told.size, versions=family(name, known), pointers=pointers, handles=handles)


def c(kind, *, size=0, count=-1, versions=(), pointers=(), handles=""):
    """An argument in C."""
    places = ", ".join(map(str, [*pointers[:4], -1][:4]))
    words = ", ".join(map(hex, versions)) or "0"
    return f"{{'{kind}', {ord(handles) if handles else 0}, {size}, {count}, {{{words}}}, {{{places}}}}}"


def states():
    """What the host shows in turn: all, some of it gone, nothing, a driver that is unloaded."""
    processes = (NvmlProcess(1, "a", 10), NvmlProcess(2, "b", 20, "G"), NvmlProcess(3, "c", 30))
    events = (NvmlEvent(1, "xid", gpu(0).bus_id, 79), NvmlEvent(2, "bind", gpu(0).bus_id))
    mesh = [gpu(n, processes=processes, utilization_percent=60) for n in range(8)]
    models = ("A100", "H100-SXM", "GB200", "L4", "T4", "RTX 3090", "H20", "RTX 6000 ADA")
    mixed = [gpu(n, model, processes=processes, utilization_percent=90) for n, model in enumerate(models)]
    mixed[0] = gpu(0, "A100", processes=processes, utilization_percent=90, mig=divided(gpu(0).uuid))
    lost = [gpu(n, model, lost=n == 1, unknown_error=n == 2, draining=n == 3) for n, model in enumerate(models)]
    return (
        NvmlHost(gpus=tuple(mesh), topology=cube_mesh(), events=events),
        NvmlHost(gpus=tuple(mixed), events=events),
        NvmlHost(gpus=tuple(mixed), switched=True),
        NvmlHost(gpus=tuple(mixed[1:3]), switched=True),
        NvmlHost(gpus=tuple(lost), events=events),
        NvmlHost(),
        NvmlHost(driver_loaded=False),
    )


def built(folder):
    """The library and the client, both with the sanitizer."""
    cc = system_compiler()
    if cc is None:
        pytest.skip("there is no C compiler to make the client with")
    flags = ("-std=gnu11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    known = types()
    rows = [row(name, arguments, known) for name, arguments in functions().items() if name not in ENDS]
    (folder / "table.h").write_text(f"static const Function TABLE[] = {{\n{''.join(rows)}}};\n")
    files = map(str, sorted((sources() / "lib").glob("*.c")))
    library = folder / LIBRARY
    shared = ("-fPIC", "-shared", f"-I{sources()}", "-o", str(library), *files)
    made = subprocess.run([*cc, *flags, *shared], capture_output=True, text=True)
    if made.returncode != 0 and "san" in made.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    source, program = Path(__file__).with_name("call_fuzz.c"), folder / "fuzz"
    subprocess.run([*cc, *flags, f"-I{folder}", "-o", str(program), str(source), "-ldl"], check=True)
    return program


def fuzz(host, folder, seed, calls):
    """What the client prints; it must end well."""
    program, shown = built(folder), states()
    for number, state in enumerate(shown):
        Path(f"{host.state}.{number}").write_bytes(render(state))
    with Driver(host):
        environment = {**host.environment(), "LD_LIBRARY_PATH": str(folder), "MEWS_NVML_STATE": str(host.state)}
        done = subprocess.run(
            [program, str(calls), str(seed), str(len(shown))],
            capture_output=True,
            text=True,
            timeout=300,
            env={**environment, "ASAN_OPTIONS": "detect_leaks=1"},
        )
    assert (done.returncode, done.stderr) == (0, ""), f"seed {seed}: {done.stdout}{done.stderr[-6000:]}"
    return done.stdout


def test_no_arguments_make_a_call_crash_or_leak(host, tmp_path):
    told = fuzz(host, tmp_path, 1, DAILY)
    assert int(told.split()[0]) >= NEEDED, told


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 5))
def test_no_arguments_of_a_million_calls_make_one_crash_or_leak(host, tmp_path, seed):
    assert int(fuzz(host, tmp_path, seed, NIGHTLY).split()[0]) >= NEEDED
