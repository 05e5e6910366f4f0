"""`nvidia-smi --dtd`: the document type holds all that `-q -x` writes, of any model, and what real ones wrote."""

import re
import xml.etree.ElementTree as tree
from xml.parsers.expat import ParserCreate
from xml.parsers.expat.model import XML_CQUANT_OPT, XML_CQUANT_PLUS, XML_CQUANT_REP, XML_CTYPE_CHOICE, XML_CTYPE_MIXED

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.mig_host import MigHost
from tests.emulator.nvml.test_details import MEASURED, captures
from tests.emulator.nvml.test_smi_commands import working

MARKS = {XML_CQUANT_OPT: "?", XML_CQUANT_REP: "*", XML_CQUANT_PLUS: "+"}


def pattern_of(model):
    """The names that a content model allows, each with a semicolon, as a regular expression."""
    kind, mark, name, children = model
    joint = "|" if kind in (XML_CTYPE_CHOICE, XML_CTYPE_MIXED) else ""
    inside = f"{re.escape(name)};" if name else joint.join(map(pattern_of, children))
    return f"(?:{inside}){MARKS.get(mark, '')}"


def declared(dtd):
    """Name of each element -> (what may be in it, whether words may)."""
    found = {}

    def element(name, model):
        names = [child[2] for child in model[3]]
        assert name not in found and len(names) == len(set(names)), f"{name}, or something in it, is declared twice"
        found[name] = (re.compile(pattern_of(model)), model[0] == XML_CTYPE_MIXED)

    parser = ParserCreate()
    parser.ElementDeclHandler = element
    parser.Parse(f"<!DOCTYPE nvidia_smi_log [{dtd}]><nvidia_smi_log/>", True)
    return found


def faults(rules, element):
    content, words = rules[element.tag]
    names = "".join(f"{child.tag};" for child in element)
    wrong = [] if content.fullmatch(names) else [f"{element.tag} holds {names}"]
    if not words and ((element.text or "").strip() or any((child.tail or "").strip() for child in element)):
        wrong.append(f"{element.tag} holds words")
    return wrong + [fault for child in element for fault in faults(rules, child)]


def dtd_of(host, *words):
    code, text = host.smi("--dtd", *words)
    assert code == 0
    return text


@pytest.mark.parametrize("driver", ["520.61.05", "535.104.05", "570.86.15", "580.105.08", "590.48.01", "595.91.07"])
def test_the_dtd_holds_what_any_model_shows_with_a_driver(host, driver):
    for number, model in enumerate(PROFILES):
        host.show(gpu(number, model), driver_version=driver)
        code, text = host.smi("-q", "-x")
        rules = declared(dtd_of(host))
        assert (code, faults(rules, tree.fromstring(text))) == (0, []), model
    host.show(working(), working("A100", 1), driver_version=driver)
    for sections in ("MEMORY", "POWER,ECC,PIDS", "CLOCK", "SUPPORTED_CLOCKS"):
        assert faults(rules, tree.fromstring(host.smi("-q", "-x", "-d", sections)[1])) == []


def test_it_holds_mig_devices_and_processes(host):
    with MigHost(host) as mig:
        assert host.smi("-i", "1", "-mig", "1")[0] == host.smi("mig", "-i", "1", "-cgi", "19,9", "-C")[0] == 0
        mig.compute(re.findall(r"MIG-[0-9a-f-]+", host.smi("-L")[1])[0])
        shown = tree.fromstring(host.smi("-q", "-x")[1])
        assert (len(shown.findall(".//mig_device")), len(shown.findall(".//process_info"))) == (2, 1)
        assert faults(declared(dtd_of(host)), shown) == []
        assert "<!ELEMENT fb_memory_usage (total, reserved, used, free)>\n" in dtd_of(host)


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        ("<minor_number>0</minor_number>", "<minor>0</minor>"),
        ("<pci_bus>10</pci_bus>", ""),
        ("<fb_memory_usage>", "<fb_memory_usage>words"),
        ("<current_mig>", "<pending_mig/><current_mig>"),
    ],
)
def test_a_log_that_is_changed_does_not_fit(host, what, instead):
    host.show(gpu(0))
    rules, text = declared(dtd_of(host)), host.smi("-q", "-x")[1]
    changed = tree.fromstring(text.replace(what, instead, 1))
    assert text.count(what) >= 1 and len(faults(rules | {"minor": rules["serial"]}, changed)) == 1


def test_a_log_embeds_it_where_asked(host):
    host.show(gpu(0))
    code, text = host.smi("-q", "-x", "--dtd")
    start, _, rest = text.partition("<!DOCTYPE nvidia_smi_log [\n")
    embedded, _, log = rest.partition("]>\n")
    assert (code, start, embedded) == (0, '<?xml version="1.0" ?>\n', dtd_of(host))
    assert log.startswith("<nvidia_smi_log>\n") and tree.fromstring(text).find("gpu/minor_number").text == "0"
    assert "<!ATTLIST gpu id CDATA #REQUIRED>\n" in embedded


def test_units_have_one_of_their_own(host):
    host.show(gpu(0))
    rules = declared(dtd_of(host, "-u"))
    code, text = host.smi("-q", "-u", "-x", "--dtd")
    assert code == 0 and "gpu" not in rules and dtd_of(host, "--unit") in text
    assert faults(rules, tree.fromstring(text)) == []


def test_it_is_written_to_a_file_and_text_embeds_none(host, tmp_path):
    host.show(gpu(0))
    assert host.smi("--dtd", "-f", str(tmp_path / "log.dtd")) == (0, "")
    assert (tmp_path / "log.dtd").read_text(encoding="utf-8") == dtd_of(host)
    code, text = host.smi("-q", "--dtd")
    assert (code, text) == (2, '"--dtd" switch needs "-x" beside "-q". Please run \'nvidia-smi -h\' for help.\n')


@pytest.mark.parametrize("capture", captures())
def test_it_holds_what_was_captured(host, capture):
    """Each element in its order, once."""
    model, _ = MEASURED[capture.name.partition("-")[0]]
    driver = capture.stem.partition("-")[2]
    host.show(gpu(0, model), driver_version=driver)
    rules, inside = declared(dtd_of(host)), {}
    for line in capture.read_text(encoding="utf-8").splitlines():
        path = line.partition("\t")[0]
        if path.startswith("nvidia_smi_log/"):
            parent, _, name = path.rpartition("/")
            inside.setdefault(parent, []).append(name)
    assert len(inside) > 30
    wrong = {}
    for parent, names in inside.items():
        content, _ = rules[parent.rpartition("/")[2]]
        if not content.fullmatch("".join(f"{name};" for name in names)):
            wrong[parent] = names
    assert wrong == {}
