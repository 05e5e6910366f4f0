"""A client that calls every exported function, under AddressSanitizer and under valgrind.

The client is made from the library's own definitions: each argument gets each plausible value of its type.
"""

import itertools
import os
import re
import shutil
import subprocess

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.hardware.topology import cube_mesh
from mews.emulator.nvml.compile import LIBRARY, system_compiler
from mews.emulator.nvml.library import library_path, sources
from mews.emulator.nvml.mig.instances import MigState, compute_created, created
from mews.emulator.nvml.mig.models import mig_table
from mews.emulator.nvml.state import NvmlEvent, NvmlProcess
from tests.emulator.nvml.hosts import gpu

CC = system_compiler()
DEFINITION = re.compile(r"\b(?:Return|const char \*) ?(nvml\w+)\(([^)]*)\) ?\{")

HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nvml.h"
static void *devices[3], *set, *mig[2];
static const unsigned FIRST[] = {0, 1, 2, 8, 0x2000028, 0x1000040, 0x100000C, 0x1000008, 0x1000010, 0x1000018,
                                 0x1000020, 0x1000034, 0x1000054, 0x2000098, 0x3000098, 0x2000088, 0x300008C,
                                 0x7000001};
/* Exactly as long as the call may expect. It begins with a version, a count or a kind, whichever it is taken for. */
static void *page(size_t size, unsigned first) {
    char *bytes = calloc(1, size);
    unsigned words[2] = {first, first % 3};
    memcpy(bytes, words, size < sizeof words ? size : sizeof words);
    return bytes;
}
"""

COUNTS, VERSIONS = 4, 18
"""Turns: the first four words of FIRST are fit for a count, all of them for a version."""

MAIN_HEAD = """
int main(void) {
    if (nvmlInit_v2() != 0 || nvmlDeviceGetHandleByIndex_v2(0, &devices[0]) != 0) return 2;
    if (nvmlDeviceGetHandleByIndex_v2(1, &devices[1]) != 0 || nvmlEventSetCreate(&set) != 0) return 3;
    nvmlDeviceRegisterEvents(devices[0], 8ull, set);
    if (nvmlDeviceGetMigDeviceHandleByIndex(devices[1], 0, &devices[2]) != 0) return 4;
    if (nvmlDeviceGetGpuInstanceById(devices[1], 1, &mig[0]) != 0) return 5;
    if (nvmlGpuInstanceGetComputeInstanceById(mig[0], 0, &mig[1]) != 0) return 6;
"""

SYSTEM_EVENTS = """
    struct { unsigned version; void *set; } create = {0x1000010, 0};
    struct { unsigned version; unsigned long long types; void *set; } wish = {0x1000018, 3, 0};
    char data[256];
    struct { unsigned version, ms; void *set, *data; unsigned size, count; } wait = {0x1000020, 2, 0, data, 8, 0};
    nvmlSystemEventSetCreate(&create);
    wish.set = wait.set = create.set;
    nvmlSystemRegisterEvents(&wish);
    nvmlSystemEventSetWait(&wait);
    nvmlSystemEventSetFree(&create);
    nvmlSystemEventSetWait(&wait);
    for (unsigned field = 0; field < 256; field++) {
        unsigned words[16] = {field};
        nvmlDeviceGetFieldValues(devices[0], 1, words);
    }
    struct { unsigned version, mode, count; void *list; } list = {0x1000018, 0, 4, data};
    for (; list.mode < 4; list.mode++, list.count = 4) nvmlDeviceGetRunningProcessDetailList(devices[1], &list);
    for (const char **text = (const char *[]){"", "GPU-", "0000:10:00.0", "0:1:x", "1320100000000", 0}; *text; text++) {
        nvmlDeviceGetHandleByUUID(*text, data);
        nvmlDeviceGetHandleBySerial(*text, data);
        nvmlDeviceGetHandleByPciBusId_v2(*text, data);
    }
"""


def definitions():
    """(name, types of the arguments) of every function, macros expanded."""
    found = {}
    for path in sorted((sources() / "lib").glob("*.c")):
        command = [*CC, "-E", "-P", f"-I{sources()}", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for name, arguments in DEFINITION.findall(text):
            words = [argument.strip() for argument in arguments.split(",")]
            found[name] = [] if words == ["void"] else words
    return found


def parsed(argument):
    """(type without its last star or const, name, whether it is a pointer)."""
    kind, name = re.fullmatch(r"(.*?)(\w+)", argument).groups()
    kind = kind.replace("const ", "").strip()
    return kind.removesuffix("*").strip(), name, kind.endswith("*")


def values(kind, name, pointer):
    """What to give for an argument of this type."""
    if pointer:
        return ["page", "0"]
    if kind == "Device":
        return ["devices[0]", "devices[1]", "devices[2]", "(void *)devices"]
    if kind in ("GpuInstanceRef", "ComputeInstanceRef"):
        return ["mig[0]" if kind == "GpuInstanceRef" else "mig[1]", "(void *)devices"]
    if kind == "EventSetHandle":
        return ["set", "(void *)devices"]
    if "long long" in kind:
        return ["8ull"]
    return ["0", "2"] if "timeout" in name else ["0", "1", "64"]


def size(kind, name, known, choice):
    """C: the bytes behind a pointer. Beside a number called length, size or count it is an array of so many."""
    if kind == "void":
        return "152" if name == "info" else "64"
    if name == "kind":  # of samples: one for all of them
        return f"sizeof({kind})"
    if kind == "char" and "length" not in known:
        return "96"
    if "count" in known and kind in ("GpuInstanceRef", "ComputeInstanceRef", "MigPlacement"):
        return f"8 * sizeof({kind})"  # such a count is told and never asked for
    for count in ("length", "size", "count"):
        if count in known and name != count:
            many = choice[count] if choice[count] != "page" else "FIRST[v]"
            structure = kind in ("DriverBranch",)
            return f"sizeof({kind})" if structure or (many == "0" and kind != "char") else f"{many} * sizeof({kind})"
    return f"sizeof({kind})"


def calls(name, arguments):
    """C statements: every combination; pointers take every first word in turn."""
    known = {words[1]: words for words in map(parsed, arguments)}
    for chosen in itertools.product(*(values(*words) for words in known.values())):
        choice = dict(zip(known, chosen, strict=True))
        pages = [one for one, word in choice.items() if word == "page"]
        before = "".join(f"void *{one} = page({size(known[one][0], one, known, choice)}, FIRST[v]); " for one in pages)
        given = ", ".join(one if word == "page" else word for one, word in choice.items())
        after = "".join(f"free({one}); " for one in pages)
        turns = COUNTS if choice.get("count") == "page" else VERSIONS if pages else 1
        yield f"    for (unsigned v = 0; v < {turns}; v++) {{ {before}{name}({given}); {after}}}\n"


def client(folder, *flags, library):
    """Compile the client against a library; (program, number of functions it calls)."""
    known = definitions()
    ends = {"nvmlShutdown", "nvmlEventSetFree"}
    lines = [HEAD]
    for name, arguments in known.items():
        lines.append(f"extern int {name}();\n")
        if name not in ends:
            lines.append(f"static void try_{name}(void) {{\n{''.join(calls(name, arguments))}}}\n")
    lines.append(MAIN_HEAD)
    lines += [f"    try_{name}();\n" for name in known if name not in ends]
    lines += [SYSTEM_EVENTS, "    nvmlEventSetFree(0);\n    nvmlEventSetFree(set);\n    set = 0;\n"]
    lines.append('    while (nvmlShutdown() == 0) continue;\n    puts("done");\n    return 0;\n}\n')
    source = folder / "client.c"
    source.write_text("".join(lines))
    program = folder / "client"
    command = [*CC, "-std=gnu11", "-w", "-g", f"-I{sources()}", *flags, "-o", str(program), str(source), str(library)]
    subprocess.run(command, check=True)
    return program, len(known)


def divided(uuid):
    """MIG of an A100: a half with two compute instances."""
    table = mig_table(PROFILES["A100"])
    state = created(MigState(enabled=True, pending=True), table, 9)
    for profile in (0, 1):
        state = compute_created(state, table, uuid, 1, profile)
    return state


@pytest.fixture
def busy(host):
    """A host with all there is: processes, events, NVLinks, a lost GPU."""
    processes = (NvmlProcess(1, "a", 10), NvmlProcess(2, "b", 20, "G"), NvmlProcess(3, "c", 30))
    events = (NvmlEvent(1, "xid", gpu(0).bus_id, 79), NvmlEvent(2, "bind", gpu(0).bus_id))
    gpus = [gpu(0, "V100", processes=processes), gpu(1, "A100", processes=processes, mig=divided(gpu(1).uuid))]
    gpus += [gpu(number, "RTX 3090", lost=number == 5) for number in range(2, 8)]
    host.show(*gpus, topology=cube_mesh(), events=events)
    return host


def needs_compiler():
    if CC is None:
        pytest.skip("there is no C compiler to make the client with")


def test_address_and_undefined_behaviour_sanitizers_find_nothing(busy, tmp_path):
    needs_compiler()
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    library = tmp_path / LIBRARY
    files = map(str, sorted((sources() / "lib").glob("*.c")))
    shared = ("-std=gnu11", "-g", "-fPIC", "-shared", f"-Wl,-soname,{LIBRARY}", f"-I{sources()}")
    made = subprocess.run([*CC, *flags, *shared, "-o", str(library), *files], capture_output=True, text=True)
    if made.returncode != 0 and "san" in made.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    program, count = client(tmp_path, *flags, library=library)
    assert count > 420
    environment = {"LD_LIBRARY_PATH": str(tmp_path), "MEWS_NVML_STATE": str(busy.state)}
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_valgrind_finds_nothing(busy, tmp_path):
    needs_compiler()
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    program, _ = client(tmp_path, library=library_path())
    options = ("-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite")
    command = ["valgrind", *options, "--show-leak-kinds=definite", str(program)]
    environment = {**busy.environment(), "MEWS_NVML_STATE": str(busy.state)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
