"use strict";
// The lanes of resource claims: which devices each has, for which pods, and where it is prepared.

class ClaimLanes {
  constructor(model) {
    this.model = model;
    this.byName = new Map();    // namespace/name -> {lane, devices, pods, nodes that have it prepared}
  }

  _claim(name) {
    let claim = this.byName.get(name);
    if (!claim) {
      const order = String(this.byName.size).padStart(7, "0");
      const lane = this.model.lane("claims", name, name.replace(/^default\//, ""), order);
      this.byName.set(name, (claim = { name, lane, devices: [], pods: [], nodes: new Set() }));
    }
    return claim;
  }

  /** Take a line about a claim; `node`: whose kubelet says it, null where the API does. */
  take(line, index, node = null) {
    const { model } = this, claim = this._claim(line.claim), before = claim.pods;
    switch (line.event) {
      case "claim-allocated": claim.devices = line.devices || []; break;
      case "claim-freed": Object.assign(claim, { devices: [], pods: [] }); break;
      case "claim-reserved": claim.pods = line.pods || []; break;
      case "claim-prepared": claim.nodes.add(node); break;
      case "claim-unprepared": claim.nodes.delete(node); break;
      default: break;
    }
    this._turn(claim, line.t, index);
    model.mark(claim.lane, line, index);
    if (node) model.mark(model._node(node).lane, line, index);
    const namespace = line.claim.split("/")[0];
    for (const name of new Set([...before, ...claim.pods])) {
      const pod = model.podNames.get(`${namespace}/${name}`);
      if (!pod) continue;
      if (claim.pods.includes(name)) pod.claims.set(claim.name, [...claim.devices]);
      model.mark(pod.lane, line, index);
    }
  }

  _turn(claim, t, index) {
    const has = [claim.devices.join(", "), claim.pods.join(", ")].filter(Boolean).join(" · ");
    const [node] = claim.nodes;
    if (node !== undefined) claim.lane.turn(t, "prepared", { label: has || `prepared on ${node}`, host: this.model.host(node) }, index);
    else if (claim.devices.length) claim.lane.turn(t, "allocated", { label: has }, index);
    else claim.lane.end(t);
  }
}
