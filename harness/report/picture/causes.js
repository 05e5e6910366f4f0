"use strict";
// What a thing of the picture has to do with others: sections of sentences that lead to lines, and links to draw.

const Causes = (() => {
  const MOST = 60;

  /** {title, facts [[name, value]], sections [{title, items [{t, text, line, tone}]}], links [[line, line]]}. */
  function of(model, thing) {
    if (thing.hold) return ofPod(model, model.pods.get(thing.hold.uid), thing.lane);
    const lane = thing.lane;
    if (thing.violation) return ofViolation(model, thing.violation);
    if (thing.line !== undefined && thing.line !== null && !thing.segment) return ofLine(model, thing.line, lane);
    if (lane.group === "pods") return ofPod(model, podAt(model, lane, thing.segment), lane);
    if (lane.group === "gpus") return ofGpu(model, model.gpus.get(lane.key), lane, thing.segment);
    if (lane.group === "invariants") return ofViolation(model, model.violations.find((one) => one.number === lane.key));
    return ofLane(model, lane, thing.segment);
  }

  function podAt(model, lane, segment) {
    const line = segment ? model.lines[segment.line] : null;
    return (line && model.pods.get(line.uid)) || model.podNames.get(lane.key);
  }

  function item(model, index, text) {
    const line = model.lines[index];
    return { t: line.t, line: index, text: text || `${line.actor}  ${line.event}  ${Units.fields(line, 200)}`, tone: "" };
  }

  function events(model, lane, about = () => true) {
    const indices = lane.marks.map((mark) => mark.line).filter((index) => about(model.lines[index]));
    const shown = indices.length > MOST ? indices.slice(-MOST) : indices;
    const title = indices.length > shown.length ? `Its last ${shown.length} of ${indices.length} lines` : Units.count(indices.length, "line");
    return { title, items: shown.map((index) => item(model, index)) };
  }

  /** The changes of these GPUs within a span, oldest first. */
  function moves(model, gpus, from, to) {
    const found = [];
    for (const gpu of gpus) {
      for (const mark of gpu.lane.marks) {
        const line = model.lines[mark.line];
        if (line.t < from || line.t > to || line.layer !== "chassis") continue;
        if (line.event === "detached") found.push(item(model, mark.line, `${gpu.gpuid} is detached from ${line.old_host || "its host"}`));
        if (line.event === "attached") found.push(item(model, mark.line, `${gpu.gpuid} is attached to ${line.host}`));
        if (line.event === "edited") found.push(item(model, mark.line, `${gpu.gpuid} is moved to ${line.host || "no host"} by ${line.cause || "another editor"}`));
      }
    }
    return found.sort((a, b) => a.line - b.line);
  }

  function faultsMeanwhile(model, from, to, gpuids) {
    const found = [];
    for (const fired of model.fired) {
      if (fired.t < from || fired.t > to || (fired.gpuid && gpuids && !gpuids.has(fired.gpuid))) continue;
      const excused = Object.keys(fired.excuses);
      const excuse = excused.length ? `; it permits violations of invariant${excused.length > 1 ? "s" : ""} ${excused.join(", ")}` : "";
      found.push({ ...item(model, fired.line, `${fired.fault.kind} on ${fired.fault.actor}${fired.gpuid ? ` at ${fired.gpuid}` : ""}${excuse}`), tone: "bad" });
    }
    return found;
  }

  function ofPod(model, pod, lane) {
    if (!pod) return ofLane(model, lane);
    const until = pod.bound ?? pod.ended ?? model.end;
    const waited = until - pod.created;
    const requests = Object.entries(pod.requests).map(([name, quantity]) => `${quantity} × ${name}`).join(", ");
    const gpus = [...pod.gpus.values()];
    const gpuids = new Set(gpus.map((gpu) => gpu.gpuid));
    const facts = [["state", lane.last()?.label || lane.segments[lane.segments.length - 1]?.label || pod.phase], ["asks for", requests],
      ["scheduler", pod.scheduler || ""], ["waited for a node", `${Units.span(waited)}${pod.bound === null && pod.ended === null ? ", and still waits" : ""}`],
      ["node", pod.node || ""], ["devices", gpus.map((gpu) => gpu.gpuid).join(", ")],
      ["claims", [...pod.claims].map(([name, devices]) => `${name.replace(/^default\//, "")}: ${devices.join(", ")}`).join("; ")],
      ["ran", pod.running === null ? "" : Units.span((pod.ended ?? model.end) - pod.running)]];
    const sections = [];
    const why = reasons(model, pod);
    if (why.length) sections.push({ title: "Why it waited", items: why });
    const waitedFor = moves(model, gpus, pod.created, until);
    const offered = offers(model, pod);
    if (waitedFor.length || (waited > 0 && offered)) sections.push({ title: "What it waited for", items: [...waitedFor, ...(offered ? [offered] : [])] });
    const meanwhile = faultsMeanwhile(model, pod.created, pod.ended ?? model.end, gpuids);
    if (meanwhile.length) sections.push({ title: "Faults during that time", items: meanwhile });
    const own = (line) => !line.uid || Boolean(line.claim) || line.uid === pod.uid;
    sections.push(events(model, pod.lane, own));
    const links = waitedFor.filter((one) => pod.boundLine >= 0).map((one) => [one.line, pod.boundLine]);
    for (const gpu of gpus) {
      const hold = gpu.lane.holds.find((one) => one.uid === pod.uid);
      if (hold && pod.boundLine >= 0) links.push([pod.boundLine, hold.line, gpu.lane]);
    }
    return { title: `pod ${pod.name}`, pod, facts, sections, links };
  }

  /** What schedulers said of it, each once, with how often. */
  function reasons(model, pod) {
    const said = new Map();
    for (const mark of pod.lane.marks) {
      const line = model.lines[mark.line];
      if (line.event !== "event" || line.type !== "Warning" || line.t < pod.created) continue;
      const known = said.get(line.message);
      if (known) known.times += 1; else said.set(line.message, { ...item(model, mark.line, `${line.actor}: ${line.message}`), times: 1, tone: "warn" });
    }
    return [...said.values()].map((one) => ({ ...one, text: one.times > 1 ? `${one.text} (${one.times} times)` : one.text }));
  }

  /** The last change of what its node offers before it was bound. */
  function offers(model, pod) {
    if (!pod.node || pod.bound === null || !model.nodes.has(pod.node)) return null;
    let found = null;
    for (const mark of model.nodes.get(pod.node).lane.marks) {
      const line = model.lines[mark.line];
      if (line.t > pod.bound) break;
      if (line.event === "allocatable" && line.t >= pod.created && line.resource in pod.requests)
        found = item(model, mark.line, `${pod.node} offers ${line.new} × ${line.resource} (before ${line.old ?? 0})`);
    }
    return found;
  }

  function ofGpu(model, gpu, lane, segment) {
    const holders = lane.holds.map((hold) => ({ ...item(model, hold.line, `${hold.pod}: ${hold.to === null ? "still holds it" : `held it for ${Units.span(hold.to - hold.from)}`}`) }));
    const facts = [["now", segment ? segment.label : JournalModel.stateOf(gpu)], ["chassis", gpu.chassis || ""], ["UUID", gpu.uuid || ""],
      ["for", segment ? Units.span((segment.to ?? model.end) - segment.from) : ""]];
    const sections = [];
    if (holders.length) sections.push({ title: "Held by", items: holders });
    const moved = moves(model, [gpu], model.start, model.end);
    if (moved.length) sections.push({ title: "Moves", items: moved });
    const faults = model.fired.filter((fired) => fired.gpuid === gpu.gpuid);
    if (faults.length) sections.push({ title: "Faults", items: faultsMeanwhile(model, model.start, model.end, new Set([gpu.gpuid])).filter((one) => model.lines[one.line].gpuid === gpu.gpuid) });
    sections.push(events(model, lane));
    const links = moved.slice(1).map((one, index) => [moved[index].line, one.line]);
    return { title: `${gpu.kind} ${gpu.gpuid}`, facts, sections, links };
  }

  function ofLane(model, lane, segment) {
    const facts = segment ? [["state", segment.label], ["from", Units.time(segment.from)], ["for", Units.span((segment.to ?? model.end) - segment.from)]] : [];
    const names = { nodes: lane.key.startsWith("chassis/") ? "" : "node ", components: "component ", faults: "fault ", steps: "" };
    const sections = [];
    if (lane.group === "steps" && segment) {
      const step = model.steps.find((one) => one.line === segment.line);
      if (step) {
        facts.unshift(["step", `${step.number}: ${step.do}${step.name ? `, ${step.name}` : ""}`], ["verdict", step.verdict || "runs"]);
        if (step.reason) facts.push(["reason", step.reason]);
      }
      return { title: segment.label, facts, sections: [events(model, lane, (line) => line.step === step?.number)], links: [] };
    }
    if (lane.group === "faults") {
      const fired = model.fired.filter((one) => one.fault.key === lane.key);
      const effects = fired.flatMap((one) => consequences(model, one));
      if (effects.length) sections.push({ title: "Effects", items: effects });
      sections.push(events(model, lane));
      return { title: `${names.faults}${lane.label}`, facts, sections, links: effects.map((effect) => [effect.cause, effect.line]) };
    }
    sections.push(events(model, lane));
    return { title: `${names[lane.group] ?? ""}${lane.label}`, facts, sections, links: [] };
  }

  /** Lines of the operation that a fault fired in. */
  function consequences(model, fired) {
    if (fired.operation === undefined || !fired.gpuid || !model.gpus.has(fired.gpuid)) return [];
    return model.gpus.get(fired.gpuid).lane.marks
      .filter((mark) => model.lines[mark.line].operation === fired.operation && mark.line !== fired.line)
      .map((mark) => ({ ...item(model, mark.line), cause: fired.line }));
  }

  function ofViolation(model, violation) {
    const first = model.indexOf(violation.first);
    const sections = [];
    if (first >= 0) sections.push({ title: "The line that broke it", items: [{ ...item(model, first), tone: "bad" }] });
    const excusing = model.fired.filter((fired) => violation.number in fired.excuses && fired.t <= violation.t);
    if (excusing.length) sections.push({ title: "Faults that permit it for a while", items: excusing.map((fired) => item(model, fired.line)) });
    sections.push({ title: "Its line", items: [item(model, violation.line)] });
    return { title: `invariant ${violation.number} is violated`, facts: [["what", violation.what], ["found at", Units.time(violation.t)]],
      sections, links: first >= 0 ? [[first, violation.line]] : [] };
  }

  function ofLine(model, index, lane) {
    const line = model.lines[index];
    const facts = Object.entries(line).filter(([name]) => !["t", "layer", "actor", "event"].includes(name)).map(([name, value]) => [Units.label(name), Units.quantity(name, value)]);
    facts.unshift(["time", Units.time(line.t, 1e-6)], ["layer", line.layer], ["actor", line.actor]);
    const sections = [], links = [];
    if (line.operation !== undefined && line.gpuid && model.gpus.has(line.gpuid)) {
      const same = model.gpus.get(line.gpuid).lane.marks.filter((mark) => model.lines[mark.line].operation === line.operation && mark.line !== index);
      if (same.length) sections.push({ title: `Operation ${line.operation}`, items: same.map((mark) => item(model, mark.line)) });
      links.push(...same.map((mark) => [index, mark.line]));
    }
    if (line.layer === "invariant") {
      const first = model.indexOf(line.first);
      if (first >= 0) { sections.push({ title: "The line that broke it", items: [{ ...item(model, first), tone: "bad" }] }); links.push([first, index]); }
    }
    const broken = model.violations.filter((one) => model.indexOf(one.first) === index);
    if (broken.length) sections.push({ title: "It broke", items: broken.map((one) => ({ ...item(model, one.line, `invariant ${one.number}: ${one.what}`), tone: "bad" })) });
    const pod = model.pods.get(line.uid) || (line.object || "").startsWith("pod/") && model.podNames.get(line.object.slice(4));
    if (pod && pod.lane !== lane) sections.push({ title: "Its pod", items: [{ ...item(model, pod.createdLine, `pod ${pod.name}`), open: { lane: pod.lane } }] });
    if (lane) sections.push(around(model, lane, index));
    return { title: line.layer === "step" ? `step ${line.step} ${line.event}` : `${line.actor} ${line.event}`, facts, sections, links };
  }

  /** Its neighbours on the lane. */
  function around(model, lane, index) {
    const at = lane.marks.findIndex((mark) => mark.line === index);
    const near = lane.marks.slice(Math.max(0, at - 6), at + 7);
    return { title: `Nearby lines of ${lane.label}`, items: near.map((mark) => ({ ...item(model, mark.line), tone: mark.line === index ? "here" : "" })) };
  }

  return { of };
})();
