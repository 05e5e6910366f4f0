"""The report as people have it: in a browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import mews.harness.report.html as html
from mews.harness.report.run import Run
from mews.harness.terminal import escaped
from tests.browser.driver import Browser
from tests.browser.journals import EVIL, hand_made, lines_of, run_of

pytestmark = pytest.mark.wall

READY = "document.readyState === 'complete' && window.mewsPicture?.timeline.frames.length > 0"
SHOWN = escaped(EVIL)
LISTED = "document.querySelector('table.index tbody tr')"


def opened(
    chrome: Browser, folder: Path, runs: Sequence[Run], ready: str = READY, at: str = "", width: int = 1280
) -> None:
    """The report of these runs, in the browser."""
    chrome.size(width)
    (folder / "r.html").write_text(html.html_page(runs), encoding="utf-8")
    chrome.open((folder / "r.html").as_uri(), ready)


def bar(chrome: Browser, group: str, state: str) -> tuple[float, float]:
    """The middle of the first bar of a lane in that state, brought into sight; the window's coordinates."""
    place: list[float] = chrome.js(
        """
        const line = mewsPicture.timeline, [group, state] = arguments;
        const lane = mewsPicture.model.group(group).find((one) => one.segments.some((s) => s.state === state));
        const segment = lane.segments.find((one) => one.state === state);
        line.scroll.scrollIntoView({ block: "center" });
        line.reveal({ lane, segment }); line.paint();
        const row = line.rows.find((one) => one.lane === lane), box = line.canvas.getBoundingClientRect();
        const middle = line.x((segment.from + (segment.to ?? mewsPicture.model.end)) / 2);
        return [box.left + middle, box.top + line.top - line.scroll.scrollTop + row.y + row.height / 2 - 2];
        """,
        group,
        state,
    )
    return place[0], place[1]


def test_lanes_show_who_had_a_gpu_when_and_a_click_on_the_pods_bar_leads_to_the_attach_it_waited_for(
    chrome: Browser, tmp_path: Path
):
    opened(chrome, tmp_path, [run_of("demo")])
    lanes: list[dict[str, Any]] = chrome.js(
        "return mewsPicture.model.group('gpus').map(({ label, segments, holds }) => ({ label, segments, holds }))"
    )
    moved = next(lane for lane in lanes if lane["label"] == "0-000500")
    assert [segment["host"] for segment in moved["segments"]] == ["host-2", "host-1"]
    assert [hold["pod"] for hold in moved["holds"]] == ["default/trainer"]
    assert sum(bool(lane["holds"]) for lane in lanes) == 5
    chrome.click_at(*bar(chrome, "pods", "running"))
    chrome.until("!document.querySelector('.detail').hidden")
    detail = chrome.text(".detail")
    for part in ("pod default/trainer", "5 × falcon.com/gpu", "What it waited for", "0-000500 is attached to host-1"):
        assert part in detail
    assert chrome.js("return mewsPicture.timeline.links.length") > 0
    chrome.js(
        "[...document.querySelectorAll('.item')].find((one) => one.textContent.includes('is attached to')).click()"
    )
    chrome.until("mewsPicture.model.lines[mewsPicture.timeline.selected.line].event === 'attached'")
    assert chrome.complaints() == []


def test_wheel_and_keys_zoom_and_a_filter_leaves_the_lanes_with_such_lines(chrome: Browser, tmp_path: Path):
    opened(chrome, tmp_path, [run_of("demo")])
    x, y = bar(chrome, "pods", "running")
    before = chrome.js("return mewsPicture.timeline.to - mewsPicture.timeline.from")
    chrome.wheel_at(x, y, -300, ctrl=True)
    chrome.until(f"mewsPicture.timeline.to - mewsPicture.timeline.from < {before} * 0.9")
    chrome.js(
        "mewsPicture.timeline.scroll.dispatchEvent(new KeyboardEvent('keydown', { key: '0' }));"
        "mewsPicture.search.value = 'trainer'; mewsPicture.search.dispatchEvent(new Event('input'));"
    )
    chrome.until(f"Math.abs(mewsPicture.timeline.to - mewsPicture.timeline.from - {before}) < 1e-6")
    shown = "mewsPicture.timeline.rows.filter((row) => row.lane?.group === 'gpus').length"
    chrome.until(f"{shown} === 5")
    chrome.js("document.querySelector('[data-layer=kubelet]').click()")
    chrome.until(f"{shown} === 0")
    assert chrome.text(".linelist h2").split()[1] != "127"


@pytest.mark.parametrize("packed", [False, True])
def test_hostile_names_stay_text_in_every_corner(
    chrome: Browser, tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(html, "PLAIN_LINES", 0 if packed else 20_000)
    opened(chrome, tmp_path, [hand_made()])
    chrome.until("document.querySelector('.detail').textContent.includes('It broke')")
    assert chrome.js("return mewsPicture.timeline.selected.line") == 8
    assert chrome.text(".failure .sentence") == f"Step 1 of 3, wait “{SHOWN}” failed after 7 s."
    assert chrome.js("return [...document.querySelectorAll('.failure dd')].map((one) => one.textContent)") == [
        f"A {SHOWN}",
        f"B {SHOWN}",
    ]
    assert SHOWN in chrome.text(".violations")
    assert "expected 1 (+100.0 %)" in chrome.text(".metrics")
    chrome.click_at(*bar(chrome, "pods", "running"))
    chrome.until("document.querySelector('.detail h3').textContent.startsWith('pod ')")
    assert SHOWN.replace("/", "") in chrome.text(".detail h3")
    assert chrome.js("return [window.hacked, document.querySelectorAll('img, b > b').length]") == [None, 0]
    assert chrome.complaints() == []


def test_several_runs_have_an_index_and_a_scenario_over_its_seeds_has_plots(chrome: Browser, tmp_path: Path):
    passed = run_of("demo")
    runs = [replace(passed, result=replace(passed.result, seed=n, metrics={"mean_wait_s": 2.0 + n})) for n in (1, 2, 3)]
    opened(chrome, tmp_path, [*runs, hand_made()], LISTED)
    rows = chrome.js("return [...document.querySelectorAll('table.index tbody tr')].map((row) => row.textContent)")
    assert len(rows) == 2
    assert rows[0].startswith("failed")  # what wants a look comes first
    chrome.js("document.querySelector('tbody tr:last-child th a').click()")
    chrome.until("document.querySelectorAll('.plot .dot').length >= 3")
    assert "mean_wait_s" in chrome.text(".cards")
    assert chrome.js("return [...document.querySelectorAll('.numbers tbody tr')][0].textContent") == "mean_wait_s4345"
    chrome.js("document.querySelector('.plot .dot').dispatchEvent(new MouseEvent('click'))")
    chrome.until(READY)
    assert chrome.text("h1").startswith("passed demo")


@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_nothing_is_wider_than_the_screen_and_nothing_is_loaded(chrome: Browser, tmp_path: Path, width: int):
    opened(chrome, tmp_path, [hand_made(), run_of("demo")], LISTED, width=width)
    wider = "return document.documentElement.scrollWidth - innerWidth"
    assert chrome.js(wider) <= 0
    for number in (0, 1):
        chrome.js(f"location.hash = 'run/{number}'")
        chrome.until("mewsPicture.element.isConnected && mewsPicture.timeline.frames.length")
        assert chrome.js(wider) <= 0
    assert chrome.js("return performance.getEntriesByType('resource').map((one) => one.name)") == []
    assert chrome.complaints() == []


def test_light_and_dark_are_the_systems_choice_or_the_readers(chrome: Browser, tmp_path: Path):
    opened(chrome, tmp_path, [run_of("demo")])
    back = "return getComputedStyle(document.documentElement).backgroundColor"
    seen = []
    for theme in ("light", "dark"):
        values = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        chrome.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", values)
        seen.append(chrome.js(back))
    chrome.js("document.querySelector('.theme').click()")  # the reader's: light, in a dark system
    assert chrome.js(back) == seen[0] != seen[1]
    chrome.js("localStorage.clear()")
    chrome.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_lines_that_come_bit_by_bit_make_the_same_lanes(chrome: Browser, tmp_path: Path):
    opened(chrome, tmp_path, [run_of("demo")])
    lanes = """
        const made = (sizes) => {
          const model = new JournalModel(), lines = JSON.parse(arguments[0]);
          while (lines.length) model.append(lines.splice(0, sizes));
          return JSON.stringify([...model.lanes.values()]);
        };
        return made(7) === made(100000);
    """
    assert chrome.js(lanes, json.dumps(lines_of(run_of("14-drop-after-effect")))) is True


def test_a_long_journal_is_a_list_of_which_only_what_is_in_sight_exists(chrome: Browser, tmp_path: Path):
    run = run_of("demo")
    opened(
        chrome, tmp_path, [replace(run, lines=[replace(line, number=n) for n, line in enumerate([*run.lines] * 40)])]
    )
    chrome.until("document.querySelectorAll('.rows .row').length > 0")
    assert chrome.js("return mewsPicture.list.shown.length") == 40 * len(run.lines)
    assert chrome.js("return document.querySelectorAll('.rows .row').length") < 60
