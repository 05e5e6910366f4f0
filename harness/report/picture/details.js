"use strict";
// Beside the lanes: what is chosen with its causes, and all lines as a list of which only what is in sight exists.

class DetailPanel {
  constructor(timeline, { explain = null } = {}) {
    this.timeline = timeline;
    this.explain = explain;
    this.element = Units.el("section", { class: "detail", "aria-label": "selected item", tabindex: "-1", hidden: true });
  }

  show(thing, focus = false) {
    const { el } = Units;
    this.element.hidden = !thing;
    if (!thing) return;
    const { model } = this.timeline, about = Causes.of(model, thing);
    const close = el("button", { type: "button", class: "quiet", "aria-label": "close", onclick: () => { this.timeline.select(null); this.timeline.scroll.focus(); } }, "×");
    const facts = about.facts.filter(([, value]) => value !== "" && value !== undefined && value !== null);
    const parts = [
      el("header", {}, el("h3", {}, about.title), close),
      el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])),
    ];
    if (about.pod && thing.hold) parts.push(this._link("its timeline", () => this.timeline.select({ lane: about.pod.lane }, { reveal: true })));
    if (about.pod && this.explain && !about.pod.gone) {
      const place = el("div", { class: "explained", "aria-live": "polite" });
      parts.push(this._link("explain", () => this.explain(about.pod.name, place)), place);
    }
    for (const section of about.sections) parts.push(this._section(section));
    this.element.replaceChildren(...parts);
    this.element.scrollTop = 0;
    if (focus) this.element.focus();
  }

  _link(text, act) {
    return Units.el("button", { type: "button", class: "link", onclick: act }, text);
  }

  _section({ title, items }) {
    const { el } = Units, { timeline } = this;
    const rows = items.map((item) => el("li", {}, el("button", {
      type: "button", class: `item ${item.tone || ""}`, "aria-current": item.tone === "here" ? "true" : null,
      onclick: () => timeline.select(item.open ?? timeline.thingOf(item.line), { reveal: true }),
    }, el("span", { class: "time" }, Units.time(item.t)), el("span", {}, item.text))));
    return el("section", {}, el("h4", {}, title), el("ul", {}, rows));
  }
}

class LineList {
  static ROW = 24;

  constructor(timeline) {
    const { el } = Units;
    this.timeline = timeline;
    this.shown = [];
    this.body = el("div", { class: "rows", role: "rowgroup" });
    this.space = el("div", { class: "space" }, this.body);
    this.scroll = el("div", { class: "scroll", tabindex: "0", "aria-label": "lines of the journal" }, this.space);
    this.counted = el("span", { class: "faint" });
    this.table = el("div", { class: "table", role: "table", "aria-label": "journal" },
      el("div", { class: "row head", role: "row" }, ["time", "layer", "actor", "event", "fields"].map((name) => el("span", { role: "columnheader", class: name }, name))),
      this.scroll);
    this.element = el("section", { class: "linelist" }, el("h2", {}, "Journal ", this.counted), this.table);
    this.scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.scroll);
  }

  /** The model or the filter is another. */
  refresh() {
    const { timeline } = this, { model } = timeline;
    const atEnd = this.scroll.scrollTop + this.scroll.clientHeight >= this.scroll.scrollHeight - 4;
    timeline._layout();
    // Without a filter every line is shown; those that are known stay.
    if (timeline.matching !== null || this._filtered) this.shown = [];
    this._filtered = timeline.matching !== null;
    for (let index = this._filtered ? 0 : this.shown.length; index < model.lines.length; index += 1)
      if (timeline.matches(index)) this.shown.push(index);
    const all = Units.count(model.lines.length, "line");
    this.counted.textContent = this.shown.length === model.lines.length ? all : `${this.shown.length.toLocaleString("en")} of ${all}`;
    this.space.style.height = `${this.shown.length * LineList.ROW}px`;
    if (timeline.follow && atEnd) this.scroll.scrollTop = this.scroll.scrollHeight;
    this.draw();
  }

  /** Bring a line into sight. */
  reveal(index) {
    const at = this.shown.indexOf(index);
    if (at < 0) return;
    const top = at * LineList.ROW;
    if (top < this.scroll.scrollTop || top > this.scroll.scrollTop + this.scroll.clientHeight - LineList.ROW) this.scroll.scrollTop = top - this.scroll.clientHeight / 2;
    this.draw();
  }

  draw() {
    this._frame ??= requestAnimationFrame(() => { this._frame = null; this._paint(); });
  }

  _paint() {
    const { el } = Units, { timeline } = this, { model } = timeline;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / LineList.ROW) - 4);
    const last = Math.min(this.shown.length, first + Math.ceil(this.scroll.clientHeight / LineList.ROW) + 8);
    const chosen = timeline.selected?.line;
    const rows = this.shown.slice(first, last).map((index) => {
      const line = model.lines[index], bad = line.layer === "invariant" || line.event === "failed" ? " bad" : line.layer === "fault" ? " fault" : "";
      const cells = [["time", Units.time(line.t)], ["layer", line.layer], ["actor", line.actor], ["event", line.event], ["fields", Units.fields(line, 300)]];
      return el("div", { class: `row${bad}${index === chosen ? " here" : ""}`, role: "row", onclick: () => timeline.select(timeline.thingOf(index), { reveal: true }) },
        cells.map(([name, text]) => el("span", { role: "cell", class: name }, text)));
    });
    this.body.style.transform = `translateY(${first * LineList.ROW}px)`;
    this.body.replaceChildren(...rows);
  }
}

/** Lanes, filter, panel and list together, as report and live page have them. */
class Picture {
  constructor(model, options = {}) {
    const { el } = Units;
    this.model = model;
    this.hidden = new Set();
    this.timeline = new Timeline(model, { ...options, onselect: (thing, focus) => this._selected(thing, focus) });
    this.panel = new DetailPanel(this.timeline, options);
    this.list = new LineList(this.timeline);
    this.search = el("input", { type: "search", placeholder: "Filter: pod, GPU, event…", "aria-label": "filter lines and lanes by text", oninput: () => this._filter() });
    this.layers = el("div", { class: "layers", role: "group", "aria-label": "layers" });
    const button = (text, label, act) => el("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
    const zoom = el("div", { class: "zoom", role: "group", "aria-label": "zoom" },
      button("−", "zoom out (−)", () => this.timeline.zoom(1 / 1.6)), button("+", "zoom in (+)", () => this.timeline.zoom(1.6)), button("all", "show the whole run (0)", () => this.timeline.fit()));
    this.element = el("div", { class: "picture" },
      el("div", { class: "bar" }, this.search, this.layers, zoom),
      el("div", { class: "stage" }, this.timeline.element, this.panel.element),
      this._legend(), this.list.element);
    this._chips();
  }

  _legend() {
    const { el } = Units, keys = [["free", "free"], ["stripes", "attaching, detaching, starting"], ["tint", "on a host, seen by NVML"], ["solid", "held by a pod, running"], ["pending", "pending"], ["lost", "lost, failed, killed"], ["fault", "fault"]];
    const hint = "Wheel zooms (Ctrl, or click first) · drag moves · double click and + − 0 zoom · a click shows causes";
    return el("div", { class: "legend" }, keys.map(([name, text]) => el("span", {}, el("i", { class: name, "aria-hidden": "true" }), text)), el("span", { class: "hint" }, hint));
  }

  _chips() {
    const { el } = Units, present = LAYERS.filter((layer) => this.model.counts[layer]);
    if (this._present === present.join()) return;
    this._present = present.join();
    this.layers.replaceChildren(...present.map((layer) => el("button", {
      type: "button", class: "chip", "aria-pressed": String(!this.hidden.has(layer)), "data-layer": layer,
      onclick: (event) => {
        if (!this.hidden.delete(layer)) this.hidden.add(layer);
        event.currentTarget.setAttribute("aria-pressed", String(!this.hidden.has(layer)));
        this._filter();
      },
    }, layer)));
  }

  _filter() {
    this.timeline.setFilter(this.search.value, this.hidden);
    this.list.refresh();
  }

  _selected(thing, focus) {
    this.panel.show(thing, focus);
    const index = thing?.line ?? thing?.segment?.line ?? thing?.hold?.line;
    if (index !== undefined) this.list.reveal(index); else this.list.draw();
  }

  /** More lines came. */
  append(lines) {
    this.model.append(lines);
    this._chips();
    this.timeline.grown();
    this.list.refresh();
  }

  /** Show the line of that number. */
  reveal(number) {
    const index = this.model.indexOf(number);
    if (index >= 0) this.timeline.select(this.timeline.thingOf(index), { reveal: true });
  }

  restyle() { this.timeline.restyle(); }

  close() { this.timeline.close(); }
}
