"use strict";
// A journal as lanes: a pure function of its lines, which may come bit by bit. Nothing here knows of a page.

class JournalModel {
  constructor() {
    this.lines = [];
    this.lanes = new Map();
    this.start = 0;
    this.end = 0;
    this.version = 0;
    this.hosts = new Map();     // name -> number of its colour
    this.gpus = new Map();      // gpuid -> what is known of it now
    this.byUuid = new Map();
    this.pods = new Map();      // uid -> {lane, name, …}
    this.podNames = new Map();  // namespace/name -> the latest
    this.claims = new ClaimLanes(this);
    this.nodes = new Map();
    this.chassis = new Map();   // name -> {ports: {port: host}, up}
    this.faults = new Map();
    this.steps = [];
    this.fired = [];            // {line, t, excuses, gpuid}
    this.violations = [];       // {line, first}
    this.counts = Object.fromEntries(LAYERS.map((layer) => [layer, 0]));
  }

  /** Take more lines, oldest first. Lines are those of the journal's JSON, `number` included where it is known. */
  append(lines) {
    for (const line of lines) {
      const index = this.lines.length;
      if (line.number === undefined) line.number = index;
      if (index === 0) { this.start = Math.min(0, line.t); this.firstNumber = line.number; }
      this.lines.push(line);
      if (line.t > this.end) this.end = line.t;
      if (this.counts[line.layer] !== undefined) this.counts[line.layer] += 1;
      const handle = this[`_${line.layer}`];
      if (handle) handle.call(this, line, index);
    }
    if (lines.length) this.version += 1;
  }

  /** The index of the line of that number, or -1. */
  indexOf(number) {
    if (number === null || number === undefined) return -1;
    const guess = number - this.firstNumber;
    if (this.lines[guess]?.number === number) return guess;
    return this.lines.findIndex((line) => line.number === number);
  }

  /** All lanes of a group in their order. */
  group(name) {
    const lanes = [...this.lanes.values()].filter((lane) => lane.group === name);
    return lanes.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
  }

  /** Those that a line is about. */
  lanesOf(index) {
    const found = [];
    for (const lane of this.lanes.values()) if (lane.marks.some((mark) => mark.line === index)) found.push(lane);
    return found;
  }

  lane(group, key, label = key, order = label) {
    const id = `${group}:${key}`;
    let lane = this.lanes.get(id);
    if (!lane) this.lanes.set(id, (lane = new Lane(group, key, label, order)));
    return lane;
  }

  mark(lane, line, index, tone = "plain") {
    const last = lane.marks[lane.marks.length - 1];
    if (!last || last.line !== index) lane.marks.push({ t: line.t, line: index, tone });
  }

  host(name) {
    if (name && !this.hosts.has(name)) this.hosts.set(name, this.hosts.size);
    return name;
  }

  // GPUs ---------------------------------------------------------------------------------------------------------

  gpu(gpuid, fields, chassis = null) {
    let gpu = this.gpus.get(gpuid);
    if (!gpu) {
      const lane = this.lane("gpus", gpuid, gpuid, gpuid);
      gpu = { gpuid, lane, chassis, uuid: null, kind: "GPU", host: null, goal: null, doing: null, layer: 0, lost: false, draining: false,
        stuck: "", linked: true, removed: false, minor: null, holders: new Map() };
      this.gpus.set(gpuid, gpu);
    }
    if (chassis) gpu.chassis = chassis;
    if (fields.kind && fields.bdf) gpu.kind = fields.kind;
    if (fields.minor !== undefined && fields.minor !== null) gpu.minor = fields.minor;
    if (fields.uuid && fields.uuid !== gpu.uuid) { gpu.uuid = fields.uuid; this.byUuid.set(fields.uuid, gpu); }
    return gpu;
  }

  /** What is true of a GPU now, in one word. */
  static stateOf(gpu) {
    if (gpu.removed) return "removed";
    if (gpu.doing) return gpu.doing;
    if (gpu.lost) return "lost";
    if (!gpu.host) return "free";
    if (gpu.stuck) return "stuck";
    if (!gpu.linked) return "lost";
    if (gpu.draining) return "draining";
    return gpu.layer >= 4 ? "visible" : "attached";
  }

  _turnGpu(gpu, t, index) {
    const state = JournalModel.stateOf(gpu);
    const host = this.host(gpu.doing === "attaching" ? gpu.goal : gpu.host);
    const label = { attaching: `attaching to ${host}`, detaching: `detaching from ${host}`, free: "free", removed: "not in its slot",
      lost: `lost on ${host}`, stuck: `${gpu.stuck} does not come up`, draining: `draining on ${host}`, visible: host, attached: host }[state];
    gpu.lane.turn(t, state, { label: label || "", host }, index);
  }

  _hold(gpu, pod, t, index) {
    if (gpu.holders.has(pod.uid)) return;
    const taken = new Set([...gpu.holders.values()].map((hold) => hold.row));
    let row = 0;
    while (taken.has(row)) row += 1;
    gpu.lane.rows = Math.max(gpu.lane.rows, row + 1);
    const hold = { from: t, to: null, pod: pod.name, uid: pod.uid, line: index, row };
    gpu.holders.set(pod.uid, hold);
    gpu.lane.holds.push(hold);
    pod.gpus.set(gpu.gpuid, gpu);
  }

  _release(pod, t) {
    for (const gpu of pod.gpus.values()) {
      const hold = gpu.holders.get(pod.uid);
      if (hold) { hold.to = t; gpu.holders.delete(pod.uid); }
    }
  }

  _chassis(line, index) {
    const name = line.actor.split("/")[1];
    const box = this.lane("nodes", line.actor, line.actor, `0${line.actor}`);
    if (!this.chassis.has(name)) {
      this.chassis.set(name, { ports: {}, up: true, pool: "" });
      box.turn(line.t, "up", { label: "answers" }, index);
    }
    const chassis = this.chassis.get(name);
    if (line.event === "table") {
      chassis.ports = line.ports || {};
      chassis.pool = line.pool || "";
      for (const host of Object.values(chassis.ports)) this.host(host);
      this.mark(box, line, index);
      for (const [device, row] of Object.entries(line.devices || {})) {
        const gpu = this.gpu(row.gpuid || `${name}-${device}`, row, name);
        Object.assign(gpu, { host: row.host || null, doing: null, removed: false, linked: true });
        if (!gpu.host) Object.assign(gpu, { layer: 0, lost: false, draining: false, stuck: "" });
        this._turnGpu(gpu, line.t, index);
        this.mark(gpu.lane, line, index);
      }
      return;
    }
    if (line.event === "down" || line.event === "up") {
      chassis.up = line.event === "up";
      box.turn(line.t, line.event, { label: chassis.up ? "answers" : "does not answer" }, index);
      this.mark(box, line, index, chassis.up ? "good" : "bad");
      return;
    }
    if (!line.gpuid) { this.mark(box, line, index); return; }
    const gpu = this.gpu(line.gpuid, line, name);
    let tone = "plain";
    switch (line.event) {
      case "attach-begun": gpu.doing = "attaching"; gpu.goal = line.host; break;
      case "detach-begun": gpu.doing = "detaching"; break;
      case "attached": case "detached": case "edited":
        gpu.host = line.host || null; gpu.doing = null; gpu.linked = true;
        if (!gpu.host) Object.assign(gpu, { layer: 0, lost: false, draining: false, stuck: "" });
        if (line.event === "edited") tone = "warn";
        break;
      case "operation-finished":
        gpu.doing = null;
        if (line.truth === false || (line.answer !== undefined && String(line.answer) !== String(line.truth))) tone = "warn";
        break;
      case "inserted": gpu.removed = false; break;
      case "removed": gpu.removed = true; gpu.host = null; tone = "warn"; break;
      case "link-down": gpu.linked = false; tone = "bad"; break;
      case "link-up": gpu.linked = true; gpu.lost = false; break;
      default: break;
    }
    this._turnGpu(gpu, line.t, index);
    this.mark(gpu.lane, line, index, tone);
  }

  _host(line, index) {
    const host = this.host(line.actor.split("/")[1]);
    const lane = this._node(host).lane;
    if (line.event === "table") {
      for (const [gpuid, fields] of Object.entries(line.devices || {})) {
        const gpu = this.gpu(gpuid, fields);
        gpu.host = host;
        if (fields.healthy) gpu.layer = 4;
        this._turnGpu(gpu, line.t, index);
        this.mark(gpu.lane, line, index);
      }
      this.mark(lane, line, index);
      return;
    }
    if (!line.gpuid) { this.mark(lane, line, index); return; }
    const gpu = this.gpu(line.gpuid, line);
    const up = ["", "link-up", "function-added", "driver-bound", "nvml-visible"].indexOf(line.event);
    const down = ["link-down", "function-removed", "driver-unbound", "nvml-hidden"].indexOf(line.event);
    let tone = "plain";
    if (up > 0) {
      gpu.layer = up;
      if (up === 4) Object.assign(gpu, { stuck: "", lost: false, draining: false });
    } else if (down >= 0) {
      gpu.layer = down;
      if (down <= 1) gpu.draining = false;
    } else if (line.event === "draining") gpu.draining = line.on !== false;
    else if (line.event === "lost") { gpu.lost = gpu.host === host; tone = "bad"; }
    else if (line.event === "stuck") { gpu.stuck = line.arrow || "a layer"; tone = "bad"; }
    else if (line.event === "nvml-recovered") tone = "good";
    else if (line.event === "xid" || (line.event === "ecc" && line.uncorrected)) tone = "bad";
    else if (line.event === "ecc" || line.event === "waiting") tone = "warn";
    this._turnGpu(gpu, line.t, index);
    this.mark(gpu.lane, line, index, tone);
  }

  // Pods and nodes -------------------------------------------------------------------------------------------------

  _pod(name, uid, line, index) {
    let pod = uid ? this.pods.get(uid) : this.podNames.get(name);
    if (pod) return pod;
    const lane = this.lane("pods", name, name.replace(/^default\//, ""), "");
    if (lane.order === "") lane.order = String(this.pods.size).padStart(7, "0");
    pod = { uid: uid || name, name, lane, node: null, phase: "Pending", reason: "", created: line.t, bound: null, running: null,
      ended: null, deleting: false, gone: false, gpus: new Map(), claims: new Map(), requests: {}, boundLine: -1, createdLine: index };
    this.pods.set(pod.uid, pod);
    this.podNames.set(name, pod);
    return pod;
  }

  _turnPod(pod, t, index) {
    if (pod.gone) { pod.lane.end(t); return; }
    let state, label;
    if (pod.phase === "Failed") [state, label] = ["failed", pod.reason ? `failed: ${pod.reason}` : "failed"];
    else if (pod.phase === "Succeeded") [state, label] = ["succeeded", "succeeded"];
    else if (pod.deleting) [state, label] = ["terminating", "terminating"];
    else if (pod.phase === "Running") [state, label] = ["running", pod.node ? `on ${pod.node}` : "running"];
    else if (pod.bound !== null) [state, label] = ["starting", `starts on ${pod.node}`];
    else [state, label] = ["pending", pod.reason ? `pending: ${pod.reason}` : "pending"];
    pod.lane.turn(t, state, { label, host: this.host(pod.node) }, index);
  }

  _node(name) {
    let node = this.nodes.get(name);
    if (!node) {
      const lane = this.lane("nodes", name, name, `1${name}`);
      this.nodes.set(name, (node = { name, lane, ready: null, unschedulable: false, allocatable: {}, taints: [], known: false }));
    }
    return node;
  }

  _turnNode(node, t, index) {
    const devices = Object.entries(node.allocatable).filter(([name]) => name.includes("/") && !name.startsWith("hugepages"));
    const has = devices.map(([name, quantity]) => `${name.split("/")[1]} ${quantity}`).join(" · ");
    const state = node.ready === false ? (node.known ? "not-ready" : "booting") : node.unschedulable ? "unschedulable" : node.ready ? "ready" : "booting";
    const word = { "not-ready": "not ready", unschedulable: "unschedulable", ready: "ready", booting: "boots" }[state];
    node.lane.turn(t, state, { label: has ? (state === "ready" ? has : `${word} · ${has}`) : word, host: this.host(node.name) }, index);
  }

  _kubelet(line, index) {
    const name = line.actor.split("/")[1] || line.actor;
    const node = this._node(name);
    const tone = line.event === "rejected" || line.event === "hook-failed" ? "bad" : "plain";
    this.mark(node.lane, line, index, tone);
    if (line.claim) { this.claims.take(line, index, name); return; }
    if (!line.pod) { if (line.event === "checkpoint") this._checkpoint(line, index); return; }
    const pod = this._pod(line.pod, line.uid, line, index);
    this.mark(pod.lane, line, index, tone);
    if (line.event === "allocated") this._holdAll(pod, line.devices || [], name, line, index, false);
    if (line.event === "container-started") {
      const visible = String((line.env || {}).NVIDIA_VISIBLE_DEVICES || "").split(",").filter(Boolean);
      this._holdAll(pod, visible, name, line, index, true);
    }
    if (line.event === "pod-ended") this._release(pod, line.t);
  }

  _holdAll(pod, ids, host, line, index, byMinor) {
    for (const id of ids) {
      let gpu = this.gpus.get(id) || this.byUuid.get(id);
      if (!gpu && byMinor && /^\d+$/.test(id))
        gpu = [...this.gpus.values()].find((one) => one.host === host && one.minor === Number(id));
      if (!gpu) continue;
      this._hold(gpu, pod, line.t, index);
      this.mark(gpu.lane, line, index);
    }
  }

  /** Where nothing said who got what (a cluster that was there before), the kubelet's own file does. */
  _checkpoint(line, index) {
    for (const entry of line.entries || []) {
      const pod = this.pods.get(entry[0]);
      if (!pod || pod.gone || pod.gpus.size || pod.ended !== null) continue;
      this._holdAll(pod, entry[3] || [], "", line, index, false);
    }
  }

  _api(line, index) {
    const [kind, ...rest] = line.actor.split("/");
    if (line.event === "event" && line.object) this._event(line, index);
    else if (kind === "pod" && rest.length === 2) this._podLine(rest.join("/"), line, index);
    else if (kind === "claim" && line.claim) this.claims.take(line, index);
    else if (kind === "node" && rest.length === 1) this._nodeLine(rest[0], line, index);
    else this._other(line, index);
  }

  _podLine(name, line, index) {
    const pod = this._pod(name, line.uid, line, index);
    let tone = "plain";
    switch (line.event) {
      case "created":
        Object.assign(pod, { node: line.node || null, phase: line.phase || "Pending", requests: line.requests || {}, scheduler: line.scheduler });
        if (line.node) pod.bound = line.t;
        break;
      case "bound": Object.assign(pod, { node: line.node, bound: line.t, boundLine: index, reason: "" }); break;
      case "phase":
        pod.phase = line.phase;
        pod.reason = line.reason || (line.phase === "Failed" ? pod.reason : "");
        if (line.phase === "Running" && pod.running === null) pod.running = line.t;
        if (line.phase === "Failed" || line.phase === "Succeeded") pod.ended = line.t;
        if (line.phase === "Failed") tone = "bad";
        break;
      case "condition":
        if (line.type === "PodScheduled" && line.status === "False" && pod.bound === null && !pod.reason) pod.reason = line.reason || "";
        break;
      case "deleting": pod.deleting = true; break;
      case "deleted": pod.gone = true; this._release(pod, line.t); break;
      default: break;
    }
    this._turnPod(pod, line.t, index);
    this.mark(pod.lane, line, index, tone);
  }

  _nodeLine(name, line, index) {
    const node = this._node(name);
    let tone = "plain";
    if (line.event === "created") { node.allocatable = { ...(line.allocatable || {}) }; if (node.ready === null) node.ready = undefined; }
    else if (line.event === "allocatable") {
      if (line.new === null || line.new === undefined) delete node.allocatable[line.resource];
      else node.allocatable[line.resource] = line.new;
    } else if (line.event === "condition" && line.type === "Ready") {
      node.ready = line.status === "True";
      if (node.ready) node.known = true; else if (node.known) tone = "bad";
    } else if (line.event === "unschedulable") node.unschedulable = Boolean(line.unschedulable);
    else if (line.event === "taints") node.taints = line.taints || [];
    if (line.event === "deleted") node.lane.end(line.t);
    else this._turnNode(node, line.t, index);
    this.mark(node.lane, line, index, tone);
  }

  _event(line, index) {
    const tone = line.type === "Warning" ? "warn" : "plain";
    const component = this._component(line.actor, line, index);
    if (component) this.mark(component, line, index, tone);
    const [kind, ...rest] = line.object.split("/");
    if (kind === "pod" && this.podNames.has(rest.join("/"))) {
      const pod = this.podNames.get(rest.join("/"));
      if (line.reason === "FailedScheduling" && pod.bound === null) {
        pod.reason = line.message || line.reason;
        this._turnPod(pod, line.t, index);
      }
      this.mark(pod.lane, line, index, tone);
    } else if (kind === "node") this.mark(this._node(rest.join("/")).lane, line, index, tone);
    else if (kind !== "pod") this.mark(this.lane("others", line.object), line, index, tone);
  }

  _other(line, index) {
    const lane = this.lane("others", line.actor);
    let tone = "plain";
    if (line.event === "state" && line.state) lane.turn(line.t, "state", { label: String(line.state).toLowerCase() }, index);
    else if (line.event === "condition" && line.status === "True") {
      lane.turn(line.t, "state", { label: line.type }, index);
      if (/fail/i.test(line.type)) tone = "bad";
    } else if (line.event === "deleted") lane.end(line.t);
    this.mark(lane, line, index, tone);
  }

  // Components, faults, steps, invariants ----------------------------------------------------------------------------

  _component(nameOrLine, line, index) {
    if (typeof nameOrLine !== "string") { this._componentLine(nameOrLine, line); return null; }
    if (nameOrLine.startsWith("kubelet/")) return this._node(nameOrLine.slice(8)).lane;
    const lane = this.lane("components", nameOrLine);
    if (!lane.segments.length) lane.turn(this.start, "up", { label: "runs" }, index);
    return lane;
  }

  _componentLine(line, index) {
    const lane = this.lane("components", line.actor);
    if (!lane.segments.length && line.event !== "started") lane.turn(this.start, "up", { label: "runs" }, index);
    const label = { started: "runs", killed: "killed", crashed: line.cause ? `crashed: ${line.cause}` : "crashed" }[line.event];
    if (label) lane.turn(line.t, line.event === "started" ? "up" : "down", { label }, index);
    this.mark(lane, line, index, line.event === "started" ? "good" : "bad");
  }

  _scheduler(line, index) {
    const lane = this._component(line.actor, line, index);
    this.mark(lane, line, index);
    if (line.pod && this.podNames.has(line.pod)) this.mark(this.podNames.get(line.pod).lane, line, index);
  }

  _fault(line, index) {
    const key = `${line.actor} ${line.fault}`;
    const lane = this.lane("faults", key, `${line.kind || line.fault} · ${line.actor}`, String(this.faults.size).padStart(6, "0"));
    if (!this.faults.has(key)) this.faults.set(key, { key, lane, kind: line.kind, actor: line.actor, added: line.t, cleared: null, ended: false, until: null });
    const fault = this.faults.get(key);
    if (line.event === "cleared") { fault.cleared = line.t; if (!fault.ended) lane.end(line.t); }
    else if (!lane.segments.length) lane.turn(line.t, "fault", { label: line.kind || "" }, index);
    if (line.event === "fired" && line.left === 0 && !fault.ended) { fault.ended = true; fault.until = line.t; lane.end(line.t); }
    if (line.event === "fired") {
      this.fired.push({ t: line.t, line: index, fault, excuses: line.excuses || {}, gpuid: line.gpuid, operation: line.operation });
      if (line.gpuid && this.gpus.has(line.gpuid)) this.mark(this.gpus.get(line.gpuid).lane, line, index, "warn");
    }
    this.mark(lane, line, index, line.event === "fired" ? "bad" : "plain");
  }

  _step(line, index) {
    const lane = this.lane("steps", line.actor, "steps");
    const title = line.name || line.do || "";
    if (line.event === "begun") {
      this.steps.push({ number: line.step, do: line.do, name: line.name || "", from: line.t, to: null, verdict: "", reason: "", line: index, actor: line.actor });
      lane.turn(line.t, "step", { label: `${line.step} · ${title}` }, index);
    } else {
      const step = [...this.steps].reverse().find((one) => one.number === line.step && one.actor === line.actor);
      if (step) Object.assign(step, { to: line.t, verdict: line.event, reason: line.reason || "", endLine: index });
      const last = lane.last();
      if (last && step) last.state = line.event === "failed" ? "step-failed" : "step-passed";
      lane.end(line.t);
    }
    this.mark(lane, line, index, line.event === "failed" ? "bad" : "plain");
  }

  _invariant(line, index) {
    const lane = this.lane("invariants", line.actor, `invariant ${line.actor}`, line.actor.padStart(4, "0"));
    this.violations.push({ line: index, t: line.t, number: line.actor, what: line.what || "", first: line.first });
    this.mark(lane, line, index, "bad");
    const first = this.indexOf(line.first);
    if (first >= 0) this.mark(lane, this.lines[first], first, "warn");
  }
}
