// The waterfall: all calls of all clients of a server, newest first or as they came, with a filter.

import { CallDetail } from "./call-detail.js";
import { durationOf, isOpen, isPoll, statusOf, statusText } from "./calls-model.js";
import { assign, button, fill, h, inNextFrame, Part, segmented } from "./dom.js";
import { KEYS, parse } from "./filter.js";
import { clock, count, grouped, milliseconds, visible } from "./format.js";
import { icon } from "./icons.js";
import { OverviewChart } from "./overview-chart.js";
import { addShortcuts } from "./shortcuts.js";
import { state } from "./state.js";
import { busyScale } from "./time-scale.js";
import { put } from "./virtual-rows.js";
import { drawBars } from "./waterfall-bars.js";

const OVERVIEW_EVERY_MS = 300;
const UPDATE_EVERY_MS = 100;
const LABEL_PIXELS = 66;
const EXACT_LABEL_PIXELS = 100;
const EXAMPLES = ["status:error", "status:running", "status:hung", "dur:>1s", "method:tools/call"];

class CallsPanel extends Part {
  #isPaused = false;
  #alignment = "busy";
  #overviewAt = 0;
  #update = inNextFrame(() => this.update());
  #isUpdatePlanned = false;
  #axisWidth = 0;
  #track = null; // where the bars are, for a width of the list
  #trackFor = 0;
  #scale = null;
  #shown = [];

  build() {
    this.filter = h("input", {
      type: "search", "data-search": "", placeholder: "tool:stats status:error dur:>1s client:cursor", "aria-label": "Filter", testid: "filter",
      spellcheck: false, autocomplete: "off", "aria-describedby": "filter-note",
      oninput: () => filterBy(this.filter.value),
      onkeydown: (event) => {
        if (event.key === "Escape" && this.filter.value) filterBy("");
        else if (event.key === "ArrowDown" || event.key === "Enter") this.rows.focus();
        else return;
        event.preventDefault();
      },
    });
    this.note = h("span.filter-note", { id: "filter-note", role: "status", testid: "filter-note" });
    this.pause = assign(button("quiet", "pause", () => this.hold(), icon("pause"), "Hold"), { title: "Hold the list still (p)", "aria-pressed": "false" });
    this.hung = assign(button("hung-note", "hung", () => filterBy("status:hung")), { hidden: true });
    this.lost = h("span.lost-note", { role: "status", testid: "lost", hidden: true });
    this.examples = h("div.examples", { role: "group", "aria-label": "Filters" },
      EXAMPLES.map((text) => button("chip", `example-${text}`, () => filterBy(text), text)));
    this.overview = new OverviewChart();
    this.axis = h("div.axis", { "aria-hidden": "true" });
    this.rows = h("virtual-rows", { class: "waterfall" });
    this.rows.setUp({
      label: "Calls", testid: "calls", keyOf: (call) => call.number, row: makeRow, show: (row, call) => this.#showRow(row, call),
      open: (call) => state.go({ call: call.number }), beforeDraw: (calls) => this.#measure(calls),
      afterDraw: (range) => this.#drawBars(range),
    });
    this.bars = h("canvas.bars", { "aria-hidden": "true" });
    this.rows.field.append(this.bars);
    this.empty = h("div.empty", { testid: "no-calls" });
    this.detail = new CallDetail();
    this.append(
      h("div.calls-main", {},
        h("div.toolbar", {},
          h("div.search", {}, icon("search"), this.filter), this.note, h("span.push"), this.lost, this.hung,
          segmented("Bars", [["busy", "In time"], ["start", "Same start"]], "busy", (value) => { this.#alignment = value; this.rows.draw(); }, "align"),
          this.pause),
        this.examples, this.overview,
        h("div.waterfall-head", { "aria-hidden": "true" }, h("span", {}, "call"), h("span", {}, "what"), this.axis, h("span", {}, "took")),
        this.rows, this.empty),
      this.detail);
    addShortcuts("Calls", [
      ["ArrowUp, ArrowDown", "Another call"], ["Enter", "Open the call"], ["Escape", "Close the call", () => state.call !== null && state.go({ call: null })],
      ["p", "Hold the list still, or go on", () => this.hold()],
      ["n", "Next failure", () => this.nextFailure()],
    ], () => state.panel === "calls");
  }

  connected() {
    this.listen(state.calls, "change", () => this.#updateSoon());
    new ResizeObserver(() => { this.#axisWidth = this.axis.clientWidth; }).observe(this.axis);
    this.listen(state, "place", () => {
      if (this.filter.value !== state.filter) this.filter.value = state.filter;
      this.classList.toggle("is-open", state.call !== null);
      this.update({ isForced: true });
      if (state.call !== null && this.rows.chosenKey !== state.call) this.rows.chooseKey(state.call);
    });
    this.listen(state, "server", () => this.rows.chooseKey(undefined));
    this.listen(this.overview, "moment", ({ detail }) => this.#scrollTo(detail));
    this.listen(window, "theme", this.#update);
    this.every(250, () => state.panel === "calls" && this.#shown.some(isOpen) && this.rows.draw());
    this.filter.value = state.filter;
  }

  #updateSoon() {
    if (this.#isUpdatePlanned) return;
    this.#isUpdatePlanned = true;
    setTimeout(() => {
      this.#isUpdatePlanned = false;
      this.#update();
    }, UPDATE_EVERY_MS);
  }

  hold() {
    this.#isPaused = !this.#isPaused;
    this.pause.setAttribute("aria-pressed", String(this.#isPaused));
    this.update({ isForced: true });
  }

  update({ isForced = false } = {}) {
    if (state.panel !== "calls" || (this.#isPaused && !isForced)) return;
    const isWanted = parse(state.filter);
    const hasPolls = /tasks\/|method:/.test(state.filter);
    const all = hasPolls ? state.calls.list : state.calls.list.filter((call) => !isPoll(call) && !isOfWorkbench(call));
    const shown = all.filter((call) => isWanted(call, state.calls.server)).sort(byBegin);
    const known = this.rows.items[0]?.number;
    this.#shown = shown;
    const wasAtTop = this.rows.scrollTop < 4;
    const added = wasAtTop || known === undefined ? 0 : shown.findIndex((call) => call.number === known);
    this.rows.replace(shown, isForced ? 0 : Math.max(0, added));
    this.#showNotes(all, shown);
    this.detail.show(state.call === null ? null : state.calls.calls.get(state.call) ?? "missing");
    this.#drawOverview();
  }

  nextFailure() {
    const from = this.#shown.findIndex((call) => call.number === this.rows.chosenKey);
    const index = this.#shown.findIndex((call, at) => at > from && (call.isHung || ["failed", "timed out", "refused"].includes(call.status)));
    if (index < 0) return false;
    this.rows.choose(index, { isOpened: state.call !== null });
    return true;
  }

  #showNotes(all, shown) {
    const hung = all.filter((call) => call.isHung).length;
    this.hung.hidden = !hung;
    fill(this.hung, icon("warning"), `${count(hung, "call")} without a sign of life`);
    const { lost } = state.calls;
    this.lost.hidden = !lost;
    this.lost.textContent = `${count(lost, "event")} missed`;
    this.note.textContent = shown.length < all.length ? `${grouped(shown.length)} of ${count(all.length, "call")}` : count(all.length, "call");
    this.empty.hidden = shown.length > 0;
    this.rows.hidden = !shown.length;
    if (shown.length) return;
    fill(this.empty, all.length
      ? [h("h2", {}, "No call is like that"), h("p", {}, `Keys: ${KEYS.join(", ")}. Anything else is a word to look for.`),
        button("", "clear-filter", () => filterBy(""), "Show all calls")]
      : [h("h2", {}, "No calls yet"),
        h("p", {}, state.isOwnServer ? "Try a tool, or choose a running server at the top." : "As soon as its client calls something, it appears here.")]);
  }

  #measure(calls) {
    this.now = state.calls.now();
    // A call that hangs only counts with its begin: else the others would be too small to see.
    const spans = calls.map((call) => [call.begin, call.begin + (call.isHung ? 0 : durationOf(call, this.now) / 1000)]);
    if (this.#alignment === "start") {
      const longest = Math.max(0.001, ...spans.map(([begin, end]) => end - begin));
      this.#scale = { of: () => (ms) => (100 * ms) / 1000 / longest };
      const marks = [0, 0.25, 0.5, 0.75, 1];
      fill(this.axis, marks.map((share) => h("span", { style: { left: `${100 * share}%` }, class: share === 1 ? "last" : "" },
        milliseconds(share * longest * 1000))));
      return;
    }
    const scale = busyScale(spans);
    this.#scale = { of: (call) => (ms) => scale.place(call.begin + ms / 1000) };
    const isExact = scale.total < 60;
    const room = (100 * (isExact ? EXACT_LABEL_PIXELS : LABEL_PIXELS)) / (this.#axisWidth || 1);
    const labels = [];
    for (const { at, percent } of scale.marks) {
      if (percent > 100 - room || (labels.length && percent - labels.at(-1).percent < room)) continue;
      labels.push({ at, percent });
    }
    fill(this.axis, labels.map(({ at, percent }) => h("span", { style: { left: `${percent}%` } }, clock(at, { isExact }))));
  }

  #showRow(row, call) {
    const { number, sign, name, client, took } = row.parts;
    const status = statusOf(call);
    const time = isOpen(call) ? `${milliseconds(durationOf(call, this.now))} …` : milliseconds(durationOf(call));
    const isRetry = call.interaction !== undefined && call.interaction !== call.number;
    put(row, "data-status", status);
    put(row, "data-testid", `call-${call.number}`);
    put(number, "text", call.number > 0 ? String(call.number) : "–");
    put(sign, "data-status", status);
    put(sign, "aria-label", statusText(call));
    put(name, "text", visible(call.name || call.method || "…"));
    put(client, "text", [isRetry && `↳ of ${call.interaction}`, call.client, call.polls && count(call.polls, "poll")].filter(Boolean).join(" · "));
    put(took, "text", time);
  }

  #drawBars({ from, until }) {
    const track = this.rows.querySelector(".virtual-row:not([hidden]) .track");
    if (!track) return;
    if (this.#trackFor !== this.rows.width) {
      this.#trackFor = this.rows.width;
      this.#track = { left: track.offsetLeft, width: track.offsetWidth };
    }
    drawBars(this.bars, { calls: this.#shown.slice(from, until), from, row: this.rows.rowHeight, ...this.#track, now: this.now, placesOf: this.#scale.of });
  }

  #drawOverview() {
    const now = performance.now();
    if (now - this.#overviewAt < OVERVIEW_EVERY_MS) return;
    this.#overviewAt = now;
    const calls = this.#shown;
    if (!calls.length) {
      this.overview.hidden = true;
      return;
    }
    this.overview.hidden = false;
    const { first, last } = this.rows.inView;
    const from = calls.at(-1).begin;
    const until = Math.max(from + 1, calls[0].begin);
    this.overview.show(calls, [from, until], [calls[Math.min(last, calls.length) - 1]?.begin ?? from, calls[first]?.begin ?? until]);
  }

  #scrollTo(moment) {
    const index = this.#shown.findIndex((call) => call.begin <= moment);
    this.rows.scrollTop = (index < 0 ? this.#shown.length : index) * this.rows.rowHeight - this.rows.clientHeight / 2;
    this.#overviewAt = 0;
    this.#update();
  }
}

function filterBy(filter) {
  state.go({ filter }, { isReplaced: true });
}

/** The newest first. Of calls that had ended before the page looked, the server tells in the order of their ends. */
const byBegin = (one, other) => other.begin - one.begin || other.number - one.number;

/** Whether the workbench has asked this for itself, not somebody on the page. */
const isOfWorkbench = ({ method }) => state.isOwnServer && /^initialize$|\/setLevel$|\/list$/.test(method);

function makeRow() {
  const row = h("div.call-row");
  row.parts = { number: h("span.call-number"), sign: h("span.dot", { role: "img" }), name: h("span.call-name"), client: h("span.call-client"),
    took: h("span.call-took") };
  row.append(row.parts.number, row.parts.sign, h("span.call-what", {}, row.parts.name, row.parts.client), h("span.track"), row.parts.took);
  return row;
}

customElements.define("calls-panel", CallsPanel);
