"use strict";
// The page of a running session: hardware, time line, pods with their reasons, curves, and what one may do to it.

class LivePage {
  static POLL_MS = 2000;

  constructor() {
    const { el } = Units;
    this.api = new SessionApi();
    this.theme = new ThemeSwitch(() => this.picture?.restyle());
    this.state = el("span", { class: "state", role: "status" }, "connecting");
    this.about = el("span", { class: "about faint" });
    this.main = el("main", { id: "main", class: "session" });
    document.body.replaceChildren(el("a", { class: "skip", href: "#main" }, "skip to the content"),
      el("header", { class: "top" }, el("nav", {}, el("span", { class: "brand" }, "mews"), this.about), this.state, this.theme.button), this.main);
    this.restyle = () => this.picture?.restyle();
    this.begin();
  }

  async begin() {
    if (!this.api.token) { this.askToken(""); return; }
    try {
      this.session = await this.api.json("GET", "/v1/session");
    } catch (error) {
      if (error.status === 401 || error.status === 403) this.askToken(error.message);
      else { this.connection("lost", `no session: ${error.message}`); setTimeout(() => this.begin(), 3000); }
      return;
    }
    this.build();
    await this.load();
    this.poll();
    this.follow();
  }

  /** Whoever came without a token, or with an old one, gives one. */
  askToken(complaint) {
    const { el } = Units, input = el("input", { type: "text", autocomplete: "off", spellcheck: "false", "aria-label": "token" });
    this.connection("lost", "no token");
    this.main.replaceChildren(el("form", { class: "ask card", onsubmit: (event) => { event.preventDefault(); this.api.keep(input.value); this.begin(); } },
      el("h1", {}, "This session requires a token"), el("p", {}, "`mews up --web` prints an address that includes it; ready.json holds it."), complaint ? el("p", { class: "complaint" }, complaint) : "", el("div", { class: "bar" }, input, el("button", { type: "submit", class: "primary" }, "Open"))));
    input.focus();
  }

  build() {
    const { session } = this;
    this.about.textContent = [session.name, `${session.cluster} cluster`, session.speed !== 1 ? `speed ${session.speed}` : "", (session.systems || []).join(", ")].filter(Boolean).join(" · ");
    document.title = `mews · ${session.name}`;
    this.model = new JournalModel();
    this.picture = new Picture(this.model, { follow: true, explain: (pod, place) => this.explain(pod, place) });
    this.topology = new Topology(this.model, (lane) => { this.picture.timeline.select({ lane, segment: lane.last() }, { reveal: true }); });
    this.pods = new PodTable((pod) => this.picture.timeline.select({ lane: pod.lane, segment: pod.lane.last() }, { reveal: true }));
    this.actions = new ActionPanel(this.session, (step) => this.perform(step));
    this.curves = new CurveTable();
    this.picture.element.prepend(Units.el("h2", {}, "Timeline"));
    this.main.replaceChildren(this.topology.element, this.picture.element, Units.el("div", { class: "side" }, this.pods.element, this.actions.element, this.curves.element));
    window.mewsPicture = this.picture;
  }

  /** All that the session remembers; where it forgot its first table, the hardware says where things are. */
  async load() {
    const { next, lines } = await this.api.json("GET", "/v1/journal?since=0");
    this.next = next;
    const first = lines.length ? lines[0].t : 0;
    const begun = new Set(lines.filter((line) => line.layer === "chassis" && line.event === "table").map((line) => line.actor));
    let seed = [];
    try {
      const { table } = await this.api.json("GET", "/v1/hardware");
      seed = Object.entries(table).filter(([name]) => !begun.has(`chassis/${name}`)).map(([name, rows]) => ({
        number: -1, t: first, layer: "chassis", actor: `chassis/${name}`, event: "table", devices: rows, ports: Object.fromEntries(Object.values(rows).filter((row) => row.port).map((row) => [row.port, row.host])) }));
    } catch { /* a chassis that is down has no table to show */ }
    this.take([...seed, ...lines]);
    this.flush();
    performance.mark("mews-ready");
  }

  async follow() {
    for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
      try {
        this.connection("live", "live");
        await this.api.follow(this.next, (lines) => { wait = 500; this.take(lines); });
      } catch (error) {
        if (error.status === 401) { this.askToken(error.message); return; }
      }
      this.connection("lost", "not connected, tries again");
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  connection(kind, text) {
    this.state.className = `state ${kind}`;
    this.state.textContent = text;
  }

  /** Lines that came; they are shown ten times a second at the most. */
  take(lines) {
    (this.waiting ??= []).push(...lines);
    for (const line of lines) if (line.number >= this.next) this.next = line.number + 1;
    this.timer ??= setTimeout(() => this.flush(), 100);
  }

  flush() {
    clearTimeout(this.timer);
    this.timer = null;
    const lines = this.waiting ?? [];
    this.waiting = [];
    if (!lines.length) return;
    const began = performance.now();
    this.picture.append(lines);
    this.topology.refresh();
    this.pods.refresh(this.model);
    this.actions.refresh(this.model);
    this.spent = performance.now() - began;
  }

  async poll() {
    for (;;) {
      if (!document.hidden) {
        try {
          const [session, hardware, { faults }] = await Promise.all(["session", "hardware", "faults"].map((part) => this.api.json("GET", `/v1/${part}`)));
          for (const one of faults) { const known = this.model.faults.get(`${one.owner} ${one.fault}`); if (known) known.ended ||= one.ended; }
          this.actions.refresh(this.model);
          if (typeof session.t === "number" && session.t > this.model.end) { this.model.end = session.t; this.picture.timeline.grown(); }
          if (String(session.components) !== String(this.session.components)) this.actions.update((this.session = session));
          this.curves.take(this.model, hardware.telemetry || {});
        } catch { /* the stream says whether there is a connection */ }
      }
      await new Promise((done) => setTimeout(done, LivePage.POLL_MS));
    }
  }

  async perform(step) {
    const answer = await this.api.json("POST", "/v1/steps", step);
    if (answer.verdict !== "passed") throw new Error(answer.reason || "failed");
  }

  async explain(pod, place) {
    const { el } = Units;
    place.replaceChildren("…");
    try {
      const { sentences } = await this.api.json("GET", `/v1/explain/pod/${pod.split("/").map(encodeURIComponent).join("/")}`);
      place.replaceChildren(el("ul", {}, sentences.map((sentence) => el("li", {}, sentence))));
    } catch (error) { place.replaceChildren(el("p", { class: "complaint" }, error.message)); }
  }
}

/** Pods that there are, those that wait first, each with why. */
class PodTable {
  static MOST = 200;
  static ORDER = { failed: 0, pending: 1, starting: 2, terminating: 3, running: 4, succeeded: 5 };

  constructor(onselect) {
    const { el } = Units;
    this.onselect = onselect;
    this.body = el("div", { class: "podrows" });
    this.counted = el("span", { class: "faint" });
    this.search = el("input", { type: "search", placeholder: "Filter pods…", "aria-label": "filter pods", oninput: () => this.model && this.draw() });
    this.element = el("section", { class: "pods", "aria-label": "pods" }, el("h2", {}, "Pods ", this.counted), this.search, this.body);
  }

  /** Its devices, and its claims. */
  static has(pod) {
    const gpus = pod.gpus.size ? [Units.count([...pod.gpus.values()].filter((gpu) => gpu.holders.has(pod.uid)).length, "GPU")] : [];
    return [...gpus, ...[...pod.claims.keys()].map((name) => `claim ${name.replace(/^default\//, "")}`)].join(" · ");
  }

  refresh(model) {
    this.model = model;
    this.timer ??= setTimeout(() => { this.timer = null; this.draw(); }, 250);
  }

  draw() {
    const { el } = Units, words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pods = [...this.model.pods.values()].filter((pod) => !pod.gone).map((pod) => ({ pod, segment: pod.lane.last() })).filter(({ segment }) => segment);
    const tally = new Map();
    for (const { segment } of pods) tally.set(segment.state, (tally.get(segment.state) ?? 0) + 1);
    this.counted.textContent = pods.length ? [...tally].map(([state, number]) => `${number} ${state}`).join(" · ") : "none yet";
    const shown = pods.filter(({ pod, segment }) => words.every((word) => `${pod.name} ${segment.label} ${pod.node}`.toLowerCase().includes(word)));
    shown.sort((a, b) => (PodTable.ORDER[a.segment.state] ?? 9) - (PodTable.ORDER[b.segment.state] ?? 9) || b.pod.created - a.pod.created);
    const rows = shown.slice(0, PodTable.MOST).map(({ pod, segment }) => {
      const reason = segment.state === "pending" || segment.state === "failed" ? segment.label : pod.node ? `${segment.state === "running" ? "" : `${segment.state} `}on ${pod.node}` : segment.label;
      const row = el("button", { type: "button", class: `podrow ${segment.state}`, onclick: () => this.onselect(pod) },
        el("i", { "aria-hidden": "true" }), el("b", {}, pod.name.replace(/^default\//, "")), el("span", { class: "gpus" }, PodTable.has(pod)), el("span", { class: "reason" }, reason));
      const number = this.model.hosts.get(pod.node);
      if (number !== undefined) row.style.setProperty("--own", `var(--host-${number % 8})`);
      return row;
    });
    if (shown.length > rows.length) rows.push(el("p", { class: "faint" }, `and ${shown.length - rows.length} more`));
    if (!pods.length) rows.push(el("p", { class: "faint" }, "Pods appear here after kubectl apply."));
    this.body.replaceChildren(...rows);
  }
}

/** Faults to add and clear, components to kill and start. */
class ActionPanel {
  constructor(session, perform) {
    const { el } = Units;
    this.perform = perform;
    this.target = el("select", { "aria-label": "where", onchange: () => this._kinds() });
    this.kind = el("select", { "aria-label": "kind of fault" });
    this.more = el("input", { type: "text", placeholder: "more fields: device=000500 count=1", "aria-label": "more fields of the fault, name=value", spellcheck: "false", autocomplete: "off" });
    this.component = el("select", { "aria-label": "component" });
    this.said = el("p", { class: "said", role: "status" });
    this.now = el("ul", { class: "faults" });
    const act = (text, step, kind = "") => el("button", { type: "button", class: kind, onclick: () => this.act(step) }, text);
    this.element = el("section", { class: "actions", "aria-label": "faults and components" }, el("h2", {}, "Break it"),
      el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); this.act(() => this._fault()); } }, this.target, this.kind, this.more, el("button", { type: "submit", class: "primary" }, "Add fault")),
      this.now,
      el("div", { class: "bar" }, this.component, act("Kill", () => ({ kill: this.component.value })), act("Start", () => ({ start: this.component.value })), act("Restart", () => ({ restart: this.component.value }))),
      this.said);
    this.update(session);
  }

  update(session) {
    const { el } = Units;
    this.session = session;
    const option = (value, text = value) => el("option", { value }, text), chosen = this.target.value;
    this.target.replaceChildren(...(session.chassis || []).map((name) => option(`chassis/${name}`, `chassis ${name}`)), ...(session.hosts || []).map((name) => option(`host/${name}`, `host ${name}`)));
    if (chosen) this.target.value = chosen;
    const component = this.component.value;
    this.component.replaceChildren(...(session.components || []).map((name) => option(name)));
    if (component) this.component.value = component;
    this._kinds();
  }

  _kinds() {
    const [side] = this.target.value.split("/"), kept = this.kind.value;
    this.kind.replaceChildren(...((this.session.faults || {})[side] || []).map((kind) => Units.el("option", { value: kind }, kind)));
    if ([...this.kind.options].some((one) => one.value === kept)) this.kind.value = kept;
  }

  _fault() {
    const [side, name] = this.target.value.split("/"), add = { kind: this.kind.value };
    for (const part of this.more.value.match(/[^\s=]+=("[^"]*"|\S*)/g) || []) {
      const at = part.indexOf("="), text = part.slice(at + 1);
      add[part.slice(0, at)] = text.startsWith('"') ? text.slice(1, -1) : /^(true|false)$/.test(text) ? text === "true" : /^-?([1-9]\d*|0)(\.\d+)?$/.test(text) ? Number(text) : text;
    }
    return { fault: { [side]: name, add } };
  }

  async act(make) {
    const step = make();
    this.said.className = "said";
    this.said.textContent = "…";
    try {
      await this.perform(step);
      this.said.textContent = `done: ${Units.brief(step)}`;
    } catch (error) {
      this.said.className = "said complaint";
      this.said.textContent = error.message;
    }
  }

  /** Faults that were added and not cleared; the session says which of them have ended. */
  refresh(model) {
    const { el } = Units, now = [...model.faults.values()].filter((fault) => fault.cleared === null), key = now.map((fault) => `${fault.key} ${fault.ended}`).join();
    if (key === this.key) return;
    this.key = key;
    this.now.replaceChildren(...now.map((fault) => el("li", { class: fault.ended ? "faint" : "" }, `${fault.kind} on ${fault.actor} since ${Units.time(fault.added, 0.1)}${fault.ended ? ", ended" : ""}`)),
      ...(now.length ? [el("li", {}, el("button", { type: "button", onclick: () => this.act(() => ({ fault: { clear: "all" } })) }, "Clear all faults"))] : []));
  }
}

/** Temperature, power and load of each GPU over the last minutes. */
class CurveTable {
  static KEPT = 90;
  static SHOWN = 16;
  static CURVES = [["temperature_c", "temperature", "°C", 20, 90, 1], ["power_mw", "power", "W", 0, 300, 0.001], ["utilization_percent", "utilisation", "%", 0, 100, 1]];

  constructor() {
    const { el } = Units;
    this.kept = new Map();
    this.all = false;
    this.body = el("tbody");
    this.more = el("button", { type: "button", hidden: true, onclick: () => { this.all = !this.all; this.draw(); } });
    this.element = el("section", { class: "curves", "aria-label": "telemetry" }, el("h2", {}, "Telemetry"),
      el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "GPU"), CurveTable.CURVES.map(([, name]) => el("th", { scope: "col" }, name)))), this.body)), this.more);
  }

  take(model, telemetry) {
    for (const [chassis, devices] of Object.entries(telemetry)) {
      for (const [device, given] of Object.entries(devices || {})) {
        const reading = given.reading ?? given, gpu = model.byUuid.get(reading.uuid), name = gpu ? gpu.gpuid : `${chassis}/${device}`;
        if (!this.kept.has(name)) this.kept.set(name, { gpu, values: CurveTable.CURVES.map(() => []) });
        const kept = this.kept.get(name);
        CurveTable.CURVES.forEach(([field, , , , , scale], at) => {
          if (typeof reading[field] !== "number") return;
          kept.values[at].push(reading[field] * scale);
          if (kept.values[at].length > CurveTable.KEPT) kept.values[at].shift();
        });
      }
    }
    this.draw();
  }

  draw() {
    const { el } = Units, names = [...this.kept.keys()].sort(), shown = this.all ? names : names.slice(0, CurveTable.SHOWN);
    this.more.hidden = names.length <= CurveTable.SHOWN;
    this.more.textContent = this.all ? `show ${CurveTable.SHOWN}` : `show all ${names.length}`;
    this.body.replaceChildren(...shown.map((name) => {
      const { values } = this.kept.get(name);
      return el("tr", {}, el("th", { scope: "row" }, name), CurveTable.CURVES.map(([, what, unit, low, high], at) => {
        const last = values[at][values[at].length - 1];
        return el("td", {}, el("div", { class: "curve-cell" }, Plots.spark(`${what} of ${name}`, values[at], low, high), el("span", {}, last === undefined ? "" : `${Math.round(last)} ${unit}`)));
      }));
    }));
  }
}
