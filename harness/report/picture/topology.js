"use strict";
// Chassis, ports, hosts and the GPUs on them, each GPU a tile that travels when the table is edited.

class Topology {
  /** `onselect` is called with a GPU's lane. */
  constructor(model, onselect) {
    const { el } = Units;
    this.model = model;
    this.onselect = onselect;
    this.tiles = new Map();
    this.boxes = new Map();
    this.wires = el("svg:svg", { class: "wires", "aria-hidden": "true" });
    this.floor = el("div", { class: "floor" }, this.wires);
    this.element = el("section", { class: "topology", "aria-label": "chassis, hosts and GPUs" }, el("h2", {}, "Hardware"), this.floor);
    new ResizeObserver(() => this.refresh()).observe(this.floor);
  }

  refresh() {
    this._frame ??= requestAnimationFrame(() => { this._frame = null; this.draw(); });
  }

  /** Where a GPU is shown: on the host it is on, or goes to; else in its chassis. */
  static place(gpu) {
    const host = gpu.doing === "attaching" ? gpu.goal : gpu.host;
    return host ? `host/${host}` : `chassis/${gpu.chassis || "?"}`;
  }

  draw() {
    const width = this.floor.clientWidth, gpus = [...this.model.gpus.values()].filter((gpu) => !gpu.removed);
    if (!width) return;
    gpus.sort((a, b) => (a.gpuid < b.gpuid ? -1 : 1));
    const size = gpus.length <= 28 ? [96, 42] : gpus.length <= 96 ? [66, 30] : [24, 18], gap = gpus.length > 96 ? 3 : 6;
    this.floor.dataset.size = gpus.length <= 28 ? "large" : gpus.length <= 96 ? "middle" : "small";
    const content = new Map();
    for (const name of this.model.chassis.keys()) content.set(`chassis/${name}`, []);
    const hosts = new Set([...this.model.chassis.values()].flatMap((one) => Object.values(one.ports)));
    for (const name of this.model.nodes.keys()) hosts.add(name);
    for (const name of [...hosts].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) content.set(`host/${name}`, []);
    for (const gpu of gpus) {
      const place = Topology.place(gpu);
      if (!content.has(place)) content.set(place, []);
      content.get(place).push(gpu);
    }
    const height = this._boxes(content, width, size, gap);
    this._tiles(content, size, gap, gpus);
    this._wires(content, width, height);
    this.floor.style.height = `${height}px`;
  }

  _boxes(content, width, [wide, tall], gap) {
    const chassis = [...content].filter(([name]) => name.startsWith("chassis/")), hosts = [...content].filter(([name]) => name.startsWith("host/"));
    const head = 30, pad = 10, seen = new Set();
    let y = 0;
    const row = (entries, least, between) => {
      const perRow = Math.max(1, Math.min(entries.length, Math.floor((width + 12) / (least + 12)))), each = (width - 12 * (perRow - 1)) / perRow;
      const columns = Math.max(1, Math.floor((each - 2 * pad + gap) / (wide + gap)));
      for (let first = 0; first < entries.length; first += perRow) {
        const slice = entries.slice(first, first + perRow), rows = Math.max(0, ...slice.map(([, gpus]) => Math.ceil(gpus.length / columns)));
        const boxTall = head + (rows ? rows * (tall + gap) - gap + pad : 4);
        slice.forEach(([name, gpus], at) => {
          const box = this._box(name, gpus);
          Object.assign(box, { x: at * (each + 12), y, wide: each, tall: boxTall, columns, pad, head, row: first / perRow });
          box.element.style.transform = `translate(${box.x}px, ${y}px)`;
          box.element.style.width = `${each}px`;
          box.element.style.height = `${boxTall}px`;
          seen.add(name);
        });
        y += boxTall + 12;
      }
      y += between;
    };
    if (chassis.length) row(chassis, Math.min(width, 460), hosts.length ? 26 : 0);
    if (hosts.length) row(hosts, Math.min(width, Math.max(2 * (wide + gap) + 2 * pad, 150)), 0);
    for (const [name, box] of this.boxes) if (!seen.has(name)) { box.element.remove(); this.boxes.delete(name); }
    return Math.max(y - 12, 60);
  }

  _box(name, gpus) {
    const { el } = Units, [kind, own] = [name.slice(0, name.indexOf("/")), name.slice(name.indexOf("/") + 1)];
    if (!this.boxes.has(name)) {
      const title = el("b", {}, own), about = el("span", { class: "faint" }), element = el("div", { class: `box ${kind}` }, el("div", { class: "box-head" }, title, about));
      this.floor.append(element);
      this.boxes.set(name, { element, about, title });
    }
    const box = this.boxes.get(name);
    let about, bad = false;
    if (kind === "chassis") {
      const chassis = this.model.chassis.get(own), all = [...this.model.gpus.values()].filter((gpu) => gpu.chassis === own && !gpu.removed).length;
      about = `${chassis?.pool ? `${chassis.pool} · ` : ""}${gpus.length} of ${all} free${chassis && !chassis.up ? " · does not answer" : ""}`;
      bad = Boolean(chassis && !chassis.up);
      box.title.textContent = `chassis ${own}`;
    } else {
      const node = this.model.nodes.get(own), ports = [...this.model.chassis].flatMap(([chassis, one]) => Object.entries(one.ports).filter(([, host]) => host === own).map(([port]) => `${chassis}:${port}`));
      bad = node ? node.ready === false : false;
      about = `${ports.length ? `port ${ports.join(" ")} · ` : ""}${Units.count(gpus.length, "GPU")}${bad ? " · not ready" : node?.unschedulable ? " · unschedulable" : ""}`;
      const number = this.model.hosts.get(own);
      box.element.style.setProperty("--own", number === undefined ? "var(--neutral)" : `var(--host-${number % 8})`);
    }
    box.about.textContent = about;
    box.element.classList.toggle("bad", bad);
    return box;
  }

  _tiles(content, [wide, tall], gap, gpus) {
    const { el } = Units, seen = new Set();
    for (const [name, inside] of content) {
      const box = this.boxes.get(name);
      if (!box) continue;
      inside.forEach((gpu, at) => {
        seen.add(gpu.gpuid);
        let tile = this.tiles.get(gpu.gpuid);
        if (!tile) {
          const id = el("span", { class: "id" }), pod = el("span", { class: "pod" });
          const element = el("button", { type: "button", class: "gpu", onclick: () => this.onselect(gpu.lane) }, id, pod);
          this.tiles.set(gpu.gpuid, (tile = { element, id, pod, text: "" }));
          this.floor.append(element);
        }
        const x = box.x + box.pad + (at % box.columns) * (wide + gap), y = box.y + box.head + Math.floor(at / box.columns) * (tall + gap);
        const { style } = tile.element;
        style.transform = `translate(${x}px, ${y}px)`;
        style.width = `${wide}px`;
        style.height = `${tall}px`;
        this._dress(tile, gpu);
      });
    }
    for (const [gpuid, tile] of this.tiles) if (!seen.has(gpuid)) { tile.element.remove(); this.tiles.delete(gpuid); }
  }

  _dress(tile, gpu) {
    const holders = [...gpu.holders.values()].map((hold) => hold.pod.replace(/^default\//, "")), state = JournalModel.stateOf(gpu);
    const host = gpu.doing === "attaching" ? gpu.goal : gpu.host, number = host === null ? undefined : this.model.hosts.get(host);
    const held = holders.length && state === "visible" ? "held" : state;
    const text = `${held} ${holders.join()} ${host}`;
    if (tile.text === text) return;
    tile.text = text;
    tile.element.className = `gpu ${held}`;
    tile.element.style.setProperty("--own", number === undefined ? "var(--neutral)" : `var(--host-${number % 8})`);
    tile.id.textContent = gpu.gpuid;
    const words = { free: "free", attached: "comes up", visible: "idle", attaching: "attaching", detaching: "detaching", draining: "draining", lost: "lost", stuck: "stuck" };
    tile.pod.textContent = holders.length ? (holders.length > 1 ? `${holders.length} pods` : holders[0]) : words[state] || state;
    const label = `${gpu.kind} ${gpu.gpuid}: ${held === "held" ? `held by ${holders.join(", ")}` : words[state] || state}${host ? ` on ${host}` : ""}`;
    tile.element.setAttribute("aria-label", label);
    tile.element.title = label;
  }

  /** A wire from each chassis to the hosts on its ports, where these stand in one row below it. */
  _wires(content, width, height) {
    const { el } = Units;
    this.wires.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.wires.style.width = `${width}px`;
    this.wires.style.height = `${height}px`;
    const made = [];
    const hostRows = new Set([...this.boxes].filter(([name]) => name.startsWith("host/")).map(([, box]) => box.row));
    if (hostRows.size === 1) {
      let shift = 0;
      for (const [name, chassis] of this.model.chassis) {
        const from = this.boxes.get(`chassis/${name}`), ports = Object.values(chassis.ports);
        ports.forEach((host, at) => {
          const to = this.boxes.get(`host/${host}`);
          if (!from || !to) return;
          const x1 = from.x + (from.wide * (at + 1)) / (ports.length + 1), y1 = from.y + from.tall, x2 = to.x + to.wide / 2 + shift, y2 = to.y, middle = (y1 + y2) / 2;
          const number = this.model.hosts.get(host);
          const wire = el("svg:path", { d: `M${x1},${y1}C${x1},${middle} ${x2},${middle} ${x2},${y2}` });
          wire.style.stroke = `var(--host-${(number ?? 0) % 8})`;
          made.push(wire);
        });
        shift += 14;
      }
    }
    this.wires.replaceChildren(...made);
  }
}
