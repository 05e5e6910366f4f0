"use strict";
// What pointer, wheel, fingers and keys do to a time line.

class TimelineControls {
  constructor(line) {
    this.line = line;
    this.pointers = new Map();
    const { scroll, overview } = line;
    scroll.addEventListener("scroll", () => line.draw(), { passive: true });
    scroll.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    scroll.addEventListener("keydown", (event) => this.key(event));
    for (const [name, handle] of Object.entries({ pointerdown: this.down, pointermove: this.move, pointerup: this.up, pointercancel: this.up, pointerleave: this.leave }))
      line.canvas.addEventListener(name, handle.bind(this));
    line.canvas.addEventListener("dblclick", (event) => { const [x] = this.at(event); if (x > line.left) line.zoom(3, line.t(x)); });
    const drag = (event) => { if (event.buttons) this.overview(event); };
    overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); this.overview(event); });
    overview.addEventListener("pointermove", drag);
  }

  at(event) {
    const box = this.line.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Zooms with Ctrl, and plainly once the time line has the focus; else the page scrolls, as everywhere. */
  wheel(event) {
    const { line } = this, [x] = this.at(event), focused = document.activeElement === line.scroll;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const scale = event.deltaMode === 1 ? 30 : 1;
    if (sideways) {
      event.preventDefault();
      line.pan(((event.deltaX || event.deltaY) * scale * (line.to - line.from)) / line.width);
    } else if (event.ctrlKey || event.metaKey || (focused && x > line.left)) {
      event.preventDefault();
      line.zoom(Math.exp(-event.deltaY * scale * (event.ctrlKey && Math.abs(event.deltaY) < 30 ? 0.01 : 0.0022)), line.t(Math.max(x, line.left)));
    }
  }

  down(event) {
    const { line } = this, [x, y] = this.at(event);
    line.scroll.focus({ preventScroll: true });
    line.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x, y, fromX: x, fromY: y, moved: false });
    this.hideTip();
  }

  move(event) {
    const { line } = this, [x, y] = this.at(event), pointer = this.pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === "mouse") { line.hover = { x, y }; this.tip(event, x, y); line.draw(); }
      return;
    }
    if (Math.hypot(x - pointer.fromX, y - pointer.fromY) > 5) pointer.moved = true;
    if (this.pointers.size === 2) {
      const [a, b] = [...this.pointers.values()], before = Math.abs(a.x - b.x), around = line.t((a.x + b.x) / 2);
      Object.assign(pointer, { x, y, moved: true });
      const after = Math.abs(a.x - b.x);
      if (before > 12 && after > 12) line.zoom(after / before, around);
      return;
    }
    if (pointer.moved) {
      line.pan(((pointer.x - x) * (line.to - line.from)) / (line.width - line.left));
      if (event.pointerType === "mouse") line.scroll.scrollTop += pointer.y - y;
    }
    Object.assign(pointer, { x, y });
  }

  up(event) {
    const pointer = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (pointer && !pointer.moved && event.type === "pointerup") this.click(...this.at(event));
  }

  leave() {
    this.line.hover = null;
    this.hideTip();
    this.line.draw();
  }

  click(x, y) {
    const { line } = this, row = this.row(y);
    if (row && row.group) { line.toggle(row.group); return; }
    const thing = this.thing(x, y);
    line.select(thing);
  }

  row(y) {
    const { line } = this;
    if (y < line.top) return null;
    const inside = y - line.top + line.scroll.scrollTop;
    return line.rows.find((row) => row.y <= inside && inside < row.y + row.height) ?? null;
  }

  /** What lies under a point: a mark before a hold before a segment before the lane. */
  thing(x, y) {
    const { line } = this;
    let lane;
    if (y >= Timeline.AXIS && y < line.top) lane = [...line.model.lanes.values()].filter((one) => one.group === "steps").find((one) => x < line.left || one.at(line.t(x)));
    else lane = this.row(y)?.lane;
    if (!lane) return null;
    if (x < line.left) return { lane, segment: lane.last() ?? lane.segments[lane.segments.length - 1] };
    const t = line.t(x), row = line.rows.find((one) => one.lane === lane);
    const low = row ? y - line.top + line.scroll.scrollTop - row.y > row.height - 11 : false;
    const mark = this.mark(lane, x, low ? 6 : 3);
    const hold = lane.holds.find((one) => one.from <= t && (one.to === null || t < one.to) && this._inRow(lane, one, row, y));
    const segment = lane.at(t);
    if (mark && (low || (!hold && !segment) || mark.tone !== "plain")) return { lane, line: mark.line };
    if (hold) return { lane, hold };
    if (segment) return { lane, segment };
    return mark ? { lane, line: mark.line } : { lane };
  }

  _inRow(lane, hold, row, y) {
    if (lane.rows === 1 || !row) return true;
    const tall = (row.height - 12) / Math.min(lane.rows, 8);
    return Math.floor((y - this.line.top + this.line.scroll.scrollTop - row.y - 5) / tall) === hold.row % 8;
  }

  mark(lane, x, near) {
    const { line } = this;
    let best = null, least = near + 0.01;
    for (const mark of lane.marks) {
      const away = Math.abs(line.x(mark.t) - x);
      if (line.matches(mark.line) && (away < least || (away === least && best && best.tone === "plain" && mark.tone !== "plain"))) [best, least] = [mark, away];
    }
    return best;
  }

  tip(event, x, y) {
    const { line } = this, thing = x > line.left || this.row(y)?.lane ? this.thing(x, y) : null, tip = line.tip;
    if (!thing || (!thing.segment && !thing.hold && thing.line === undefined)) { this.hideTip(); return; }
    tip.replaceChildren(...this.words(thing).map(([name, text]) => Units.el("div", { class: name }, text)));
    tip.hidden = false;
    const box = line.element.getBoundingClientRect(), wide = tip.offsetWidth, tall = tip.offsetHeight;
    const left = Math.min(Math.max(event.clientX - box.left + 14, 4), box.width - wide - 4);
    const above = event.clientY - box.top + 18 + tall > box.height;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(event.clientY - box.top + (above ? -tall - 10 : 18))}px)`;
  }

  words(thing) {
    const { model } = this.line;
    if (thing.line !== undefined) {
      const one = model.lines[thing.line];
      return [["strong", `${one.event}  ·  ${one.actor}`], ["", Units.time(one.t, 1e-6)], ["", Units.fields(one, 260)]];
    }
    const part = thing.hold ?? thing.segment;
    const until = part.to === null ? "now" : Units.time(part.to);
    const words = [["strong", thing.hold ? `held by ${thing.hold.pod}` : part.label || part.state], ["", thing.lane.label], ["", `${Units.time(part.from)} to ${until} (${Units.span((part.to ?? model.end) - part.from)})`]];
    if (thing.hold) words.push(["", thing.lane.at(part.from)?.label || ""]);
    return words;
  }

  hideTip() { this.line.tip.hidden = true; }

  overview(event) {
    const { line } = this, box = line.overview.getBoundingClientRect(), span = line.to - line.from;
    const share = (event.clientX - box.left - line.left) / (box.width - line.left);
    const middle = line.model.start + share * (line.model.end - line.model.start) * 1.02;
    line.show(middle - span / 2, middle + span / 2);
  }

  key(event) {
    const { line } = this, span = line.to - line.from;
    if (event.altKey || event.metaKey || event.ctrlKey) return;
    const keys = {
      "+": () => line.zoom(1.6), "=": () => line.zoom(1.6), "-": () => line.zoom(1 / 1.6), "0": () => line.fit(), f: () => line.fit(),
      ArrowLeft: () => line.pan(-span / 8), ArrowRight: () => line.pan(span / 8), ArrowUp: () => this.lane(-1), ArrowDown: () => this.lane(1),
      Home: () => line.show(line.model.start, line.model.start + span), End: () => line.show(line.model.end - span, line.model.end),
      n: () => this.next(1), p: () => this.next(-1), Enter: () => line.onselect(line.selected, true), Escape: () => line.select(null),
    };
    const handle = keys[event.key] ?? keys[event.key.toLowerCase()];
    if (!handle) return;
    event.preventDefault();
    handle();
  }

  lane(by) {
    const { line } = this, lanes = line.rows.filter((row) => row.lane);
    if (!lanes.length) return;
    const at = lanes.findIndex((row) => row.lane === line.selected?.lane);
    const { lane } = lanes[at < 0 ? 0 : Math.min(Math.max(at + by, 0), lanes.length - 1)];
    line.select({ lane, segment: lane.at((line.from + line.to) / 2) ?? lane.segments[lane.segments.length - 1] }, { reveal: true });
  }

  /** The lane's next event after what is chosen, or before it. */
  next(by) {
    const { line } = this, { selected } = line;
    if (!selected?.lane) { this.lane(1); return; }
    const marks = selected.lane.marks.filter((mark) => line.matches(mark.line));
    if (!marks.length) return;
    let at = marks.findIndex((mark) => mark.line === selected.line);
    if (at < 0) {
      const t = selected.segment?.from ?? selected.hold?.from ?? line.from;
      at = marks.findIndex((mark) => mark.t >= t) - (by > 0 ? 1 : 0);
      if (at < -1) at = marks.length;
    }
    const mark = marks[Math.min(Math.max(at + by, 0), marks.length - 1)];
    line.select({ lane: selected.lane, line: mark.line }, { reveal: true });
  }
}
