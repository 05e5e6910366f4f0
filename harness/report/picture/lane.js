"use strict";
// One lane of the picture: a GPU, a pod, a claim, a node, a component, … over time.
//
// It has `segments` ({from, to, state, label, host, line}; `to` null while it lasts), a GPU's `holds` as well
// ({from, to, pod, uid, line, row}), and `marks` ({t, line, tone}): one for each line of the journal that is about it.
// `line` is an index into `model.lines`.

const LANE_GROUPS = ["steps", "faults", "invariants", "gpus", "pods", "claims", "nodes", "components", "others"];
const LAYERS = ["chassis", "host", "kubelet", "api", "scheduler", "component", "fault", "step", "invariant"];

class Lane {
  constructor(group, key, label, order) {
    this.group = group;
    this.key = key;
    this.label = label;
    this.order = order;
    this.segments = [];
    this.holds = [];
    this.rows = 1;
    this.marks = [];
  }

  /** The segment that lasts at that time, or null. */
  at(t) {
    let low = 0, high = this.segments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.segments[middle].from <= t) low = middle + 1; else high = middle;
    }
    const found = this.segments[low - 1];
    return found && (found.to === null || t < found.to || (found.from === found.to && t === found.from)) ? found : null;
  }

  last() {
    const last = this.segments[this.segments.length - 1];
    return last && last.to === null ? last : null;
  }

  /** From `t` on it is in that state; the same as before changes nothing, and a state of no length is replaced. */
  turn(t, state, about, line) {
    const { label = "", host = null } = about;
    const last = this.last();
    if (last) {
      if (last.state === state && last.label === label && last.host === host) return;
      if (last.from === t) {
        this.segments.pop();
        const before = this.segments[this.segments.length - 1];
        if (before && before.to === t && before.state === state && before.label === label && before.host === host) {
          before.to = null;
          return;
        }
      } else last.to = t;
    }
    this.segments.push({ from: t, to: null, state, label, host, line });
  }

  /** Nothing lasts from `t` on. */
  end(t) {
    const last = this.last();
    if (last) last.to = t;
  }
}
