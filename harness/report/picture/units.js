"use strict";
// What all parts of the picture share: text of times and numbers, and elements whose text is never markup.

const Units = (() => {
  const STEPS = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
  ];

  /** The smallest sensible distance of two ticks (seconds) that is at least `least`. */
  function tickStep(least) {
    for (const step of STEPS) if (step >= least) return step;
    return 604800 * Math.ceil(least / 604800);
  }

  /** Decimals that tell two times apart which lie `step` seconds from each other. */
  function decimalsFor(step) {
    return step >= 1 ? 0 : Math.min(6, Math.ceil(-Math.log10(step) - 1e-9));
  }

  /** A time from the start as people read it: `12.5 s`, `2 min 05 s`, `1 h 02 min`. `step` says how exactly. */
  function time(seconds, step = 0.001) {
    const negative = seconds < 0 ? "−" : "";
    let rest = Math.abs(seconds);
    const decimals = decimalsFor(step);
    if (rest < 60 - 10 ** -decimals / 2) {
      if (step < 0.001 && rest < 1) return `${negative}${trim(rest * 1e6, 0)} µs`;
      return `${negative}${rest.toFixed(decimals)} s`;
    }
    rest = Number(rest.toFixed(decimals));
    const hours = Math.floor(rest / 3600), minutes = Math.floor((rest % 3600) / 60), secs = rest - 3600 * hours - 60 * minutes;
    const parts = [];
    if (hours) parts.push(`${hours} h`);
    if (minutes || (hours && (secs || step < 60))) parts.push(`${String(minutes).padStart(hours ? 2 : 1, "0")} min`);
    if (secs || step < 60) parts.push(`${secs.toFixed(decimals).padStart(decimals ? decimals + 3 : 2, "0")} s`);
    return negative + parts.join(" ");
  }

  /** A span of time with three significant digits. */
  function span(seconds) {
    const s = Math.abs(seconds);
    if (s === 0) return "0 s";
    if (s < 0.001) return `${trim(s * 1e6, 0)} µs`;
    if (s < 1) return `${trim(s * 1e3, s < 0.1 ? 1 : 0)} ms`;
    if (s < 60) return `${trim(s, s < 10 ? 2 : 1)} s`;
    return time(s, 1).replace(/ 00 s$/, "").replace(/ 00 min$/, "");
  }

  /** A number for people; integers as they are, others with four significant digits. */
  function number(value) {
    if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
    if (Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return trim(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
  }

  const OF_NAMES = [
    [/_per_s$/, (value) => `${number(value)}/s`], [/_(s|seconds)$/, span], [/_ms$/, (value) => span(value / 1e3)],
    [/_mw$/, (value) => `${number(value / 1e3)} W`], [/_w$/, (value) => `${number(value)} W`], [/_c$/, (value) => `${number(value)} °C`],
    [/_percent$/, (value) => `${number(value)} %`], [/_utilisation$/, (value) => `${number(value * 100)} %`],
    [/_mib$/, (value) => memory(value * 2 ** 20)], [/_bytes$/, memory],
  ];
  const PREFIXES = ["", "Ki", "Mi", "Gi", "Ti"];

  /** Bytes in the largest unit of which there is at least one: `80 GiB`. */
  function memory(bytes) {
    const at = bytes < 1 ? 0 : Math.min(PREFIXES.length - 1, Math.floor(Math.log2(bytes) / 10));
    return `${number(bytes / 1024 ** at)} ${PREFIXES[at]}B`;
  }

  /** A value in the reader's unit, which the end of its name gives: `power_mw` in W, `memory_mib` in GiB, `wait_s` in s. */
  function quantity(name, value) {
    const known = typeof value === "number" && Number.isFinite(value) && OF_NAMES.find(([end]) => end.test(name));
    return known ? known[1](value) : brief(value);
  }

  /** A name for readers: its unit stands with the value. */
  function label(name) {
    const unit = name.endsWith("_utilisation") ? null : OF_NAMES.find(([end]) => end.test(name));
    return (unit ? name.replace(unit[0], "") : name).replaceAll("_", " ").replace(/\bgpu(s?)\b/g, "GPU$1").replace(/\b(cpu|jct)\b/g, (word) => word.toUpperCase());
  }

  function trim(value, decimals) {
    const text = value.toFixed(decimals);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }

  /** `1 pod`, `3 pods`. */
  function count(number, noun, plural = `${noun}s`) {
    return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
  }

  const HIDDEN = new Set(["t", "layer", "actor", "event", "uid", "uuid", "device", "number", "operation", "port", "old_port"]);

  /** The fields of a journal line on one line of text, without what only programs need. */
  function fields(line, limit = 400) {
    const parts = [];
    for (const [name, value] of Object.entries(line)) {
      if (HIDDEN.has(name) || value === null || value === "") continue;
      parts.push(`${name}=${quantity(name, value)}`);
    }
    const text = parts.join("  ");
    return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
  }

  function brief(value) {
    if (Array.isArray(value)) return `[${value.map(brief).join(", ")}]`;
    if (value && typeof value === "object") return `{${Object.entries(value).map(([k, v]) => `${k}: ${quantity(k, v)}`).join(", ")}}`;
    if (typeof value === "number") return number(value);
    const [, size, prefix] = /^(\d+)([KMGT]i)$/.exec(value) ?? [];
    return size ? memory(size * 1024 ** PREFIXES.indexOf(prefix)) : String(value);
  }

  /** An element. Children are elements or text; text is never parsed. `on…` are listeners, `null` attributes are left out. */
  function el(name, attributes = {}, ...children) {
    const made = name.startsWith("svg:")
      ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key === "text") made.textContent = value;
      else made.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      made.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return made;
  }

  return { tickStep, time, span, number, quantity, label, count, fields, brief, el };
})();
