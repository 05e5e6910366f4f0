"""The page of a running session, before a stand-in of its server that plays what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.driver import Browser
from tests.browser.journals import lines_of, run_of
from tests.browser.stand_in import TOKEN, StandIn, serving

pytestmark = pytest.mark.wall

MOVED = "0-000500"
READY = "window.mewsLive?.model?.lines.length && document.querySelector('.gpu')"


def split() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What had happened before a GPU was taken off its host, and the rest."""
    lines = lines_of(run_of("demo"))
    at = next(n for n, line in enumerate(lines) if line["event"] == "detach-begun")
    return lines[:at], lines[at:]


@pytest.fixture
def session() -> Iterator[StandIn]:
    before, _ = split()
    about = {
        "name": "main", "cluster": "embedded", "speed": 10, "started": 0, "systems": ["kubecomp"],
        "components": ["scheduler", "chassis/A"], "chassis": ["A"], "hosts": ["host-1", "host-2"],
        "faults": {"chassis": ["lying-result", "slow"], "host": ["xid"]},
    }  # fmt: skip
    reading = {"uuid": "GPU-b104b284-a5ee-a4fa-2aef-29568979829c", "temperature_c": 55.4, "power_mw": 120_000,
               "utilization_percent": 71}  # fmt: skip
    hardware = {"table": {}, "hosts": {}, "telemetry": {"A": {"000100": reading}}}
    with serving(StandIn(about, list(before), hardware)) as running:
        yield running


def box_of(chrome: Browser, device: str) -> str:
    """The box that a GPU's tile lies in, once it rests."""
    return str(
        chrome.js(
            """
            const at = mewsLive.topology.tiles.get(arguments[0]).element.style.transform.match(/[\\d.]+/g).map(Number);
            for (const [name, box] of mewsLive.topology.boxes)
              if (at[0] >= box.x && at[0] < box.x + box.wide && at[1] >= box.y && at[1] < box.y + box.tall) return name;
            return "nowhere";
            """,
            device,
        )
    )


def test_it_shows_what_was_and_moves_a_gpu_as_the_table_is_edited(chrome: Browser, session: StandIn):
    chrome.size(1280)
    chrome.open(session.address, READY)
    chrome.until("document.querySelector('.state').textContent === 'live'")
    chrome.until("mewsLive.topology.tiles.size === 12")
    assert box_of(chrome, MOVED) == "host/host-2"
    chrome.until("document.querySelector('.podrow .reason')?.textContent.includes('pending')")
    _, rest = split()
    for line in rest:
        session.add([line])
        if line["event"] == "detached":
            chrome.until("mewsLive.topology.boxes.get('chassis/A').about.textContent.includes('1 of 12 free')")
            assert box_of(chrome, MOVED) == "chassis/A"
        if line["layer"] == "api" and line["event"] == "phase" and line["phase"] == "Running":
            break
    chrome.until("document.querySelector('.podrow').textContent.includes('5 GPUs')")
    assert box_of(chrome, MOVED) == "host/host-1"
    assert "held by trainer on host-1" in chrome.js(
        "return mewsLive.topology.tiles.get(arguments[0]).element.title", MOVED
    )
    chrome.until("document.querySelector('.curves tbody').textContent.includes('120 W')")
    assert chrome.complaints() == []


def test_the_token_leaves_the_address_and_goes_with_every_request(chrome: Browser, session: StandIn):
    chrome.open(session.address, READY)
    assert TOKEN not in chrome.driver.current_url
    assert session.unauthorised == []
    chrome.js("sessionStorage.clear()")
    chrome.open(f"{session.url}/#token=wrong", "document.querySelector('form.ask')")
    assert "missing or wrong" in chrome.text(".complaint")
    chrome.js("document.querySelector('.ask input').value = arguments[0]", TOKEN)
    chrome.js("document.querySelector('.ask button').click()")
    chrome.until(READY)
    chrome.js("sessionStorage.clear()")
    chrome.complaints()  # the refusal is one


def test_a_fault_is_added_by_a_click_and_a_refusal_is_shown(chrome: Browser, session: StandIn):
    chrome.open(session.address, READY)
    chrome.js(
        "const kinds = document.querySelector('[aria-label=\"kind of fault\"]'); kinds.value = 'slow';"
        "document.querySelector('[aria-label^=\"more fields\"]').value = 'factor=2.5 device=000100 x=\"007\"';"
        "document.querySelector('.actions form button').click();"
    )
    chrome.until("document.querySelector('.said').textContent.startsWith('done')")
    assert session.steps == [
        {"fault": {"chassis": "A", "add": {"kind": "slow", "factor": 2.5, "device": "000100", "x": "007"}}}
    ]
    session.refuse = "fault: kind: <i>no</i>"
    chrome.js("document.querySelector('.actions form button').click()")
    chrome.until("document.querySelector('.said.complaint')")
    assert chrome.text(".said") == "fault: kind: <i>no</i>"
    session.refuse = ""
    chrome.js("[...document.querySelectorAll('.actions button')].find((one) => one.textContent === 'Kill').click()")
    chrome.until("document.querySelector('.said').textContent.startsWith('done')")
    assert session.steps[1] == {"kill": "scheduler"}
    chrome.complaints()  # the refusal is one


def test_a_pod_is_explained_in_sentences_that_are_text(chrome: Browser, session: StandIn):
    chrome.open(session.address, READY)
    chrome.until("document.querySelector('.podrow')")
    chrome.js("document.querySelector('.podrow').click()")
    chrome.until("document.querySelector('.detail .link')")
    chrome.js("[...document.querySelectorAll('.detail .link')].find((one) => one.textContent === 'explain').click()")
    chrome.until("document.querySelector('.explained li')")
    assert chrome.text(".explained li") == "default/trainer waits: <b>nobody</b> has five GPUs."


def test_a_stream_that_breaks_goes_on_where_it_was(chrome: Browser, session: StandIn):
    _, rest = split()
    chrome.open(session.address, READY)
    chrome.until("document.querySelector('.state').textContent === 'live'")
    session.break_streams()
    session.add(rest)
    chrome.until(f"mewsLive.model.lines.length >= {len(session.lines)}")
    numbers = chrome.js("return mewsLive.model.lines.map((line) => line.number)")
    assert numbers == list(range(len(session.lines)))
    chrome.complaints()


def test_where_the_session_forgot_its_first_table_the_hardware_says_where_gpus_are(chrome: Browser, session: StandIn):
    row = {"uuid": "GPU-1", "port": "1", "host": "host-1", "gpuid": "0-1", "kind": "GPU"}
    session.hardware["table"] = {
        "A": {"1": row, "2": {**row, "uuid": "GPU-2", "gpuid": "0-2", "port": None, "host": None}}
    }
    session.lines[:] = [{"number": 0, "t": 900.0, "layer": "component", "actor": "scheduler", "event": "started"}]
    chrome.open(session.address, READY)
    assert (box_of(chrome, "0-1"), box_of(chrome, "0-2")) == ("host/host-1", "chassis/A")


@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_the_live_page_is_no_wider_than_the_screen(chrome: Browser, session: StandIn, width: int):
    chrome.size(width)
    chrome.open(session.address, READY)
    assert chrome.js("return document.documentElement.scrollWidth - innerWidth") <= 0
