"use strict";
// How the lanes look. Colours come from the style sheet, once per theme.

class TimelinePaint {
  static HOSTS = 8;

  constructor(element) {
    const style = getComputedStyle(element);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.c = {};
    for (const name of ["text", "faint", "line", "panel", "back", "band", "on-solid", "accent", "good", "warn", "bad", "fault", "neutral", "head"]) this.c[name] = read(name);
    this.hosts = Array.from({ length: TimelinePaint.HOSTS }, (_, number) => read(`host-${number}`));
    this.font = read("font") || "system-ui, sans-serif";
    this.stripes = new Map();
    this.widths = new Map();
  }

  host(model, name) {
    const number = name === null ? undefined : model.hosts.get(name);
    return number === undefined ? this.c.neutral : this.hosts[number % this.hosts.length];
  }

  striped(context, colour) {
    if (!this.stripes.has(colour)) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 8;
      const inside = tile.getContext("2d");
      inside.strokeStyle = colour;
      inside.lineWidth = 2.4;
      for (const shift of [-8, 0, 8]) { inside.beginPath(); inside.moveTo(shift, 8); inside.lineTo(shift + 8, 0); inside.stroke(); }
      this.stripes.set(colour, context.createPattern(tile, "repeat"));
    }
    return this.stripes.get(colour);
  }

  _wide(context, text) {
    const size = this.widths.get(text) ?? context.measureText(text).width;
    if (this.widths.size > 5000) this.widths.clear();
    this.widths.set(text, size);
    return size;
  }

  /** Text cut to a width, or nothing where not even three letters fit. */
  text(context, text, x, y, width) {
    if (!text || width < 18) return;
    const size = this._wide(context, text);
    if (size > width) {
      let letters = Math.floor((text.length * width) / size) - 1;
      while (letters >= 3 && this._wide(context, `${text.slice(0, letters)}…`) > width) letters -= 1;  // wide ones are in front
      if (letters < 3) return;
      text = `${text.slice(0, letters)}…`;
    }
    context.fillText(text, x, y);
  }

  lanes(line) {
    const g = line.canvas.getContext("2d"), { c } = this, { model, left, top, width, inside } = line;
    g.setTransform(line.ratio, 0, 0, line.ratio, 0, 0);
    g.fillStyle = c.panel;
    g.fillRect(0, 0, width, inside);
    g.textBaseline = "middle";
    const step = this._ticks(g, line);
    this._faultBands(g, line);
    const offset = top - line.scroll.scrollTop;
    g.save();
    g.beginPath();
    g.rect(0, top, width, inside - top);
    g.clip();
    for (const row of line.rows) {
      const y = row.y + offset;
      if (y + row.height < top) continue;
      if (y > inside) break;
      if (row.group) this._group(g, line, row, y); else this._lane(g, line, row, y);
    }
    this._violations(g, line);
    this._links(g, line, offset);
    g.restore();
    this._head(g, line, step);
    this._divider(g, line, offset);
    this._pointer(g, line);
  }

  /** Between names and bars; a group's title may be longer than the names are wide, and stands uncut. */
  _divider(g, line, offset) {
    const { left, top, inside } = line;
    g.fillStyle = this.c.line;
    g.fillRect(left - 1, 0, 1, top);
    let end = top;
    for (const row of line.rows) {
      const from = Math.max(row.y + offset, top), to = Math.min(row.y + row.height + offset, inside);
      if (to <= from) continue;
      if (!row.group) g.fillRect(left - 1, from, 1, to - from);
      end = to;
    }
    g.fillRect(left - 1, end, 1, inside - end);
  }

  _ticks(g, line) {
    const { c } = this, least = ((line.to - line.from) * 92) / Math.max(line.width - line.left, 1), step = Units.tickStep(least);
    g.fillStyle = c.line;
    for (let k = Math.ceil(line.from / step); k * step <= line.to; k += 1) g.fillRect(Math.round(line.x(k * step)), Timeline.AXIS, 1, line.inside);
    return step;
  }

  _faultBands(g, line) {
    for (const fault of line.model.faults.values()) {
      const from = Math.max(line.x(fault.added), line.left), to = Math.min(line.x(fault.until ?? fault.cleared ?? line.model.end), line.width);
      if (to < line.left || from > line.width) continue;
      g.globalAlpha = 0.04;
      g.fillStyle = this.c.fault;
      g.fillRect(from, line.top, Math.max(to - from, 1), line.inside);
      g.globalAlpha = 1;
    }
    g.fillStyle = this.c.fault;
    g.globalAlpha = 0.45;
    for (const fired of line.model.fired) {
      const x = Math.round(line.x(fired.t));
      if (x < line.left || x > line.width) continue;
      for (let y = line.top; y < line.inside; y += 7) g.fillRect(x, y, 1, 3);
    }
    g.globalAlpha = 1;
  }

  _group(g, line, row, y) {
    const { c } = this, closed = line.closed.has(row.group);
    g.fillStyle = c.head;
    g.fillRect(0, y, line.width, row.height);
    g.fillStyle = c.line;
    g.fillRect(0, y + row.height - 1, line.width, 1);
    g.fillStyle = c.faint;
    g.beginPath();
    const x = 13, m = y + row.height / 2;
    if (closed) { g.moveTo(x - 2, m - 4); g.lineTo(x + 3, m); g.lineTo(x - 2, m + 4); } else { g.moveTo(x - 4, m - 2); g.lineTo(x + 4, m - 2); g.lineTo(x, m + 3); }
    g.fill();
    g.fillStyle = c.text;
    g.font = `600 12px ${this.font}`;
    const title = Timeline.TITLES[row.group];
    g.fillText(title, 24, m + 0.5);
    const wide = g.measureText(title).width;
    g.font = `12px ${this.font}`;
    g.fillStyle = c.faint;
    g.fillText(row.count === row.all ? String(row.all) : `${row.count} of ${row.all}`, 32 + wide, m + 0.5);
  }

  _lane(g, line, row, y) {
    const { c } = this, { lane, height } = row, chosen = line.selected && line.selected.lane === lane;
    if (chosen) { g.fillStyle = c.band; g.fillRect(0, y, line.width, height); }
    g.fillStyle = c.line;
    g.globalAlpha = 0.5;
    g.fillRect(0, y + height - 1, line.width, 1);
    g.globalAlpha = 1;
    g.font = `12px ${this.font}`;
    g.save();
    g.beginPath();
    g.rect(line.left, y, line.width - line.left, height);
    g.clip();
    this._segments(g, line, lane, y, height);
    if (lane.holds.length) this._holds(g, line, lane, y, height);
    this._marks(g, line, lane, y, height);
    g.restore();
    g.fillStyle = chosen ? c.accent : c.text;
    g.font = `${chosen ? "600 " : ""}12px ${this.font}`;
    this.text(g, lane.label, 10, y + height / 2, line.left - 16);
  }

  _segments(g, line, lane, y, height) {
    const all = lane.segments, top = y + 4, tall = height - 10;
    let low = 0, high = all.length;
    while (low < high) { const middle = (low + high) >> 1; if ((all[middle].to ?? Infinity) < line.from) low = middle + 1; else high = middle; }
    let drawn = -1;
    for (let k = low; k < all.length; k += 1) {
      const segment = all[k], from = line.x(segment.from);
      if (from > line.width) break;
      const to = line.x(segment.to ?? line.model.end);
      if (to < drawn + 0.5 && to - from < 0.5) continue;
      drawn = to;
      const x = Math.max(from, line.left - 4), wide = Math.max(Math.min(to, line.width + 4) - x, 1.5);
      this._bar(g, line, lane, segment, x, top, wide, tall);
    }
  }

  _bar(g, line, lane, segment, x, y, wide, tall) {
    const { c } = this, look = this.look(line.model, lane, segment), gap = wide > 4 ? 0.5 : 0;
    const shape = () => { g.beginPath(); g.roundRect(x + gap, y, Math.max(wide - 2 * gap, 1), tall, Math.min(3, wide / 2)); };
    if (look.tint) { g.globalAlpha = look.tint; g.fillStyle = look.colour; shape(); g.fill(); g.globalAlpha = 1; }
    if (look.solid) { g.fillStyle = look.colour; shape(); g.fill(); }
    if (look.stripes) { g.globalAlpha = 0.75; g.fillStyle = this.striped(g, look.colour); shape(); g.fill(); g.globalAlpha = 1; }
    if (look.outline && wide > 3) { g.strokeStyle = look.colour; g.lineWidth = 1; g.setLineDash(look.dashed ? [3, 3] : []); shape(); g.stroke(); g.setLineDash([]); }
    if (look.edge && wide > 6) { g.fillStyle = look.colour; g.fillRect(x + gap, y, 3, tall); }
    const held = lane.group === "gpus" && lane.holds.length && this._isHeld(lane, line.t(x + 20));
    if (wide > 26 && !held) {
      if (look.stripes) {
        const shown = Math.min(this._measure(g, segment.label) + 6, wide - 8);
        g.fillStyle = c.panel;
        g.globalAlpha = 0.85;
        g.fillRect(Math.max(x, line.left) + 4, y + 2, Math.min(shown, wide - 8), tall - 4);
        g.globalAlpha = 1;
      }
      g.fillStyle = look.solid ? c["on-solid"] : c.text;
      const at = Math.max(x, line.left);
      this.text(g, segment.label, at + 7, y + tall / 2 + 0.5, x + wide - at - 12);
    }
  }

  _measure(g, text) {
    const known = this.widths.get(text) ?? g.measureText(text).width;
    this.widths.set(text, known);
    return known;
  }

  _isHeld(lane, t) {
    for (const hold of lane.holds) if (hold.from <= t && (hold.to === null || t < hold.to)) return true;
    return false;
  }

  /** How a state looks: {colour, tint | solid | stripes, outline, dashed, edge}. */
  look(model, lane, { state, host }) {
    const { c } = this, own = this.host(model, host);
    switch (state) {
      case "free": return { colour: c.faint, outline: true, dashed: true };
      case "removed": return { colour: c.line, tint: 0.6 };
      case "attached": return { colour: own, tint: 0.1, outline: true, dashed: true };
      case "visible": return { colour: own, tint: 0.2, edge: true };
      case "attaching": case "detaching": case "starting": return { colour: own, stripes: true, outline: true };
      case "draining": return { colour: c.warn, stripes: true, outline: true };
      case "lost": case "stuck": return { colour: c.bad, stripes: true, outline: true };
      case "allocated": return { colour: c.accent, tint: 0.14, edge: true };
      case "prepared": return { colour: own, tint: 0.3, edge: true };
      case "pending": return { colour: c.warn, tint: 0.22, edge: true };
      case "running": return { colour: own, solid: true };
      case "terminating": return { colour: c.faint, stripes: true };
      case "succeeded": return { colour: c.good, tint: 0.14 };
      case "failed": case "step-failed": case "down": return { colour: c.bad, solid: true };
      case "ready": return { colour: own, tint: 0.13, edge: true };
      case "not-ready": return { colour: c.bad, tint: 0.2, edge: true };
      case "booting": return { colour: c.faint, tint: 0.15 };
      case "unschedulable": return { colour: c.warn, tint: 0.2, edge: true };
      case "fault": return { colour: c.fault, tint: 0.28, edge: true };
      case "step": return { colour: c.accent, stripes: true, outline: true };
      case "step-passed": return { colour: c.good, tint: 0.2, edge: true };
      default: return { colour: c.neutral, tint: 0.16 };
    }
  }

  _holds(g, line, lane, y, height) {
    const rows = Math.min(lane.rows, 8), tall = (height - 12) / rows;
    for (const hold of lane.holds) {
      const to = line.x(hold.to ?? line.model.end), from = line.x(hold.from);
      if (to < line.left || from > line.width) continue;
      const x = Math.max(from, line.left - 4), wide = Math.max(Math.min(to, line.width + 4) - x, 2);
      const state = lane.at(hold.from);
      g.fillStyle = this.host(line.model, state ? state.host : null);
      g.beginPath();
      g.roundRect(x + 0.5, y + 5 + (hold.row % 8) * tall, Math.max(wide - 1, 1), tall - (rows > 1 ? 1 : 0), Math.min(3, wide / 2));
      g.fill();
      if (wide > 26 && tall >= 8) {
        g.fillStyle = this.c["on-solid"];
        g.font = `${rows > 1 ? 9 : 12}px ${this.font}`;
        const at = Math.max(x, line.left);
        this.text(g, hold.pod.replace(/^default\//, ""), at + 7, y + 5 + (hold.row % 8) * tall + tall / 2 + 0.5, x + wide - at - 12);
        g.font = `12px ${this.font}`;
      }
    }
  }

  _marks(g, line, lane, y, height) {
    const { c } = this, marks = lane.marks, bottom = y + height - 5;
    let low = 0, high = marks.length;
    while (low < high) { const middle = (low + high) >> 1; if (marks[middle].t < line.from) low = middle + 1; else high = middle; }
    const colours = { plain: c.faint, warn: c.warn, bad: c.bad, good: c.good };
    let last = -9, lastTone = "";
    for (let k = low; k < marks.length && marks[k].t <= line.to; k += 1) {
      const mark = marks[k];
      if (!line.matches(mark.line)) continue;
      const x = line.x(mark.t);
      if (x - last < 1 && (mark.tone === "plain" || mark.tone === lastTone)) continue;
      [last, lastTone] = [x, mark.tone];
      g.fillStyle = colours[mark.tone];
      if (mark.tone === "plain") g.fillRect(x - 0.5, bottom, 1, 4);
      else { g.beginPath(); g.moveTo(x, bottom - 4); g.lineTo(x + 4, bottom); g.lineTo(x, bottom + 4); g.lineTo(x - 4, bottom); g.fill(); g.strokeStyle = c.panel; g.lineWidth = 1; g.stroke(); }
    }
    if (line.selected && line.selected.line !== undefined && line.selected.line !== null && line.selected.lane === lane) {
      const x = line.x(line.model.lines[line.selected.line].t);
      g.strokeStyle = c.accent;
      g.lineWidth = 2;
      g.beginPath();
      g.arc(x, bottom, 5.5, 0, 7);
      g.stroke();
    }
  }

  _violations(g, line) {
    for (const violation of line.model.violations) {
      for (const [t, text] of [[violation.t, `invariant ${violation.number} violated`], [this._firstAt(line.model, violation), `broke invariant ${violation.number}`]]) {
        if (t === null) continue;
        const x = Math.round(line.x(t));
        if (x < line.left || x > line.width) continue;
        g.fillStyle = this.c.bad;
        g.fillRect(x - 1, line.top, 2, line.inside);
        g.font = `600 11px ${this.font}`;
        const wide = g.measureText(text).width + 12, at = x + wide > line.width ? x - wide : x;
        g.beginPath();
        g.roundRect(at, line.inside - 22, wide, 18, 3);
        g.fill();
        g.fillStyle = this.c["on-solid"];
        g.fillText(text, at + 6, line.inside - 12.5);
      }
    }
  }

  _firstAt(model, violation) {
    const first = model.indexOf(violation.first);
    return first < 0 ? null : model.lines[first].t;
  }

  _links(g, line, offset) {
    if (!line.links.length) return;
    const rowOf = new Map(line.rows.filter((row) => row.lane).map((row) => [row.lane, row]));
    const place = ({ t, lane }) => {
      const row = rowOf.get(lane);
      return row ? [line.x(t), row.y + offset + row.height / 2] : null;
    };
    g.strokeStyle = this.c.accent;
    g.fillStyle = this.c.accent;
    g.lineWidth = 1.5;
    for (const [from, to] of line.links) {
      const a = place(from), b = place(to);
      if (!a || !b || (a[0] === b[0] && a[1] === b[1])) continue;
      const bend = Math.max(24, Math.abs(b[0] - a[0]) / 3);
      g.globalAlpha = 0.8;
      g.beginPath();
      g.moveTo(...a);
      g.bezierCurveTo(a[0] + bend, a[1], b[0] - bend, b[1], b[0], b[1]);
      g.stroke();
      g.beginPath();
      g.moveTo(b[0], b[1]); g.lineTo(b[0] - 7, b[1] - 3.5); g.lineTo(b[0] - 7, b[1] + 3.5);
      g.fill();
      g.beginPath(); g.arc(a[0], a[1], 2.5, 0, 7); g.fill();
      g.globalAlpha = 1;
    }
  }

  _head(g, line, step) {
    const { c } = this;
    g.fillStyle = c.head;
    g.fillRect(0, 0, line.width, line.top);
    g.fillStyle = c.faint;
    g.font = `11px ${this.font}`;
    for (let k = Math.ceil(line.from / step); k * step <= line.to; k += 1) {
      const t = k * step, x = line.x(t), text = Units.time(t, step), wide = g.measureText(text).width;
      g.fillRect(Math.round(x), Timeline.AXIS - 5, 1, 5);
      if (x + wide / 2 < line.width - 2) g.fillText(text, Math.max(x - wide / 2, line.left + 4), Timeline.AXIS / 2);
    }
    this.text(g, `${Units.span(line.to - line.from)} shown`, 10, Timeline.AXIS / 2, line.left - 16);
    if (line.model.steps.length) {
      for (const lane of line.model.lanes.values()) {
        if (lane.group !== "steps") continue;
        g.save();
        g.beginPath();
        g.rect(line.left, Timeline.AXIS, line.width - line.left, Timeline.STEPS);
        g.clip();
        this._segments(g, line, lane, Timeline.AXIS - 2, Timeline.STEPS + 4);
        g.restore();
      }
      g.fillStyle = c.text;
      g.font = `600 12px ${this.font}`;
      g.fillText("Steps", 10, Timeline.AXIS + Timeline.STEPS / 2);
    }
    g.fillStyle = c.line;
    g.fillRect(0, line.top - 1, line.width, 1);
  }

  _pointer(g, line) {
    if (!line.hover) return;
    const x = Math.round(line.hover.x);
    if (x <= line.left) return;
    g.fillStyle = this.c.accent;
    g.globalAlpha = 0.5;
    g.fillRect(x, Timeline.AXIS, 1, line.inside);
    g.globalAlpha = 1;
    const text = Units.time(line.t(line.hover.x), (line.to - line.from) / 2000);
    g.font = `600 11px ${this.font}`;
    const wide = g.measureText(text).width + 10, at = Math.min(Math.max(x - wide / 2, line.left), line.width - wide);
    g.fillStyle = this.c.accent;
    g.beginPath();
    g.roundRect(at, 3, wide, Timeline.AXIS - 7, 3);
    g.fill();
    g.fillStyle = this.c["on-solid"];
    g.fillText(text, at + 5, Timeline.AXIS / 2);
  }

  /** How many lines there were when, the bad ones red, and what of it is shown. */
  overview(line) {
    const canvas = line.overview, g = canvas.getContext("2d"), { c } = this, { model } = line;
    const width = canvas.width / line.ratio, height = canvas.height / line.ratio, left = line.left, wide = Math.max(width - left, 1);
    g.setTransform(line.ratio, 0, 0, line.ratio, 0, 0);
    g.fillStyle = c.head;
    g.fillRect(0, 0, width, height);
    const bars = this._density(line, Math.max(1, Math.floor(wide / 3)));
    const span = Math.max(model.end - model.start, 1e-9) * 1.02, x = (t) => left + ((t - model.start) / span) * wide;
    for (let k = 0; k < bars.all.length; k += 1) {
      if (!bars.all[k]) continue;
      const tall = (height - 8) * Math.sqrt(bars.all[k] / bars.most);
      g.fillStyle = bars.bad[k] ? c.bad : c.faint;
      g.globalAlpha = bars.bad[k] ? 0.9 : 0.55;
      g.fillRect(left + k * 3, height - 3 - tall, 2, tall);
    }
    g.globalAlpha = 1;
    const from = Math.max(x(line.from), left), to = Math.min(x(line.to), width);
    g.fillStyle = c.accent;
    g.globalAlpha = 0.14;
    g.fillRect(from, 0, Math.max(to - from, 2), height);
    g.globalAlpha = 1;
    g.fillRect(from, 0, 2, height);
    g.fillRect(to - 2, 0, 2, height);
    g.fillStyle = c.faint;
    g.font = `11px ${this.font}`;
    this.text(g, `all ${Units.span(model.end - model.start)}`, 10, height / 2 + 4, left - 14);
  }

  _density(line, bins) {
    const { model } = line, known = line._density;
    if (known && known.version === model.version && known.bins === bins) return known;
    const all = new Uint32Array(bins), bad = new Uint8Array(bins), span = Math.max(model.end - model.start, 1e-9) * 1.02;
    let most = 1;
    for (const one of model.lines) {
      const k = Math.min(bins - 1, Math.floor(((one.t - model.start) / span) * bins));
      all[k] += 1;
      if (all[k] > most) most = all[k];
      if (one.layer === "invariant" || one.layer === "fault" || (one.layer === "step" && one.event === "failed")) bad[k] = 1;
    }
    return (line._density = { version: model.version, bins, all, bad, most });
  }
}
