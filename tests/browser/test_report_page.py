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


def test_a_claim_has_a_lane_with_its_devices_and_pods_and_its_pods_say_what_they_have(chrome: Browser, tmp_path: Path):
    opened(chrome, tmp_path, [run_of("dra/02-two-pods-share-a-claim")])
    [claim] = chrome.js(
        "return mewsPicture.model.group('claims').map(({ label, segments, marks }) => ({ label, segments, marks }))"
    )
    assert claim["label"] == "shared"
    assert chrome.js("return LANE_GROUPS.filter((name) => !Timeline.TITLES[name])") == ["steps"]
    states = [(one["state"], one["label"], one["host"]) for one in claim["segments"]]
    assert ("prepared", "gpu.nvidia.com/n1/gpu-0 · left, right", "n1") in states
    assert states[0][0] == "allocated"
    assert states[-1][1].endswith("gpu-0 · right")
    assert claim["segments"][-1]["to"] is not None
    chrome.click_at(*bar(chrome, "pods", "running"))
    chrome.until("!document.querySelector('.detail').hidden")
    assert "shared: gpu.nvidia.com/n1/gpu-0" in chrome.text(".detail")
    assert any("claim-reserved" in text for text in chrome.js(ITEMS))
    assert chrome.complaints() == []


ITEMS = "return [...document.querySelectorAll('.item')].map((one) => one.textContent)"


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
    assert "2 s expected 1 s (+100.0 %)" in chrome.text(".metrics")
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
    assert "mean wait" in chrome.text(".cards")
    assert (
        chrome.js("return [...document.querySelectorAll('.numbers tbody tr')][0].textContent")
        == "mean wait4 s3 s4 s5 s"
    )
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


GAP = "mewsPicture.timeline.scroll.clientHeight - mewsPicture.timeline.top - mewsPicture.timeline.height"
"""Pixels below the last lane, negative where lanes are out of sight."""


def test_lanes_are_as_high_as_they_need_and_what_follows_moves_up(chrome: Browser, tmp_path: Path):
    chrome.size(2560, 1440)
    opened(chrome, tmp_path, [run_of("demo")], width=1280)
    chrome.size(2560, 1440)
    chrome.until(f"Math.abs({GAP}) <= 1")
    below = "return document.querySelector('.linelist').getBoundingClientRect().top"
    full = chrome.js(below)
    chrome.js("mewsPicture.search.value = 'trainer'; mewsPicture.search.dispatchEvent(new Event('input'))")
    chrome.until(f"Math.abs({GAP}) <= 1")
    assert chrome.js(below) < full - 100
    chrome.until("mewsPicture.timeline.canvas.clientHeight === mewsPicture.timeline.scroll.clientHeight")
    chrome.js("mewsPicture.search.value = ''; mewsPicture.search.dispatchEvent(new Event('input'))")
    chrome.click_at(*bar(chrome, "pods", "running"))  # its panel is as high as the lanes, and scrolls
    chrome.until("!document.querySelector('.detail').hidden")
    chrome.until(
        "Math.abs(document.querySelector('.detail').clientHeight - mewsPicture.timeline.element.clientHeight) <= 2"
    )
    chrome.size(1280, 500)
    chrome.until(f"{GAP} < 0")  # more lanes than room: they scroll


@pytest.mark.parametrize(
    ("name", "value", "label", "text"),
    [
        ("mean_wait_s", 2.3456, "mean wait", "2.35 s"),
        ("makespan_s", 125, "makespan", "2 min 05 s"),
        ("lag_ms", 1.25, "lag", "1.3 ms"),
        ("power_mw", 120_500, "power", "120.5 W"),
        ("memory_mib", 81_920, "memory", "80 GiB"),
        ("used_bytes", 1536, "used", "1.5 KiB"),
        ("temperature_c", 55.4, "temperature", "55.4 °C"),
        ("cpu_utilisation", 0.61234, "CPU utilisation", "61.23 %"),
        ("jobs_per_s", 12.5, "jobs", "12.5/s"),
        ("moved_gpus", 3, "moved GPUs", "3"),
        ("share", 0.1 + 0.2, "share", "0.3"),
        ("ephemeral-storage", "264212084Ki", "ephemeral-storage", "252 GiB"),
        ("list", [0.1 + 0.2, {"wait_s": 0.25}], "list", "[0.3, {wait_s: 250 ms}]"),
        ("wait_s", None, "wait", "null"),
    ],
)
def test_numbers_have_the_readers_units(chrome: Browser, tmp_path: Path, name: str, value: Any, label: str, text: str):
    opened(chrome, tmp_path, [run_of("demo")])
    shown = chrome.js("return [Units.label(arguments[0]), Units.quantity(...arguments)]", name, value)
    assert shown == [label, text]


def test_what_was_not_expected_leads_the_violations(chrome: Browser, tmp_path: Path):
    run = hand_made()
    [unexpected] = run.result.violations
    expected = {**unexpected, "invariant": 5, "expected": True}
    opened(chrome, tmp_path, [replace(run, result=replace(run.result, violations=(expected, unexpected)))])
    heads = chrome.js("return [...document.querySelectorAll('.violations b')].map((one) => one.textContent)")
    assert heads == ["2 (in use)", "5 (in use)"]


def test_a_fault_that_is_used_up_shades_nothing_after_it(chrome: Browser, tmp_path: Path):
    opened(chrome, tmp_path, [run_of("14-drop-after-effect")])
    untils = chrome.js("return [...mewsPicture.model.faults.values()].map(({ until, added }) => [until, added])")
    assert untils
    assert all(until is not None and until >= added for until, added in untils)
