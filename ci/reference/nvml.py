"""What of NVML and nvidia-smi is emulated, read from the sources in C: functions, options and commands."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from ci.reference.markdown import code, paragraphs, table
from mews.emulator import nvml
from mews.emulator.hardware.gpu_profiles import PROFILES

SOURCES = Path(nvml.__file__).parent / "c"
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "nvml.md"
SUMMARY_HEAD = "||emulated|not|"
_DEFINED = re.compile(r"^(?:EXPORT Return |[A-Z_]+\()(nvml\w+)", re.MULTILINE)
_READS = re.compile(r"Get[A-Z]|Query|Is[A-Z]")
_UNSUPPORTED = re.compile(r"^UNSUPPORTED\((nvml\w+)\)", re.MULTILINE)
_VALUED = re.compile(r'valued\("(--[\w-]+)", (?:"(-\w+)"|NULL)')
_FLAG = re.compile(r'is\(arguments\[at\], "(-\w+)", "(--[\w-]+)"\)')
_ALONE = re.compile(r'strcmp\(arguments\[at\], "(--[\w-]+)"\) == 0\) \{')
_SETTING = re.compile(r'= \{(?:"(-\w+)"|NULL), "(--[\w-]+)", (?:"|NULL)')
_COMPARED = re.compile(r'strcmp\(arguments\[\w+\], "(-\w+)"\) == 0 \|\| strcmp\(arguments\[\w+\], "(--[\w-]+)"\)')
_ROW = re.compile(r'\{"(-\w+)", "(--[\w-]+)"[,}]')
_PAIR = re.compile(r'\{(?:"(-\w+)"|NULL), "(--[\w-]+)"\}')
_CHOICE = re.compile(r'\{(?:"(-\w+)"|NULL), "(--[\w-]+)", (\w+)\}')
_COMMAND = re.compile(r'\{(?:"[^"]+"|NULL), "([\w-]+)", "[^"]+", (\w+), \d+\}')
_ACTING = ("lib/setters.c", "lib/hotplug.c", "lib/nvlink.c", "lib/mig_devices.c", "lib/mig_instances.c", "lib/fields.c")
"""The files whose functions change something of a GPU."""

ANSWERS = Path(__file__).resolve().parents[1] / "nvml-answers.txt"
"""What ``ci.nvml_fields`` wrote."""
CALLERS = (
    ("nvidia_gpu_exporter", "--help-query-gpu"),
    ("nvidia_gpu_exporter", "--query-gpu=… --format=csv"),
    ("telegraf, input nvidia_smi", "-q -x"),
    ("mamba", "--query -u -x"),
)
"""Programs and the arguments that they give (``tests/emulator/nvml/test_smi_commands.py``)."""
PROGRAMS = Path(__file__).resolve().parents[2] / "tests/emulator/nvml/programs.yaml"
CLASSES = {"works": "works", "set": "works with", "wrong": "shows something wrong", "cannot": "cannot without"}
"""How a program does, as the file says it -> in the words of the page."""
ASSUMED = (
    "Each NVLink carries the same share of its rate as the PCIe slot. Headers add an eighth.",
    "A load spends half its time in tensor cores with 16-bit numbers, and a tenth in each other unit of GPM's metrics.",
    "NVLinks, C2C links and SRAM have no errors. ECC errors that you set are errors of the device memory.",
    "GPUs joined to a Grace processor have five C2C links each.",
    "Mode `MIN` of NVLink bandwidth leaves a quarter of the links; the mode with all links is the best.",
    "The layout of the lists of `compute-policy`, `boost-slider` and `gpm`.",
    "Time-slices, `vboost`, streaming and `-lgc --mode` change no telemetry.",
    "Fields of `--query-gpu` that no source dates are there from branch 535 on.",
    "Lines of `dmon --gpm-options m` have the column `gi`, and dashes for what is measured of GPUs alone.",
    "Nine of GPM's metrics have their names at the head of `dmon`, the others their numbers.",
    "Columns of `dmon --format csv` are separated by a comma and a space.",
    "Samples that are older than the last change of a host show the value since that change.",
)
"""What no source tells, and what is shown instead."""


def functions() -> dict[str, str]:
    """Return NVML's functions -> ``acts``, ``answers`` or ``not supported``."""
    names = (SOURCES.parent / "symbols.txt").read_text(encoding="utf-8").split()
    lacking = set(_UNSUPPORTED.findall(_source("lib/unsupported.c")))
    acting = {name for path in _ACTING for name in _DEFINED.findall(_source(path)) if not _READS.search(name)}
    return {name: "not supported" if name in lacking else "acts" if name in acting else "answers" for name in names}


def _source(path: str) -> str:
    return (SOURCES / path).read_text(encoding="utf-8")


def options() -> dict[str, str]:
    """Return nvidia-smi's options, with their short forms -> ``emulated`` or ``refused``."""
    main, settings = _source("smi/main.c"), _source("smi/settings.c")
    refused = main[main.index("NOT_EMULATED[]") :].partition("{NULL, NULL}")[0]
    emulated = [(name, brief) for name, brief in (*_VALUED.findall(main), *_VALUED.findall(settings))]
    records = main[main.index("WHAT[] = {") :].partition("}")[0]
    emulated += [(f"--query-{what}", "") for what in re.findall(r'"([\w-]+)"', records)]
    emulated += [(name, "") for name in _ALONE.findall(main)]
    emulated += [(name, brief) for brief, name in (*_FLAG.findall(main), *_SETTING.findall(settings))]
    found = {_both(name, brief): "emulated" for name, brief in emulated}
    found |= {_both(name, brief): "refused" for brief, name in _PAIR.findall(refused)}
    return dict(sorted(found.items()))


COMMANDS = {"topo": "topo_near", "nvlink": "nvlink", "drain": "change", "mig": "mig", "c2c": "c2c"}
"""A command with options -> the source that parses it."""
CHOICES = {
    "compute-policy": ("policies", "COMPUTE_POLICY"),
    "boost-slider": ("policies", "BOOST_SLIDER"),
    "gpm": ("policies", "GPM"),
    "conf-compute": ("reports", "CONF_COMPUTE"),
    "pci": ("reports", "PCI"),
    "power-profiles": ("reports", "POWER_PROFILES_OF"),
    "vgpu": ("reports", "VGPU"),
}
"""A command whose options are a table -> the source and the table's name."""
WITH_ID = ("--id, -i",)
GO_ON = (*WITH_ID, "--count, -c", "--delay, -d")
"""The options of commands that show the same again and again."""


def command_options() -> dict[str, str]:
    """Return the options of nvidia-smi's commands, as ``topo --matrix, -m`` -> ``emulated`` or ``refused``."""
    found = {}
    for command, file in COMMANDS.items():
        source = _source(f"smi/{file}.c")
        shown, _, refused = source.partition("NOT_EMULATED[] = {")
        refused, _, rest = refused.partition("{NULL, NULL}")
        pairs = [*_ROW.findall(shown + rest), *_COMPARED.findall(source)]
        pairs += [(brief, name) for name, brief in _VALUED.findall(source)]
        found |= {f"{command} {_both(name, brief)}": "emulated" for brief, name in pairs}
        found |= {f"{command} {_both(name, brief)}": "refused" for brief, name in _ROW.findall(refused)}
    for command, (file, name_of_table) in CHOICES.items():
        rows = _source(f"smi/{file}.c").partition(f"static const Choice {name_of_table}[] = {{")[2]
        for brief, name, kind in _CHOICE.findall(rows.partition("{NULL, NULL, 0}")[0]):
            found[f"{command} {_both(name, brief)}"] = "refused" if kind == "REFUSED" else "emulated"
        if command != "conf-compute":
            found |= dict.fromkeys((f"{command} {both}" for both in WITH_ID), "emulated")
    for command in ("encodersessions", "fbcsessions"):
        found |= dict.fromkeys((f"{command} {both}" for both in GO_ON), "emulated")
    return dict(sorted(found.items()))


def _both(name: str, brief: str) -> str:
    return f"{name}, {brief}" if brief else name


def refused_commands() -> list[str]:
    """Return nvidia-smi's commands that are refused, such as ``prm``."""
    return [name for name, run in _commands() if run == "NULL"]


def _commands() -> list[tuple[str, str]]:
    main = _source("smi/main.c")
    rows = main[main.index("const Command COMMANDS[]") :].partition("{NULL, NULL, NULL, NULL, 0}")[0]
    return _COMMAND.findall(rows)


def programs() -> list[tuple[str, str, str, str]]:
    """Return a row for each program of the tests: name, version, how it does, what it shows."""
    rows = yaml.safe_load(PROGRAMS.read_text(encoding="utf-8"))
    return [(row["name"], row["version"], _state(row["class"], row.get("needs")), row["proves"]) for row in rows]


def fields() -> list[tuple[str, str]]:
    """Return a row for each field identifier: its name, and the generations of GPUs that answer it."""
    lines = [line.split() for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    return [(name, ", ".join(told) if told else "not supported") for name, *told in lines]


def models() -> list[tuple[str, str, str]]:
    """Return a row for each model of a GPU: name, memory, power limit."""
    return [(name, str(model.memory_mib), str(model.power_limit_mw // 1000)) for name, model in PROFILES.items()]


def _state(kind: str, needs: str | None) -> str:
    return f"{CLASSES[kind]}: {needs}" if needs else CLASSES[kind]


def summary() -> str:
    """Return how many there are of each kind, as ``docs/nvml.md`` shows it."""
    switches = [*options().values(), *command_options().values()]
    lacking = {
        "functions": [state == "not supported" for state in functions().values()],
        "fields": [told == "not supported" for _, told in fields()],
        "options": [state == "refused" for state in switches],
        "commands": [run == "NULL" for _, run in _commands()],
    }
    rows = [f"|{what}|{told.count(False)}|{told.count(True)}|" for what, told in lacking.items()]
    return "\n".join((SUMMARY_HEAD, "|---|---|---|", *rows)) + "\n"


def page() -> str:
    """Return the page."""
    states, switches = functions(), options()
    real = [name for name, state in states.items() if state != "not supported"]
    return paragraphs(
        "# NVML and nvidia-smi",
        f"Of {len(states)} functions of NVML, {len(real)} are emulated. The others return `NVML_ERROR_NOT_SUPPORTED`. "
        "[NVML and nvidia-smi](../nvml.md) explains how to use them.",
        "Functions marked `acts` change something of a GPU; the others of them only answer.",
        table(("function", "state"), [(code(name), state) for name, state in states.items()]),
        "## Fields of nvmlDeviceGetFieldValues",
        "Each row lists the generations of GPUs that answer; `root` means that the library demands root's rights.",
        table(("field", "answered by"), [(code(name), told) for name, told in fields()]),
        "## Options of nvidia-smi",
        "Refused options and commands change nothing, and exit with code 3.",
        table(("option", "state"), [(code(name), state) for name, state in switches.items()]),
        table(("command and option", "state"), [(code(name), state) for name, state in command_options().items()]),
        table(("command", "state"), [(code(name), "refused") for name in refused_commands()]),
        "The tests replay the calls of these programs:",
        table(("program", "arguments"), [(name, code(words)) for name, words in CALLERS]),
        "## Programs of others",
        "These programs run unmodified on emulated hosts. Tests run each of them.",
        table(("program", "version", "result", "what it shows"), programs()),
        "## Models of GPUs",
        table(("model", "memory in MiB", "power limit in W"), models()),
        "## Values that are assumed",
        "\n".join(f"- {line}" for line in ASSUMED),
    )
