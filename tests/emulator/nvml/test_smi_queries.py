"""`nvidia-smi --query-…` against the captured command line of an H100 (driver 590.48.01): fields, headers and forms."""

import re

import pytest

from mews.emulator.nvml.state import NvmlProcess
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_details import form_of

RELEASE = "590.48.01"
LEAST_PERCENT = 95.0
QUERIES = ("gpu", "compute-apps", "accounted-apps", "retired-pages")
WIDTHS = ("Single", "Double")
GONE = "[Requested functionality has been deprecated]"


@pytest.fixture
def h100(host):
    host.show(gpu(0, "H100-SXM", processes=(NvmlProcess(7, "train", 5),)), driver_version=RELEASE)
    return host


def names_of(captured, what):
    """Name and aliases of each field."""
    lines = captured[f"fields of --query-{what} (name, alias)"]
    return [line.split("\t") for line in lines if line and not re.match(r"\d: ", line)]


def listed(host, what):
    code, text = host.smi(f"--help-query-{what}")
    assert code == 0
    return [re.findall(r'"([^"]+)"', line) for line in text.splitlines() if line.startswith('"')]


@pytest.mark.parametrize("what", QUERIES)
def test_the_fields_are_those_of_the_real_one(captured, h100, what):
    wanted = [(fields[0], set(fields[1:]) - {fields[0]}) for fields in names_of(captured, what)]
    assert [(fields[0], set(fields[1:])) for fields in listed(h100, what)] == wanted


@pytest.mark.parametrize(
    ("release", "there", "away"),
    [
        ("530.30.02", ["reset_status.reset_required", "fabric.state"], ["fabric.cliqueId", "power.draw.average"]),
        (
            "570.148.08",
            ["platform.slot_number", "c2c.mode", "reset_status.reset_required"],
            ["hostname", "kmd_version"],
        ),
        (
            "580.173.02",
            ["hostname", "remapped_rows.correctable_inactive"],
            ["edpp_multiplier", "reset_status.reset_required"],
        ),
        (RELEASE, ["edpp_multiplier", "hostname"], ["remapped_rows.correctable_inactive", "kmd_version"]),
        ("595.80", ["kmd_version", "fabric.health.partition_assigned", "remapped_rows.uncorrectable_inactive"], []),
    ],
)
def test_a_branch_has_its_own_fields(host, release, there, away):
    host.show(gpu(0, "H100-SXM"), driver_version=release)
    names = [names[0] for names in listed(host, "gpu")]
    assert set(there) <= set(names) and not set(away) & set(names)
    assert host.smi(f"--query-gpu={','.join(names)}", "--format=csv")[0] == 0
    for name in away:
        code, text = host.smi(f"--query-gpu=index,{name}", "--format=csv")
        assert (code, text) == (2, f'Field "{name}" is not a valid field to query.\n\n')


def test_columns_have_the_captured_header_and_form(captured, h100):
    wanted = [line.partition("\t")[::2] for line in captured["--query-gpu csv, idle: column header TAB form"] if line]
    names = ",".join(header.partition(" [")[0] for header, _ in wanted)
    code, text = h100.smi(f"--query-gpu={names}", "--format=csv")
    assert code == 0
    headers, values = (line.split(", ") for line in text.splitlines())
    assert headers == [header for header, _ in wanted]
    other = [
        (header, value, form)
        for (header, form), value in zip(wanted, values, strict=True)
        if form not in (form_of(value), value)
    ]
    assert 100 * (1 - len(other) / len(wanted)) >= LEAST_PERCENT, other


@pytest.mark.parametrize("what", [*QUERIES, "remapped-rows", "supported-clocks"])
@pytest.mark.parametrize("model", ["V100", "T4", "A30", "H200", "GB200"])
def test_every_listed_field_can_be_asked_for_by_all_its_names(host, model, what):
    host.show(gpu(0, model, processes=(NvmlProcess(7, "train", 5),)))
    fields = listed(host, what)
    for choice in (0, -1):
        words = [names[choice] for names in fields]
        code, text = host.smi(f"--query-{what}={','.join(words)}", "--format=csv,nounits")
        assert code == 0
        headers, *rows = text.splitlines()
        if what != "gpu":
            assert headers.split(", ") == [re.sub(r" \[.*", "", names[0]) for names in fields]
        assert all(len(row.split(", ")) == len(fields) for row in rows)
        retiring = model in ("V100", "T4")
        assert bool(rows) == (what not in ("accounted-apps", *(("retired-pages",) if retiring else ())))
        if what == "retired-pages" and not retiring:
            assert [row.split(", ")[-3:] for row in rows] == [["[N/A]", "[N/A]", f"{each} Bit ECC"] for each in WIDTHS]


def test_a_header_has_the_first_name_whichever_was_asked_for(h100):
    assert h100.smi("--query-gpu=clocks.gr,gpu_name", "--format=csv,noheader")[0] == 0
    code, text = h100.smi("--query-gpu=clocks.gr,gpu_name", "--format=csv")
    assert text.splitlines()[0] == "clocks.current.graphics [MHz], name"
    code, text = h100.smi("--query-compute-apps=name,used_memory", "--format=csv")
    assert (code, text.splitlines()[0]) == (0, "process_name, used_gpu_memory [MiB]")


@pytest.mark.parametrize(("release", "header"), [("525.60.13", "throttle"), ("535.54.03", "event")])
def test_clocks_reasons_have_their_older_name_before_535(host, release, header):
    host.show(gpu(0), driver_version=release)
    for asked in ("throttle", "event"):
        text = host.smi(f"--query-gpu=clocks_{asked}_reasons.active", "--format=csv")[1]
        assert text.splitlines()[0] == f"clocks_{header}_reasons.active"


@pytest.mark.parametrize(("release", "shown"), [("570.86.15", "1440 MHz"), (RELEASE, GONE), ("595.91.07", "[N/A]")])
def test_what_a_branch_gave_up_says_so(host, release, shown):
    host.show(gpu(0, "A30"), driver_version=release)
    text = host.smi("--query-gpu=clocks.applications.graphics", "--format=csv,noheader")[1]
    assert text == f"{shown}\n"


@pytest.mark.parametrize("word", ["bar1.total", "product_brand", "minor_number"])
def test_what_only_q_shows_is_no_field(host, word):
    host.show(gpu(0))
    assert host.smi(f"--query-gpu={word}", "--format=csv")[0] == 2


def test_errors_of_a_board_stand_in_its_row(host):
    host.show(gpu(0, "A30"), gpu(1, "V100"))
    text = host.smi("--query-remapped-rows=gpu_uuid,remapped_rows.uncorrectable,remapped_rows.pending", "--format=csv")
    assert text[1].splitlines() == [
        "gpu_uuid, remapped_rows.uncorrectable, remapped_rows.pending",
        f"{uuid_of(0)}, 0, No",
        f"{uuid_of(1)}, [N/A], [N/A]",
    ]


def test_clocks_stand_in_pairs(host):
    host.show(gpu(0, "A30"))
    code, text = host.smi("--query-supported-clocks=mem,gr", "--format=csv")
    header, first, *_ = text.splitlines()
    assert (code, header) == (0, "memory [MHz], graphics [MHz]")
    highest = host.smi("--query-gpu=clocks.max.memory,clocks.max.graphics", "--format=csv,noheader")[1]
    assert f"{first}\n" == highest


def test_versions(host):
    host.show(gpu(0), driver_version="570.86.15")
    assert host.smi("--version") == (
        0,
        "NVIDIA-SMI version  : 570.86.15\nNVML version        : 570.86\n"
        "DRIVER version      : 570.86.15\nCUDA Version        : 12.8\n",
    )


def test_answers_go_to_a_file(host, tmp_path):
    host.show(gpu(0))
    file = tmp_path / "out.csv"
    assert host.smi("--query-gpu=index", "--format=csv,noheader", "-f", str(file)) == (0, "")
    assert file.read_text() == "0\n"
    code, text = host.smi("-q", "-f", str(tmp_path / "no" / "such"))
    assert (code, text) == (2, f'Failed to open file "{tmp_path}/no/such" for writing.\n')
    assert host.smi("dmon", "-c", "1", "-f", str(file)) == (0, "")
    assert file.read_text().startswith("# gpu")


@pytest.mark.parametrize("option", ["-col", "--columns", "--debug=x", "-dm"])
def test_what_is_not_emulated_says_so_and_changes_nothing(host, option):
    host.show(gpu(0))
    code, text = host.smi("-i", "0", option)
    assert (code, text) == (3, f'"{option}" is not emulated: nothing was shown or changed.\n')


@pytest.mark.parametrize("command", ["daemon", "replay", "clocks", "power-smoothing"])
def test_commands_that_are_not_emulated_say_so(captured, host, command):
    assert command in captured["subcommands"]
    host.show(gpu(0))
    assert host.smi(command, "-l") == (3, f'"{command}" is not emulated: nothing was shown or changed.\n')


def test_every_option_and_command_of_the_real_one_is_known(captured, host):
    host.show(gpu(0), driver_version=RELEASE)
    options = [line.split("\t") for line in captured["options (short, long, takes a value)"] if line]
    for brief, name, value in [each for each in options if each[1] not in ("--query-gpu", "--filename")]:
        for option in (brief, name):
            if option:
                text = host.smi(option, *(["0"] if value else []))[1]
                assert "not recognized" not in text, option
    for command in captured["subcommands"]:
        if command and command not in ("dmon", "pmon", "encodersessions", "fbcsessions"):
            assert "not recognized" not in host.smi(command)[1], command


def test_no_excluded_devices(host):
    host.show(gpu(0))
    assert host.smi("-B") == (0, "No excluded devices were found\n")
