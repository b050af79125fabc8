// Figures over time, and what each tool costs.

import { durationOf, isFailure, isOpen } from "./calls-model.js";
import { axes, line } from "./charts.js";
import { button, fill, h, inNextFrame, Part, segmented } from "./dom.js";
import { bytes, clock, count, grouped, milliseconds } from "./format.js";
import { state } from "./state.js";
import { buckets, byTool, summaryOf } from "./statistics.js";
import { colour } from "./theme.js";

const RANGES = [["300", "5 min"], ["900", "15 min"], ["3600", "1 h"], ["0", "all"]];
const REDRAW_MS = 1000;
const COLUMNS = [
  ["name", "Tool", null], ["calls", "Calls", grouped], ["failures", "Failed", grouped], ["p50", "p50", milliseconds], ["p95", "p95", milliseconds],
  ["p99", "p99", milliseconds], ["durations", "Durations", null], ["cpuMs", "CPU", milliseconds],
    ["peakKb", "Memory", (kb) => (kb === undefined ? "–" : bytes(kb * 1024))],
  ["bytes", "Sent", bytes], ["tokens", "Tokens", (tokens) => (tokens === undefined ? "–" : grouped(tokens))],
];

class FiguresPanel extends Part {
  #range = 900;
  #sort = { by: "calls", isDown: true };
  #drawSoon = inNextFrame(() => this.draw());
  #drawnAt = 0;
  #dots = [];

  build() {
    this.tiles = h("div.tiles", { testid: "tiles" });
    this.charts = {
      rate: chart("Calls", "calls-chart", [["run", "ok"], ["bad", "failed"]]),
      durations: chart("How long they took, each a dot", "duration-chart", [["run", "ok"], ["bad", "failed"]]),
      memory: chart("Memory of the server", "memory-chart", []),
      running: chart("Running and waiting", "running-chart", [["run", "running"], ["start", "waiting"]]),
    };
    this.charts.durations.canvas.addEventListener("click", (event) => this.#openDot(event));
    this.body = h("tbody");
    this.heads = COLUMNS.map(([key, title, show]) => h("th", { scope: "col", class: show ? "number" : "" },
      key === "durations" ? title : button("sort", `by-${key}`, () => this.#sortBy(key), title)));
    this.append(
      h("div.toolbar", {}, h("h2", {}, "Figures"), h("span.push"), segmented("Range", RANGES, String(this.#range), (value) => {
        this.#range = Number(value);
        this.draw();
      }, "range")),
      this.tiles,
      h("div.charts", {}, Object.values(this.charts).map(({ node }) => node)),
      h("section.section", {}, h("h3", {}, "By tool"),
        h("div.table-scroll", { tabIndex: 0, role: "region", "aria-label": "By tool" },
          h("table.by-tool", { testid: "by-tool" }, h("thead", {}, h("tr", {}, this.heads)), this.body))));
  }

  connected() {
    this.every(REDRAW_MS, () => this.draw());
    for (const name of ["place", "catalog", "server"]) this.listen(state, name, () => this.draw());
    this.listen(window, "theme", () => this.draw());
    this.listen(state.calls, "change", () => performance.now() - this.#drawnAt > REDRAW_MS && this.#drawSoon());
    new ResizeObserver(this.#drawSoon).observe(this);
  }

  draw() {
    if (state.panel !== "figures" || document.hidden) return;
    this.#drawnAt = performance.now();
    const now = state.calls.now();
    const all = state.calls.list;
    const oldest = Math.min(all[0]?.begin ?? now, state.calls.samples[0]?.at ?? now);
    const from = this.#range ? Math.max(now - this.#range, Math.min(oldest, now - 60)) : Math.min(oldest, now - 60);
    // Without what every client says at its beginning.
    const calls = all.filter((call) => call.begin >= from && call.name);
    const samples = state.calls.samples.filter((sample) => sample.at >= from);
    this.#drawTiles(calls, samples, now - from);
    this.#drawRate(calls, from, now);
    this.#drawDurations(calls, from, now);
    this.#drawSamples(samples, from, now);
    this.#drawTable(calls);
  }

  #drawTiles(calls, samples, seconds) {
    const summary = summaryOf(calls, seconds);
    const last = samples.at(-1);
    const share = calls.length ? (100 * summary.failures) / calls.length : 0;
    fill(this.tiles,
      tile("Calls", grouped(summary.calls), `${rateText(summary.rate)} per second`),
      tile("p50", milliseconds(summary.p50), "half are faster"),
      tile("p95", milliseconds(summary.p95), `p99 ${milliseconds(summary.p99)}`),
      tile("Failed", grouped(summary.failures), `${share < 10 ? share.toFixed(1) : Math.round(share)} %`, summary.failures ? "bad" : ""),
      tile("Running", grouped(last?.running ?? summary.open), last ? `${grouped(last.waiting)} waiting` : summary.hung ? `${summary.hung} hung` : ""),
      tile("Memory", last ? bytes(last.rss_kb * 1024) : "–", last ? count(last.links, "link") : "no sample yet"));
  }

  #drawRate(calls, from, until) {
    const size = Math.max(1, (until - from) / 90);
    const list = buckets(calls, from, until, size);
    const high = Math.max(1, ...list.map(({ ok, failed }) => ok + failed));
    const { canvas, say } = this.charts.rate;
    say(`${count(calls.length, "call")}, at most ${high} in ${milliseconds(size * 1000)}`);
    const chartOf = axes(canvas, { from, until, high, text: (value) => grouped(Math.round(value * 10) / 10), timeText: clock });
    if (!chartOf) return;
    const { context, x, y, inner } = chartOf;
    const width = Math.max(1, x(from + size) - x(from) - 1);
    for (const { at, ok, failed } of list) {
      context.fillStyle = colour("run");
      context.fillRect(x(at), y(ok + failed), width, y(failed) - y(ok + failed));
      context.fillStyle = colour("bad");
      context.fillRect(x(at), y(failed), width, inner.bottom - y(failed));
    }
  }

  #drawDurations(calls, from, until) {
    const ended = calls.filter((call) => !isOpen(call));
    const durations = ended.map((call) => Math.max(0.1, durationOf(call)));
    const lowest = durations.reduce((a, b) => Math.min(a, b), 100);
    const highest = durations.reduce((a, b) => Math.max(a, b), 10);
    const { canvas, say } = this.charts.durations;
    const { p50, p95 } = summaryOf(ended);
    say(ended.length ? `Half took less than ${milliseconds(p50)}, 95 % less than ${milliseconds(p95)}, the longest ${milliseconds(highest)}`
      : "No call has ended yet");
    const chartOf = axes(canvas, { from, until, low: 10 ** Math.floor(Math.log10(lowest)), high: 10 ** Math.ceil(Math.log10(highest)), isLog: true,
      text: milliseconds, timeText: clock });
    if (!chartOf) return;
    const { context, x, y, inner } = chartOf;
    this.#dots = [];
    context.globalAlpha = ended.length > 1500 ? 0.35 : 0.7;
    for (const failed of [false, true]) {
      context.fillStyle = colour(failed ? "bad" : "run");
      ended.forEach((call, index) => {
        if (isFailure(call) !== failed) return;
        const at = [x(call.begin), y(durations[index])];
        context.beginPath();
        context.arc(...at, 2.2, 0, 7);
        context.fill();
        this.#dots.push([...at, call.number]);
      });
    }
    context.globalAlpha = 1;
    context.setLineDash([3, 3]);
    context.textAlign = "right";
    for (const [name, value] of [["p50", p50], ["p95", p95]]) {
      if (value === undefined) continue;
      line(chartOf, [[from, value], [until, value]], colour("ink"));
      context.fillStyle = colour("ink");
      context.fillText(`${name} ${milliseconds(value)}`, inner.right - 2, y(value) - 4);
    }
    context.setLineDash([]);
  }

  #openDot({ offsetX, offsetY }) {
    const nearest = this.#dots.map(([x, y, number]) => [Math.hypot(x - offsetX, y - offsetY), number]).sort((a, b) => a[0] - b[0])[0];
    if (nearest && nearest[0] < 12) state.go({ panel: "calls", call: nearest[1] });
  }

  #drawSamples(samples, from, until) {
    const highest = samples.reduce((most, each) => Math.max(most, each.rss_kb * 1024), 1 << 20);
    const memory = axes(this.charts.memory.canvas, { from, until, high: highest * 1.15, text: (value) => (value ? bytes(value) : "0"), timeText: clock });
    if (memory) line(memory, samples.map(({ at, rss_kb: kb }) => [at, kb * 1024]), colour("write"), { fill: colour("write-faint") });
    this.charts.memory.say(samples.length ? `Now ${bytes(samples.at(-1).rss_kb * 1024)}, at most ${bytes(highest)}`
      : "There is no sample yet: the server sends one every two seconds");
    const most = samples.reduce((high, each) => Math.max(high, each.running, each.waiting), 2);
    const running = axes(this.charts.running.canvas, { from, until, high: most, text: (value) => grouped(Math.round(value * 10) / 10), timeText: clock });
    if (running) {
      line(running, samples.map(({ at, running: value }) => [at, value]), colour("run"), { fill: colour("accent-faint"), isStepped: true });
      line(running, samples.map(({ at, waiting }) => [at, waiting]), colour("start"), { isStepped: true });
    }
    this.charts.running.say(samples.length ? `At most ${most} at a time` : "There is no sample yet");
  }

  #sortBy(key) {
    this.#sort = { by: key, isDown: this.#sort.by === key ? !this.#sort.isDown : key !== "name" };
    this.draw();
  }

  #drawTable(calls) {
    const tokens = state.isOwnServer ? new Map(state.catalog.tools.map((item) => [item.definition.name, item.tokens ?? undefined])) : new Map();
    const rows = byTool(calls, tokens);
    const { by, isDown } = this.#sort;
    rows.sort((a, b) => (isDown ? -1 : 1) * (by === "name" ? a.name.localeCompare(b.name) : (a[by] ?? -1) - (b[by] ?? -1)));
    this.heads.forEach((head, index) => head.setAttribute("aria-sort", COLUMNS[index][0] !== by ? "none" : isDown ? "descending" : "ascending"));
    const longest = rows.reduce((most, row) => Math.max(most, row.durations.at(-1) || 0), 10);
    fill(this.body, rows.length ? rows.slice(0, 200).map((row) => h("tr", {}, COLUMNS.map(([key, , show]) => {
      if (key === "name") return h("th", { scope: "row" }, button("quiet.address", `figures-${row.name}`, () => showCalls(row.name), row.name));
      if (key === "durations") return h("td", {}, strip(row.durations, longest));
      return h("td.number", { class: key === "failures" && row.failures ? "bad" : "" }, show(row[key]));
    }))) : h("tr", {}, h("td", { colSpan: COLUMNS.length }, h("p.nothing", {}, "No calls in this time."))));
  }
}

function showCalls(name) {
  state.go({ panel: "calls", call: null, filter: /\s/.test(name) ? `name:"${name}"` : `name:${name}` });
}

/** The durations of a tool as a few marks on a common, logarithmic scale: where they begin, where most are, where they end. */
function strip(durations, longest) {
  if (!durations.length) return "";
  const place = (ms) => (100 * Math.log10(1 + ms)) / Math.log10(1 + longest);
  const at = (share) => place(durations[Math.min(durations.length - 1, Math.floor(share * durations.length))]);
  const piece = (name, from, until) => h(`span.${name}`, { style: { left: `${from}%`, width: `${Math.max(0.5, until - from)}%` } });
  return h("span.strip", { "aria-hidden": "true" }, piece("all", at(0), at(1)), piece("most", at(0.25), at(0.75)), piece("middle", at(0.5), at(0.5)));
}

function chart(title, testid, legend) {
  const canvas = h("canvas", { role: "img", testid });
  const sentence = h("p.chart-sentence");
  const node = h("figure.chart", {}, h("figcaption", {}, h("b", {}, title), legend.map(([name, text]) => h("span.key", { class: name }, text))),
    canvas, sentence);
  return { node, canvas, say(text) { sentence.textContent = text; canvas.setAttribute("aria-label", `${title}: ${text}`); } };
}

function tile(name, value, detail, mood = "") {
  return h("div.tile", { class: mood }, h("span.tile-name", {}, name), h("b", {}, value), h("span.tile-detail", {}, detail));
}

function rateText(rate) {
  if (!rate) return "0";
  return rate < 10 ? rate.toFixed(2) : rate.toFixed(0);
}

customElements.define("figures-panel", FiguresPanel);
