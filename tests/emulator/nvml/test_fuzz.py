"""Broken, cut and mutated state files never crash a client."""

import random
import struct
import subprocess
import zlib

import pytest

from mews.emulator.hardware.topology import cube_mesh, pcie
from mews.emulator.nvml.compile import system_compiler
from mews.emulator.nvml.library import sources
from mews.emulator.nvml.state import NvmlEvent, NvmlHost, NvmlProcess, render
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.test_every_call import divided

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "lib/state.h"
int main(void) {
    unsigned length, good = 0, all = 0;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        char *bytes = malloc(length); /* exactly as long: one byte beyond is an error */
        if (length && fread(bytes, length, 1, stdin) != 1) return 2;
        State *state = state_parse(bytes, length);
        good += state != NULL;
        all++;
        state_free(state);
        free(bytes);
    }
    printf("%u of %u\n", good, all);
    return 0;
}
"""

NASTY = (b"", b"-1", b"-", b"9223372036854775807", b"99999999999999999999", b"%", b"%0", b"%zz", b" ", b"gpu\n", b"\0")


def sample():
    processes = (NvmlProcess(1, "a b%", 10), NvmlProcess(2, "ü" * 200, 20, "G", 1, 0))
    events = tuple(NvmlEvent(number, "xid", gpu(0).bus_id, 79) for number in range(1, 9))
    return render(
        NvmlHost(
            gpus=(
                *(gpu(n, processes=processes, link_ends=("0000:11:00.0",) * 6) for n in range(7)),
                gpu(7, "A100", processes=processes, mig=divided(gpu(7).uuid)),
            ),
            topology=cube_mesh(),
            levels=pcie((0, 0, 0, 0, 1, 1, 1, 1)),
            events=events,
        )
    )


def sealed(body):
    """A body with a head that fits it: what is wrong is wrong inside."""
    return f"mews-nvml 1 {len(body)} {zlib.crc32(body):08x}\n".encode() + body


def mutated(rng, whole):
    """One file that something has happened to."""
    body = whole.split(b"\n", 1)[1]
    kind = rng.randrange(6)
    if kind == 0:
        return whole[: rng.randrange(len(whole))]
    if kind == 1:
        at = rng.randrange(len(whole))
        return whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :]
    lines = body.split(b"\n")
    at = rng.randrange(len(lines) - 1)
    if kind == 2:
        del lines[at]
    elif kind == 3:
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif kind == 4:
        key, _, _ = lines[at].partition(b" ")
        lines[at] = key + b" " + rng.choice(NASTY)
    else:
        words = lines[at].split(b" ")
        words[rng.randrange(len(words))] = rng.choice(NASTY)
        lines[at] = b" ".join(words)
    return sealed(b"\n".join(lines))


def test_the_parser_survives_thousands_of_mutations_under_the_sanitizers(tmp_path):
    cc = system_compiler()
    if cc is None:
        pytest.skip("there is no C compiler to make the driver with")
    source, program = tmp_path / "driver.c", tmp_path / "driver"
    source.write_text(DRIVER)
    flags = ("-std=gnu11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{sources()}")
    files = (str(source), *(str(sources() / "lib" / name) for name in ("state.c", "words.c", "mig_state.c")))
    made = subprocess.run([*cc, *flags, "-o", str(program), *files], capture_output=True, text=True)
    if made.returncode != 0 and "san" in made.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert made.returncode == 0, made.stderr
    rng, whole = random.Random(4), sample()
    corpus = [whole, b"", sealed(b""), sealed(b"\n"), *(mutated(rng, whole) for _ in range(4000))]
    fed = b"".join(struct.pack("=I", len(one)) + one for one in corpus)
    done = subprocess.run([program], input=fed, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    good, count = map(int, done.stdout.split(b" of "))
    assert count == len(corpus)
    assert 3 <= good < count - 1000


def test_a_living_client_survives_them_too(host, tmp_path):
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed; pip install 'falcon-mews[test]' brings it")
    rng, whole = random.Random(5), sample()
    names = []
    for number in range(300):
        names.append(tmp_path / f"{number}.state")
        names[-1].write_bytes(mutated(rng, whole))
    host.show(gpu(0))
    told = host.python(
        "import os, sys, pynvml as p\n"
        "p.nvmlInit()\n"
        "told = set()\n"
        "def attempt(call, *arguments):\n"
        "    try:\n"
        "        result = call(*arguments)\n"
        "        told.add(0)\n"
        "        return result\n"
        "    except p.NVMLError as error: told.add(error.value)\n"
        f"for number in range({len(names)}):\n"
        f"    os.replace(f'{tmp_path}/{{number}}.state', {str(host.state)!r})\n"
        "    for index in range(attempt(p.nvmlDeviceGetCount) or 0):\n"
        "        device = attempt(p.nvmlDeviceGetHandleByIndex, index)\n"
        "        for call in (p.nvmlDeviceGetUUID, p.nvmlDeviceGetMemoryInfo, p.nvmlDeviceGetComputeRunningProcesses,\n"
        "                     p.nvmlDeviceGetName, p.nvmlDeviceGetTotalEnergyConsumption):\n"
        "            device and attempt(call, device)\n"
        "p.nvmlShutdown()\n"
        "print(sorted(told))\n"
    )
    assert set(eval(told)) <= {0, 9, 15, 999}
    assert {0, 999} <= set(eval(told))


@pytest.mark.parametrize("content", [b"", b"\n", b"mews-nvml", b"mews-nvml 2 0 00000000\n", b"\0" * 100], ids=repr)
def test_what_is_no_state_file_is_an_unknown_error(host, content):
    host.state.write_bytes(content)
    assert host.smi() == (255, "Failed to initialize NVML: Unknown Error\n")


def test_a_folder_in_its_place_is_no_driver(host):
    host.state.mkdir()
    assert host.smi()[0] == 9


def test_threads_and_a_changing_host_do_not_disturb_each_other(host):
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed; pip install 'falcon-mews[test]' brings it")
    code = (
        "import pathlib, sys, threading, pynvml as p\n"
        "from mews.emulator.nvml.state import NvmlHost, write_state\n"
        "from tests.emulator.nvml.hosts import gpu, uuid_of\n"
        "p.nvmlInit()\n"
        "stop, seen, errors = threading.Event(), set(), []\n"
        "def look():\n"
        "    while not stop.is_set():\n"
        "        try:\n"
        "            device = p.nvmlDeviceGetHandleByUUID(uuid_of(1))\n"
        "            seen.add(p.nvmlDeviceGetPciInfo(device).busId)\n"
        "        except (p.NVMLError_NotFound, p.NVMLError_GpuIsLost): pass\n"
        "        except BaseException as error: errors.append(repr(error)); return\n"
        "threads = [threading.Thread(target=look) for _ in range(4)]\n"
        "[thread.start() for thread in threads]\n"
        "for turn in range(200):\n"
        "    there = (gpu(0), gpu(1, bus_id=f'0000:{0x20 + turn % 3:02x}:00.0'))[: 1 + turn % 2]\n"
        f"    write_state(pathlib.Path({str(host.state)!r}), NvmlHost(gpus=there))\n"
        "stop.set()\n"
        "[thread.join() for thread in threads]\n"
        "print(errors, seen <= {f'00000000:{bus}:00.0' for bus in (20, 21, 22)})\n"
    )
    host.show(gpu(0))
    root = sources().parents[2]
    assert host.python(code, PYTHONPATH=f"{root / 'src'}:{root}") == "[] True\n"
