// One call, opened: where the time went, its process, what it printed, its frames, what happened when.

import { anatomy } from "./call-bar.js";
import { cpuOf, durationOf, isOpen, statusOf, statusText } from "./calls-model.js";
import { button, copy, fill, h, Part } from "./dom.js";
import { isObject, parse, stringify } from "./exact-json.js";
import { bytes, clock, milliseconds, shortened, visible } from "./format.js";
import { icon } from "./icons.js";
import { jsonView } from "./json-view.js";
import { state } from "./state.js";
import { copyButton, textView } from "./text-view.js";

const MOST_FRAMES = 40;
const REDRAW_MS = 250;
const ORIGINS = {
  server: "about the server", environment: "from the environment of the server", call: "about this call", tool: "from the tool's description",
  client: "about the client", sdk: "for the SDK", roots: "the client's roots",
};
const SIGNALS = { 1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM", 24: "SIGXCPU" };
const WAYS = { fresh: "a fresh process", forked: "forked from a warm process", resident: "a resident process" };

export class CallDetail extends Part {
  #key = "";
  #drawnAt = 0;

  build() {
    this.classList.add("call-detail");
    this.dataset.testid = "call-detail";
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", "Call");
    this.hidden = true;
  }

  /** A call, null, or "missing". */
  show(call) {
    this.hidden = call === null;
    if (call === null || call === "missing") {
      const key = String(call && `${call} ${state.call}`);
      if (this.#key === key) return;
      this.#key = key;
      fill(this, call && [this.#head(`Call ${state.call}`), h("p.nothing", {}, "Nothing is known of this call: it was too long ago, or has not come yet.")]);
      return;
    }
    const key = [call.number, statusOf(call), call.frames.length, call.notes.length, call.lastSign, call.stdout?.bytes, call.stderr?.bytes].join();
    const now = performance.now();
    const isSame = this.#key.split(",")[0] === String(call.number);
    if (this.#key === key || (isSame && isOpen(call) && now - this.#drawnAt < REDRAW_MS)) return;
    this.#key = key;
    this.#drawnAt = now;
    this.#draw(call, isSame);
  }

  #head(title, ...rest) {
    return h("header.detail-head", {}, h("div", {}, h("h2", {}, title), rest),
      h("button.icon-button", { type: "button", title: "Close (Esc)", "aria-label": "Close", testid: "close-call",
        onclick: () => state.go({ call: null }) }, icon("close")));
  }

  #draw(call, isSame) {
    const open = new Set([...this.querySelectorAll("details[open][data-testid]")].map((each) => each.dataset.testid));
    const { scrollTop } = this;
    const now = state.calls.now();
    const related = state.calls.interactionOf(call).filter((each) => each !== call);
    fill(this,
      this.#head(visible(call.name || call.method || "…"), h("p.subtitle", {},
        h("span.status", { "data-status": statusOf(call), testid: "call-status" }, statusText(call)),
        h("span", {}, call.number > 0 ? `Call ${call.number}` : "refused before it became a call"),
        h("span", {}, clock(call.begin, { isExact: true })), h("b", {}, milliseconds(durationOf(call, now))))),
      buttonsOf(call),
      sentenceOf(call),
      anatomy(call, now),
      call.queuedAt === undefined && call.number > 0 && h("p.nothing", {}, "It ended before anybody looked, so this is all that is known of it."),
      related.length > 0 && section("Same interaction", h("p.chips", {}, related.slice(0, 20).map((each) => (
        button("chip", `related-${each.number}`, () => state.go({ call: each.number }), `Call ${each.number}: ${statusText(each)}`))))),
      call.arguments !== undefined && Object.keys(call.arguments).length > 0 && section("Arguments", jsonView(call.arguments)),
      section("Who", facts([
        ["Client", [call.client || "unknown", h("span.kind", {}, call.revision)]], ["Method", h("code", {}, call.method || "–")],
        ["Link", call.link], ["Answer", call.bytes && bytes(call.bytes)], ["Calls before it", call.place || null], ["Polls", call.polls || null],
      ])),
      call.argv && section("Process", processView(call)),
      outputView(call, "stderr"), outputView(call, "stdout"),
      call.tasks && section("Task", h("ol.life", {}, call.tasks.map((each) => h("li", { "data-status": each.status },
        h("b", {}, each.status), " ", each.message && visible(each.message), h("span.when", {}, clock(each.at)))))),
      call.notes.length > 0 && section("What happened", h("ol.notes", {}, call.notes.slice(-200).map((each) => noteView(each, call.begin)))),
      call.frames.length > 0 && section(`Frames: ${call.frames.length}`, call.frames.slice(-MOST_FRAMES).map((each, at) => frameView(each, at, call.begin))));
    for (const name of open) for (const each of this.querySelectorAll("details")) if (each.dataset.testid === name) each.open = true;
    this.scrollTop = isSame ? scrollTop : 0;
  }
}

function buttonsOf({ method, name, number, arguments: args }) {
  const item = { kind: "tool", id: name };
  const address = `${location.origin}/?call=${number}${state.isOwnServer ? "" : `&server=${state.server}`}#calls`;
  const request = () => stringify({ jsonrpc: "2.0", id: 1, method, params: { name, arguments: args } });
  return h("div.buttons", {},
    method === "tools/call" && state.itemOf(item) && button("", "try-call",
      () => state.go({ panel: "try", item, filledIn: isObject(args) ? args : null }), icon("try"), "Try this tool"),
    button("quiet", "copy-link", () => copy(address, "the link to this call"), icon("link"), "Link"),
    args && button("quiet", "copy-call", () => copy(request(), "the JSON-RPC request"), icon("copy"), "JSON-RPC"));
}

/** Why it ended as it did, where that is not obvious. */
function sentenceOf(call) {
  const parts = [];
  if (call.isHung) parts.push("It is still open, and nothing was heard of it for 30 seconds.");
  if (call.status === "timed out") parts.push(`It took longer than it may${call.limit ? `: ${call.limit}` : ""}.`);
  if (call.status === "cancelled") parts.push(`It was cancelled${call.by ? ` by the ${call.by}` : ""}.`);
  if (call.reason) parts.push(visible(String(call.reason)));
  return parts.length ? h("p.sentence", { "data-status": call.status, testid: "sentence" }, parts.join(" ")) : null;
}

function processView(call) {
  const groups = new Map();
  for (const [name, origin] of call.variables || []) groups.set(origin, [...(groups.get(origin) || []), name]);
  return [
    h("pre.code.argv", { testid: "argv" }, call.argv.map((each) => h("span.argument", {}, quoted(each), " "))),
    facts([
      ["Directory", call.cwd && h("code", {}, call.cwd)],
      ["Process", call.pid && [h("code", {}, call.pid), h("span.kind", {}, WAYS[call.way] || call.way)]],
      ["End", endOf(call)],
      ["CPU", cpuOf(call) === undefined ? undefined : [milliseconds(cpuOf(call)),
        h("span.kind", {}, `user ${milliseconds(call.userMs)}, system ${milliseconds(call.systemMs)}`)]],
      ["Wall clock", call.wallMs === undefined ? undefined : milliseconds(call.wallMs)],
      ["Memory, at most", call.peakKb === undefined ? undefined : bytes(call.peakKb * 1024)],
    ]),
    groups.size > 0 && h("details.variables", { testid: "variables" }, h("summary", {}, `Environment: ${call.variables.length} variables, by name`),
      [...groups].map(([origin, names]) => h("div", {}, h("p.role", {}, ORIGINS[origin] || origin),
        h("p.names", {}, names.map((name) => [h("code", {}, name), " "]))))),
  ];
}

function endOf({ exit, signal, exitedAt }) {
  if (exitedAt === undefined) return h("span.status", { "data-status": "running" }, "running");
  const name = SIGNALS[signal] || `signal ${signal}`;
  return signal ? h("span.status", { "data-status": "failed" }, `ended by ${name}`)
    : h("span.status", { "data-status": exit ? "failed" : "ok" }, `exit ${exit}`);
}

function quoted(argument) {
  const text = visible(shortened(String(argument), 500));
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function outputView(call, stream) {
  const output = call[stream];
  if (!output?.bytes && !output?.tail) return null;
  const isCut = output.bytes > new Blob([output.tail || ""]).size;
  return section(`${stream}: ${bytes(output.bytes)}`, isCut && h("p.field-note", {}, "The end of it:"),
    textView(output.tail || "", { label: stream, testid: stream }));
}

function frameView({ way, bytes: size, frame, ms, at }, index, begin) {
  let view = null;
  const body = h("div.frame-body");
  const details = h("details.frame", { "data-way": way, testid: `frame-${index}` },
    h("summary", {}, h("b", {}, way === "in" ? "→ in" : "← out"), h("span", {}, `+${milliseconds(Math.max(0, (at - begin) * 1000))}`),
      h("span", {}, bytes(size)), ms !== undefined && h("span", {}, `written in ${milliseconds(ms)}`),
        h("code", {}, visible(shortened(frame || "", 90)))), body);
  details.addEventListener("toggle", () => {
    if (!details.open || view) return;
    view = frame ? [copyButton(frame, "the frame", `copy-frame-${index}`), frameText(frame)] : h("p.nothing", {}, "Its text is no longer kept.");
    fill(body, view);
  });
  return details;
}

function frameText(frame) {
  try {
    return jsonView(parse(frame), { openTo: 4 });
  } catch {
    return textView(frame, { label: "Frame" }); // it was cut
  }
}

function noteView(event, begin) {
  const text = {
    progress: () => `${event.progress}${event.total ? ` of ${event.total}` : ""}${event.message ? `: ${event.message}` : ""}`,
    log: () => `${event.level}${event.logger ? ` (${event.logger})` : ""}: ${typeof event.data === "string" ? event.data : stringify(event.data)}`,
    asked: () => `asked: ${event.message || event.method}`,
    answered: () => `answered: ${event.action}`,
    policy: () => `policy: ${event.decision}${event.why ? `, ${event.why}` : ""}`,
  }[event.kind]();
  return h("li", { "data-kind": event.kind, "data-level": event.level },
    h("span.when", {}, `+${milliseconds(Math.max(0, (event.at - begin) * 1000))}`), h("span", {}, visible(shortened(String(text), 2000))));
}

function facts(rows) {
  const known = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return h("dl.facts", {}, known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

const section = (title, ...content) => h("section.section", {}, h("h3", {}, title), content);

customElements.define("call-detail", CallDetail);
