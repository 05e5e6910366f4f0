"use strict";
// Small plots as SVG. Each says in its label what it shows; the numbers stand in tables beside them.

const Plots = (() => {
  const { el } = Units;

  /** Ticks of a scale of numbers, four or so. */
  function ticks(low, high) {
    const rough = (high - low || Math.abs(high) || 1) / 4, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((one) => one >= rough - 1e-12);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) found.push(Number((k * step).toPrecision(12)));
    return found;
  }

  function range(values) {
    let low = Math.min(...values), high = Math.max(...values);
    if (low === high) { const pad = Math.abs(low) * 0.1 || 1; [low, high] = [low - pad, high + pad]; }
    const pad = (high - low) * 0.08;
    return [low >= 0 && low - pad < 0 ? 0 : low - pad, high + pad];
  }

  function frame(label, width, height) {
    return el("svg:svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": label });
  }

  const text = (x, y, words, anchor = "middle", kind = "") => el("svg:text", { x, y, "text-anchor": anchor, class: kind }, words);
  const rule = (x1, y1, x2, y2, kind = "grid") => el("svg:line", { x1, y1, x2, y2, class: kind });

  /** A dot per seed: [{x: seed, y: value, good, title, onclick}], the expected value as a line. */
  function dots(name, points, { expected = null, xName = "seed" } = {}) {
    const width = 460, height = 200, left = 56, right = 12, top = 14, bottom = 34;
    const [low, high] = range([...points.map((point) => point.y), ...(expected === null ? [] : [expected])]);
    const xs = points.map((point) => point.x), first = Math.min(...xs), last = Math.max(...xs);
    const x = (value) => (first === last ? (left + width - right) / 2 : left + 8 + ((value - first) / (last - first)) * (width - left - right - 16));
    const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
    const mean = points.reduce((sum, point) => sum + point.y, 0) / points.length;
    const shown = (value) => Units.quantity(name, value);
    const plot = frame(`${Units.label(name)} per ${xName}: ${points.length} values, mean ${shown(mean)}`, width, height);
    for (const tick of ticks(low, high)) plot.append(rule(left, y(tick), width - right, y(tick)), text(left - 6, y(tick) + 4, shown(tick), "end"));
    for (const tick of new Set([first, last, ...ticks(first, last)])) if (Number.isInteger(tick) && tick >= first && tick <= last) plot.append(text(x(tick), height - bottom + 16, String(tick)));
    plot.append(text((left + width - right) / 2, height - 3, xName, "middle", "faint"), rule(left, y(mean), width - right, y(mean), "mean"));
    if (expected !== null) plot.append(rule(left, y(expected), width - right, y(expected), "expected"), text(width - right - 2, y(expected) - 4, `expected ${shown(expected)}`, "end", "expected"));
    for (const point of points) {
      const dot = el("svg:circle", { cx: x(point.x), cy: y(point.y), r: points.length > 80 ? 2.5 : 4, class: point.good ? "dot" : "dot bad", onclick: point.onclick });
      dot.append(el("svg:title", {}, point.title));
      plot.append(dot);
    }
    return plot;
  }

  /** A cumulative share: pairs [value, share]. */
  function steps(name, pairs, xName) {
    const width = 460, height = 200, left = 46, right = 14, top = 12, bottom = 34;
    const most = Math.max(1, ...pairs.map(([value]) => value)), x = (value) => left + (value / most) * (width - left - right), y = (share) => height - bottom - share * (height - top - bottom);
    const plot = frame(`${name}: share by ${xName}`, width, height);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) plot.append(rule(left, y(share), width - right, y(share)), text(left - 6, y(share) + 4, `${share * 100} %`, "end"));
    for (const tick of ticks(0, most)) plot.append(text(x(tick), height - bottom + 16, Units.number(tick)));
    plot.append(text((left + width - right) / 2, height - 3, xName, "middle", "faint"));
    let path = "";
    let before = 0;
    for (const [value, share] of pairs) { path += path ? `L${x(value)},${y(before)}L${x(value)},${y(share)}` : `M${x(value)},${y(0)}L${x(value)},${y(share)}`; before = share; }
    plot.append(el("svg:path", { d: `${path}L${x(most)},${y(before)}`, class: "curve" }));
    return plot;
  }

  /** Rows of {name, ours, low, high, measured, paper}: ours with its range, beside what was measured and published. */
  function whiskers(rows) {
    const box = el("div", { class: "whiskers" });
    for (const row of rows) {
      const values = ["ours", "low", "high", "measured", "paper"].map((key) => row[key]).filter((value) => typeof value === "number");
      if (!values.length) continue;
      const width = 460, height = 40, [low, high] = range([...values, ...(Math.min(...values) >= 0 ? [0] : [])]);
      const x = (value) => 12 + ((value - low) / (high - low)) * (width - 24);
      const plot = frame(`${row.name}: ${["ours", "measured", "paper"].filter((key) => typeof row[key] === "number").map((key) => `${key} ${Units.number(row[key])}`).join(", ")}`, width, height);
      plot.append(rule(12, 16, width - 12, 16));
      for (const tick of ticks(low, high)) plot.append(rule(x(tick), 12, x(tick), 20), text(Math.min(Math.max(x(tick), 14), width - 14), 36, Units.number(tick), "middle", "faint"));
      if (typeof row.low === "number" && typeof row.high === "number") plot.append(rule(x(row.low), 16, x(row.high), 16, "whisker"));
      for (const [key, shape] of [["paper", "square"], ["measured", "diamond"], ["ours", "dot"]]) {
        if (typeof row[key] !== "number") continue;
        const at = x(row[key]), marks = { square: `M${at - 5},11h10v10h-10z`, diamond: `M${at},9l7,7l-7,7l-7,-7z`, dot: `M${at - 5},16a5,5 0 1,0 10,0a5,5 0 1,0 -10,0` };
        plot.append(el("svg:path", { d: marks[shape], class: `mark ${key}` }, el("svg:title", {}, `${key}: ${Units.number(row[key])}`)));
      }
      box.append(el("div", { class: "whisker-row" }, el("span", {}, row.name), plot));
    }
    return box;
  }

  /** A curve of the last values of something, on a scale from `low` to `high`. */
  function spark(label, values, low, high) {
    const width = 120, height = 28, plot = frame(`${label}: now ${values.length ? Units.number(values[values.length - 1]) : "nothing"}`, width, height);
    plot.setAttribute("class", "spark");
    plot.setAttribute("preserveAspectRatio", "none");
    const top = Math.max(high, ...values), x = (k) => (values.length < 2 ? width : (k / (values.length - 1)) * width), y = (value) => height - 2 - ((value - low) / (top - low || 1)) * (height - 4);
    if (values.length) {
      const points = values.map((value, k) => `${x(k).toFixed(1)},${y(value).toFixed(1)}`);
      plot.append(el("svg:path", { d: `M0,${height}L${points.join("L")}L${width},${height}Z`, class: "area" }), el("svg:path", { d: `M${points.join("L")}`, class: "curve" }));
    }
    return plot;
  }

  return { dots, steps, whiskers, spark };
})();
