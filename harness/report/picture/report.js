"use strict";
// The report's pages: all runs, a scenario over its seeds, one run. Data lie in the file itself.

class ReportPage {
  constructor(data) {
    const { el } = Units;
    this.data = data;
    this.picture = null;
    this.main = el("main", { id: "main" });
    this.crumbs = el("nav", { "aria-label": "pages" });
    this.theme = new ThemeSwitch(() => this.picture?.restyle());
    document.body.replaceChildren(el("a", { class: "skip", href: "#main" }, "skip to the content"), el("header", { class: "top" }, this.crumbs, this.theme.button), this.main);
    window.addEventListener("hashchange", () => this.route());
    this.route();
  }

  scenario(run) { return this.data.runs.filter((other) => other.path === run.path && other.scenario === run.scenario); }

  route() {
    const { runs } = this.data, [kind, number] = decodeURIComponent(location.hash.slice(1)).split("/");
    this.picture?.close();
    this.picture = null;
    window.scrollTo(0, 0);
    const run = runs[Number(number)];
    if (kind === "run" && run) this.run(run, Number(number));
    else if (kind === "seeds" && run) this.seeds(run);
    else if (kind === "main") document.getElementById("main").focus();
    else if (runs.length === 1) this.run(runs[0], 0);
    else this.index();
  }

  trail(...parts) {
    const { el } = Units;
    this.crumbs.replaceChildren(el("a", { href: "#", class: "brand" }, "mews"), ...parts.flatMap(([text, to]) => [el("span", { "aria-hidden": "true" }, "›"), to ? el("a", { href: to }, text) : el("span", { "aria-current": "page" }, text)]));
    document.title = ["mews", ...parts.map(([text]) => text)].join(" · ");
  }

  verdict(verdict) { return Units.el("span", { class: `verdict ${verdict}` }, verdict); }

  // All runs ---------------------------------------------------------------------------------------------------------

  index() {
    const { el } = Units, { runs } = this.data;
    this.trail([this.data.title]);
    const groups = new Map();
    runs.forEach((run, number) => { const key = `${run.path} ${run.scenario}`; if (!groups.has(key)) groups.set(key, []); groups.get(key).push([run, number]); });
    const rank = (group) => Math.min(...group.map(([run]) => ["error", "failed", "skipped", "passed"].indexOf(run.verdict)).map((at) => (at === 2 ? 3.5 : at)));
    const sorted = [...groups.values()].sort((a, b) => rank(a) - rank(b));
    const body = el("tbody");
    const search = el("input", { type: "search", placeholder: "Filter runs…", "aria-label": "filter runs", oninput: () => fill() });
    const chosen = new Set();
    const fill = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      body.replaceChildren(...sorted.map((group) => this._indexRow(group.filter(([run]) => (!chosen.size || chosen.has(run.verdict)) && words.every((word) => `${run.scenario} ${run.path} seed ${run.seed} ${run.verdict} ${run.reason}`.toLowerCase().includes(word))))).filter(Boolean));
    };
    const counts = ["failed", "error", "skipped", "passed"].map((verdict) => [verdict, runs.filter((run) => run.verdict === verdict).length]).filter(([, number]) => number);
    const tallies = counts.map(([verdict, number]) => el("button", {
      type: "button", class: `tally ${verdict}`, "aria-pressed": "false",
      onclick: (event) => { if (!chosen.delete(verdict)) chosen.add(verdict); event.currentTarget.setAttribute("aria-pressed", String(chosen.has(verdict))); fill(); },
    }, el("b", {}, String(number)), ` ${verdict}`));
    fill();
    this.main.replaceChildren(el("h1", {}, this.data.title), el("div", { class: "bar" }, tallies, search),
      el("div", { class: "wide" }, el("table", { class: "index" }, el("thead", {}, el("tr", {}, ["verdict", "scenario", "runs", "result"].map((name) => el("th", { scope: "col" }, name)))), body)));
  }

  _indexRow(group) {
    const { el } = Units;
    if (!group.length) return null;
    const worst = ["error", "failed", "passed", "skipped"].find((verdict) => group.some(([run]) => run.verdict === verdict));
    const [first, number] = group.find(([run]) => run.verdict === worst);
    const many = this.scenario(first).length > 1;
    const dots = el("div", { class: "seeds" }, group.map(([run, at]) => el("a", { href: `#run/${at}`, class: `seed ${run.verdict}`, title: `seed ${run.seed}: ${run.verdict}`, "aria-label": `seed ${run.seed}: ${run.verdict}` }, group.length > 60 ? "" : String(run.seed))));
    return el("tr", {}, el("td", {}, this.verdict(worst)),
      el("th", { scope: "row" }, el("a", { href: many ? `#seeds/${number}` : `#run/${number}` }, first.scenario), el("div", { class: "faint path" }, first.path)),
      el("td", {}, dots), el("td", { class: "what" }, first.reason || this._brief(first)));
  }

  _brief(run) {
    return Object.entries(run.metrics).filter(([, value]) => typeof value === "number").slice(0, 4).map(([name, value]) => `${Units.label(name)} ${Units.quantity(name, value)}`).join(" · ");
  }

  // A scenario over its seeds ----------------------------------------------------------------------------------------

  seeds(run) {
    const { el } = Units, group = this.scenario(run), at = (one) => `#run/${this.data.runs.indexOf(one)}`;
    this.trail([this.data.title, "#"], [`${run.scenario}, ${group.length} seeds`]);
    const failed = group.filter((one) => one.verdict === "failed" || one.verdict === "error");
    const names = [...new Set(group.flatMap((one) => Object.keys(one.metrics)))].filter((name) => group.some((one) => typeof one.metrics[name] === "number"));
    const cards = [], rows = [];
    for (const name of [...names, "virtual_time_s", "wall-clock_time_s"]) {
      const value = (one) => (name === "virtual_time_s" ? one.seconds.virtual : name === "wall-clock_time_s" ? one.seconds.wall : one.metrics[name]);
      const known = group.filter((one) => typeof value(one) === "number");
      if (!known.length) continue;
      const values = known.map(value).sort((a, b) => a - b), mean = values.reduce((sum, one) => sum + one, 0) / values.length;
      const expected = group[0].expected[name] ?? null;
      rows.push([name, mean, values[0], values[Math.floor((values.length - 1) / 2)], values[values.length - 1], expected]);
      if (values[0] === values[values.length - 1] && expected === null) continue;
      const points = known.map((one) => ({ x: one.seed, y: value(one), good: one.verdict === "passed", title: `seed ${one.seed}: ${Units.quantity(name, value(one))}, ${one.verdict}`, onclick: () => { location.hash = at(one); } }));
      cards.push(el("figure", { class: "card" }, el("figcaption", {}, Units.label(name)), Plots.dots(name, points, { expected })));
    }
    const cdf = group.filter((one) => Array.isArray(one.metrics.gpu_used_cdf));
    if (cdf.length === 1) cards.push(this._cdf(cdf[0]));
    this.main.replaceChildren(
      el("h1", {}, this.verdict(failed.length ? failed[0].verdict : run.verdict), " ", run.scenario), el("p", { class: "faint" }, `${run.path} · ${Units.count(group.length, "seed")}, ${failed.length} of them failed · ${run.cluster}, ${run.time} time`),
      el("div", { class: "seeds" }, group.map((one) => el("a", { href: at(one), class: `seed ${one.verdict}`, "aria-label": `seed ${one.seed}: ${one.verdict}`, title: one.reason || one.verdict }, String(one.seed)))),
      failed.length ? el("section", {}, el("h2", {}, "What failed"), el("ul", { class: "failures" }, failed.map((one) => el("li", {}, el("a", { href: at(one) }, `seed ${one.seed}`), " ", one.reason)))) : null ?? "",
      el("div", { class: "cards" }, cards),
      rows.length ? el("section", {}, el("h2", {}, "Metrics over all seeds"), el("div", { class: "wide" }, el("table", { class: "numbers" }, el("thead", {}, el("tr", {}, ["metric", "mean", "least", "median", "most", "expected"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, rows.map(([name, ...values]) => el("tr", {}, el("th", { scope: "row" }, Units.label(name)), values.map((value) => el("td", {}, value === null ? "" : Units.quantity(name, value))))))))) : "");
  }

  // One run ----------------------------------------------------------------------------------------------------------

  async run(run, number) {
    const { el } = Units, many = this.scenario(run).length > 1;
    this.trail(...(this.data.runs.length > 1 ? [[this.data.title, "#"]] : []), ...(many ? [[run.scenario, `#seeds/${number}`]] : []), [many ? `seed ${run.seed}` : run.scenario]);
    const took = [run.seconds.virtual === null ? "" : `${Units.span(run.seconds.virtual)} of virtual time`, `${Units.span(run.seconds.wall)} of wall-clock time`].filter(Boolean).join(", ");
    const place = el("div", { class: "loading" }, run.lines ? "…" : el("p", { class: "faint" }, "This run has no journal."));
    this.main.replaceChildren(
      el("h1", {}, this.verdict(run.verdict), " ", run.scenario, el("span", { class: "faint" }, ` seed ${run.seed}`)),
      el("p", { class: "faint" }, [run.path, `${run.cluster} cluster`, took].filter(Boolean).join(" · ")),
      this._failure(run), this._violations(run), this._known(run), this._metrics(run), place, this._plots(run), this._report(run));
    if (!run.lines) return;
    const lines = await ReportData.lines(number);
    if (!place.isConnected) return;
    const model = new JournalModel();
    model.append(lines);
    this.picture = new Picture(model);
    place.replaceWith(this.picture.element);
    this.picture.list.refresh();
    const failed = model.steps.find((step) => step.verdict === "failed");
    const broken = run.violations.find((violation) => !violation.expected && violation.first !== null && violation.first !== undefined);
    if (broken) this.picture.reveal(broken.first);
    else if (failed) this.picture.timeline.select({ lane: [...model.lanes.values()].find((lane) => lane.group === "steps" && lane.key === failed.actor), line: failed.endLine }, { reveal: true });
    window.mewsPicture = this.picture;
    performance.mark("mews-ready");
  }

  _failure(run) {
    const { el } = Units, { failure } = run;
    if (!run.reason) return "";
    if (!failure || !failure.step) return el("section", { class: `failure ${run.verdict}`, role: "status" }, el("p", { class: "sentence" }, run.reason), failure ? el("dl", {}, this._lines(failure)) : "");
    const name = failure.name ? ` “${failure.name}”` : "";
    const within = failure.deadlock ? ", and nothing can happen any more" : failure.waited_s === null ? "" : ` after ${Units.span(failure.waited_s)}`;
    return el("section", { class: "failure failed", role: "status" },
      el("p", { class: "sentence" }, `Step ${failure.step} of ${failure.steps}, ${failure.do}${name} failed${within}.`),
      el("dl", {}, el("dt", {}, "expected"), el("dd", {}, failure.awaited), el("dt", {}, "last seen"), el("dd", {}, failure.seen), failure.hint ? [el("dt", {}, "hint"), el("dd", {}, failure.hint)] : [], this._lines(failure)));
  }

  _lines(failure) {
    const { el } = Units, chain = failure.chain || [];
    const shown = (line) => el("dd", {}, el("button", { type: "button", class: "link", onclick: () => { this.picture?.reveal(line); this.picture?.element.scrollIntoView({ block: "start" }); } }, `line ${line.line}`), ` ${line.actor} ${line.event} at ${Units.time(line.t)}`);
    return [failure.line ? [el("dt", {}, "made by"), shown(failure.line)] : [], chain.length ? [el("dt", {}, "it waits for"), chain.map(shown)] : []];
  }

  _known(run) {
    const { el } = Units;
    if (!(run.known || []).length) return "";
    return el("section", { class: "known" }, el("h2", {}, "Known of the published system"),
      el("ul", {}, run.known.map((one) => el("li", {}, `${one.what}: ${one.known}`))));
  }

  _violations(run) {
    const { el } = Units;
    if (!run.violations.length) return "";
    return el("section", { class: "violations" }, el("h2", {}, Units.count(run.violations.length, "invariant violation")), el("ul", {}, [...run.violations].sort((a, b) => Boolean(a.expected) - Boolean(b.expected)).map((one) => el("li", {},
      el("b", {}, `${one.invariant} (${one.name})`), ` ${one.what}${one.expected ? " — expected by the scenario" : ""} `,
      one.first === null || one.first === undefined ? "" : el("button", { type: "button", class: "link", onclick: () => { this.picture?.reveal(one.first); this.picture?.element.scrollIntoView({ block: "start" }); } }, "show the line that broke it")))));
  }

  _metrics(run) {
    const { el } = Units, entries = Object.entries(run.metrics);
    if (!entries.length) return "";
    const plain = entries.filter(([, value]) => value === null || typeof value !== "object");
    const rows = plain.map(([name, value]) => {
      const expected = run.expected[name];
      const off = typeof expected === "number" && expected ? `${(100 * (value - expected)) / expected >= 0 ? "+" : "−"}${Math.abs((100 * (value - expected)) / expected).toFixed(1)} %` : "";
      return el("div", { class: "metric" }, el("dt", {}, Units.label(name)), el("dd", {}, value === null ? "–" : Units.quantity(name, value), off ? el("span", { class: "faint" }, ` expected ${Units.quantity(name, expected)} (${off})`) : ""));
    });
    return rows.length ? el("section", { class: "metrics" }, el("dl", {}, rows)) : "";
  }

  /** Metrics that are no single number. */
  _plots(run) {
    const others = [];
    for (const [name, value] of Object.entries(run.metrics)) {
      if (name === "gpu_used_cdf" && Array.isArray(value) && value.length > 1) others.push(this._cdf(run));
      else if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) others.push(this._parts(name, value));
    }
    return others.length ? Units.el("div", { class: "cards" }, others) : "";
  }

  _cdf(run) {
    return Units.el("figure", { class: "card" }, Units.el("figcaption", {}, "GPUs in use, share of the time"), Plots.steps("GPUs in use", run.metrics.gpu_used_cdf, "GPUs"));
  }

  _parts(name, value) {
    const { el } = Units, numbers = Object.entries(value).filter(([, one]) => typeof one === "number"), most = Math.max(1e-9, ...numbers.map(([, one]) => one));
    const bar = (share) => { const made = el("i", { "aria-hidden": "true" }); made.style.width = `${Math.max(share * 100, 0.5)}%`; return made; };
    return el("figure", { class: "card parts" }, el("figcaption", {}, Units.label(name)), el("dl", {}, numbers.map(([part, one]) => [el("dt", {}, part), el("dd", {}, bar(one / most), el("span", {}, Units.quantity(name, one)))])));
  }

  _report(run) {
    const { el } = Units;
    const text = [run.report, run.artefacts ? `artefacts: ${run.artefacts}` : ""].filter(Boolean).join("\n\n");
    return text ? el("details", { class: "text" }, el("summary", {}, "Report as text"), el("pre", {}, text)) : "";
  }
}

/** An experiment: our numbers with their range beside those measured and published, its figures and its report. */
class ExperimentPage {
  constructor(data) {
    const { el } = Units, number = (value) => el("td", {}, typeof value === "number" ? Units.number(value) : "");
    this.theme = new ThemeSwitch(() => {});
    document.title = `mews · ${data.experiment}`;
    const keys = ["paper", "measured", "ours", "low", "high"];
    document.body.replaceChildren(
      el("header", { class: "top" }, el("nav", {}, el("span", { class: "brand" }, "mews"), el("span", { "aria-hidden": "true" }, "›"), el("span", {}, `experiment ${data.experiment}`)), this.theme.button),
      el("main", {}, el("h1", {}, data.experiment), el("p", { class: "faint" }, data.summary),
        data.rows.length ? el("section", {}, el("h2", {}, "Compared with the paper"), el("p", { class: "legend" }, ["ours", "measured", "paper"].map((key) => el("span", {}, el("i", { class: `mark-${key}`, "aria-hidden": "true" }), key === "ours" ? "ours, and its range" : key))), Plots.whiskers(data.rows),
          el("div", { class: "wide" }, el("table", { class: "numbers" }, el("thead", {}, el("tr", {}, ["", ...keys].map((key) => el("th", { scope: "col" }, key)))), el("tbody", {}, data.rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row.name), keys.map((key) => number(row[key])))))))) : "",
        el("div", { class: "figures" }, data.figures.map((figure) => el("figure", {}, el("img", { src: figure.source, alt: figure.name }), el("figcaption", {}, figure.name)))),
        el("details", { class: "text" }, el("summary", {}, "Report as text"), el("pre", {}, data.report))));
  }
}

const ReportData = {
  read(id) { return JSON.parse(document.getElementById(id).textContent); },

  /** The journal of a run; large files have it packed. */
  async lines(number) {
    const place = document.getElementById(`lines-${number}`);
    if (place.dataset.packed === undefined) return JSON.parse(place.textContent);
    const bytes = Uint8Array.from(atob(place.textContent.trim()), (letter) => letter.charCodeAt(0));
    const open = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(open).text());
  },

  start() {
    const data = ReportData.read("mews-data");
    if (data.kind === "experiment") new ExperimentPage(data); else new ReportPage(data);
  },
};
