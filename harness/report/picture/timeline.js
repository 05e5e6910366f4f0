"use strict";
// The lanes of a model on a canvas: only what is in sight is drawn, whatever the journal's length.

class Timeline {
  static AXIS = 26;
  static STEPS = 24;
  static GROUP = 28;
  static LANE = 26;
  static TITLES = { faults: "Faults", invariants: "Invariants", gpus: "GPUs", pods: "Pods", claims: "Resource claims", nodes: "Nodes and chassis", components: "Components", others: "Other objects" };

  /** `onselect` is called with {lane, segment?, hold?, line?} or null; the element is the caller's to place. */
  constructor(model, { onselect = () => {}, follow = false } = {}) {
    this.model = model;
    this.onselect = onselect;
    this.follow = follow;
    this.from = 0;
    this.to = 1;
    this.rows = [];
    this.closed = new Set();
    this.filter = { words: [], hidden: new Set() };
    this.matching = null;
    this.selected = null;
    this.links = [];
    this.hover = null;
    this.colours = null;
    this.frames = [];
    this._built = -1;
    this._build();
    this.controls = new TimelineControls(this);
    this._watching = new ResizeObserver(() => this.resize());
    this._watching.observe(this.scroll);
    this.fit();
  }

  _build() {
    const { el } = Units;
    this.canvas = el("canvas", { class: "lanes", "aria-hidden": "true" });
    this.space = el("div", { class: "space" }, this.canvas);
    this.scroll = el("div", { class: "scroll", tabindex: "0", role: "application", "aria-roledescription": "timeline",
      "aria-label": "Timeline. Plus and minus zoom, arrows move and choose a lane. N and P select its next and previous event, Enter opens it, 0 shows all." }, this.space);
    this.overview = el("canvas", { class: "overview", "aria-hidden": "true" });
    this.tip = el("div", { class: "tip", hidden: true });
    this.status = el("div", { class: "unseen", "aria-live": "polite" });
    this.element = el("div", { class: "timeline" }, this.scroll, this.overview, this.tip, this.status);
  }

  close() {
    this._watching.disconnect();
    cancelAnimationFrame(this._frame);
  }

  // What is shown ----------------------------------------------------------------------------------------------------

  /** All of the time. */
  fit() {
    this._span(this.model.start, this._last());
    this.wanted = null;
  }

  _last() {
    const span = Math.max(this.model.end - this.model.start, 1e-3);
    return this.model.end + span * 0.02;
  }

  /** Show that span, within what there is. */
  show(from, to) {
    const least = 1e-5, most = this._last() - this.model.start;
    let span = Math.min(Math.max(to - from, least), most);
    const start = Math.min(Math.max(from, this.model.start - span * 0.02), this.model.start + most - span * 0.9);
    this._span(start, start + span);
    this.wanted = span;
  }

  _span(from, to) {
    [this.from, this.to] = [from, to];
    this.draw();
  }

  /** Closer by that factor around a time. */
  zoom(factor, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) / factor, around + (this.to - around) / factor);
  }

  pan(seconds) {
    this.show(this.from + seconds, this.to + seconds);
  }

  /** The model has more lines. */
  grown() {
    if (this.follow) {
      if (this.wanted) this._span(this._last() - this.wanted, this._last());
      else this.fit();
    }
    this.draw();
  }

  /** Only lines with all these words, of layers that are not hidden, and lanes with such lines. */
  setFilter(text, hidden) {
    this.filter = { words: text.toLowerCase().split(/\s+/).filter(Boolean), hidden };
    this._built = -1;
    this.draw();
  }

  matches(index) {
    return this.matching === null || this.matching[index] === 1;
  }

  _match() {
    const { words, hidden } = this.filter, lines = this.model.lines;
    if (!words.length && !hidden.size) { this.matching = null; return; }
    this.texts ??= [];
    for (let index = this.texts.length; words.length && index < lines.length; index += 1)
      this.texts.push(JSON.stringify(lines[index]).toLowerCase());
    this.matching = new Uint8Array(lines.length);
    for (let index = 0; index < lines.length; index += 1)
      if (!hidden.has(lines[index].layer) && words.every((word) => this.texts[index].includes(word))) this.matching[index] = 1;
  }

  toggle(group) {
    if (!this.closed.delete(group)) this.closed.add(group);
    this._built = -1;
    this.draw();
  }

  _layout() {
    if (this._built === this.model.version) return;
    this._match();
    this.rows = [];
    const byGroup = new Map(LANE_GROUPS.map((name) => [name, []]));
    for (const lane of this.model.lanes.values()) byGroup.get(lane.group).push(lane);
    let y = 0;
    for (const [name, all] of byGroup) {
      if (name === "steps") continue;
      const lanes = this.matching === null ? all : all.filter((lane) => lane.marks.some((mark) => this.matching[mark.line]));
      if (!lanes.length) continue;
      lanes.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
      this.rows.push({ group: name, count: lanes.length, all: all.length, y, height: Timeline.GROUP });
      y += Timeline.GROUP;
      if (this.closed.has(name)) continue;
      for (const lane of lanes) {
        const height = Timeline.LANE + (Math.min(lane.rows, 8) - 1) * 9;
        this.rows.push({ lane, y, height });
        y += height;
      }
    }
    this.height = y + 8;
    this._built = this.model.version;
    this.space.style.height = `${this.height + this.top}px`;
  }

  get top() { return Timeline.AXIS + (this.model.steps.length ? Timeline.STEPS : 0); }
  get left() { return this.width < 560 ? 92 : this.width < 1000 ? 128 : 176; }
  x(t) { return this.left + ((t - this.from) / (this.to - this.from)) * (this.width - this.left); }
  t(x) { return this.from + ((x - this.left) / (this.width - this.left)) * (this.to - this.from); }

  // Selection ----------------------------------------------------------------------------------------------------

  /** Choose a thing; its links are drawn. */
  select(thing, { reveal = false } = {}) {
    this.selected = thing;
    const links = thing ? Causes.of(this.model, thing).links.slice(0, 200) : [];
    const end = (index, lane) => ({ t: this.model.lines[index].t, lane: lane ?? this.thingOf(index).lane });
    this.links = links.map(([from, to, lane]) => [end(from), end(to, lane)]);
    if (thing && reveal) this.reveal(thing);
    if (thing) this.status.textContent = this.describe(thing);
    this.onselect(thing);
    this.draw();
  }

  /** The thing of a line, on the most telling of its lanes. */
  thingOf(index) {
    const lanes = this.model.lanesOf(index), order = ["invariants", "faults", "gpus", "pods", "claims", "nodes", "components", "others", "steps"];
    lanes.sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
    return { lane: lanes[0], line: index };
  }

  describe(thing) {
    if (thing.line !== undefined && thing.line !== null) {
      const line = this.model.lines[thing.line];
      return `${Units.time(line.t)}: ${line.actor} ${line.event} ${Units.fields(line, 160)}`;
    }
    const what = thing.hold ? `held by ${thing.hold.pod}` : thing.segment ? thing.segment.label : "";
    return `${thing.lane.label}: ${what}`;
  }

  /** Bring a thing into sight. */
  reveal(thing) {
    this._layout();
    if (thing.lane && this.closed.has(thing.lane.group)) this.toggle(thing.lane.group);
    this._layout();
    const row = this.rows.find((one) => one.lane === thing.lane);
    if (row) {
      const top = this.scroll.scrollTop, inside = this.scroll.clientHeight - this.top;
      if (row.y < top || row.y + row.height > top + inside) this.scroll.scrollTop = row.y - inside / 3;
    }
    const t = thing.line !== undefined && thing.line !== null ? this.model.lines[thing.line].t : thing.segment?.from ?? thing.hold?.from;
    if (t !== undefined && (t < this.from || t > this.to)) {
      const span = this.to - this.from;
      this.show(t - span / 3, t + (2 * span) / 3);
    }
  }

  // Drawing ------------------------------------------------------------------------------------------------------

  resize() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = this.scroll.clientWidth;
    this.inside = this.scroll.clientHeight;
    for (const [canvas, height] of [[this.canvas, this.inside], [this.overview, this.overview.clientHeight]]) {
      const wide = canvas === this.canvas ? this.width : this.overview.clientWidth;
      canvas.width = Math.max(1, Math.round(wide * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      if (canvas === this.canvas) canvas.style.height = `${height}px`;
    }
    this.ratio = ratio;
    this._built = -1;
    this.draw();
  }

  /** The theme is another. */
  restyle() {
    this.colours = null;
    this.draw();
  }

  /** Draw before the next frame. */
  draw() {
    this._frame ??= requestAnimationFrame(() => { this._frame = null; this.paint(); });
  }

  /** Draw now. */
  paint() {
    if (!this.width) return;
    const began = performance.now();
    this._layout();
    this.colours ??= new TimelinePaint(this.element);
    this.colours.lanes(this);
    this.colours.overview(this);
    this.frames.push(performance.now() - began);
    if (this.frames.length > 1000) this.frames.splice(0, 500);
  }
}
