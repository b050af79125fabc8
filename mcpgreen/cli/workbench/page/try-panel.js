// Call what the project offers, as a client of any revision, and look at what comes back.

import { saveTest } from "./api.js";
import { compareDialog } from "./compare-view.js";
import { announce, button, copy, fill, h, Part, segmented } from "./dom.js";
import { stringify } from "./exact-json.js";
import { clock, milliseconds, shellLine, shortened, visible } from "./format.js";
import { historyOf, remember } from "./history.js";
import { icon } from "./icons.js";
import { descriptionOf, idOf, nameOf } from "./items.js";
import { Interaction } from "./interaction.js";
import { ItemList } from "./item-list.js";
import { OutcomeView } from "./outcome-view.js";
import { SchemaForm } from "./schema-form.js";
import { addShortcuts, keysOf } from "./shortcuts.js";
import { state } from "./state.js";
import { targetOf, valueOf } from "./targets.js";

const MOST_DESKS = 30;

class TryPanel extends Part {
  #desks = new Map(); // what was typed and seen for each item, kept while the page is open
  #options = { revision: "", capabilities: "all", task: false };

  build() {
    this.list = new ItemList({ panel: "try" });
    this.head = h("header.detail-head");
    this.form = h("div.desk-form");
    this.kept = h("div.kept");
    this.outcome = h("section.outcome-column", { "aria-label": "Answer", testid: "try-outcome" });
    this.run_ = button("primary", "run", () => this.run(), icon("try"), "Run", keysOf("Mod+Enter"));
    this.again_ = h("button", { type: "button", testid: "again", title: "Again with the same arguments (r)", onclick: () => this.again() },
      icon("again"), "Again", keysOf("r"));
    this.cancel_ = h("button.danger", { type: "button", testid: "cancel", hidden: true, onclick: () => this.cancel() }, "Cancel", keysOf("Escape"));
    this.more = h("div.more-buttons", {},
      h("button.quiet", { type: "button", testid: "copy-line", title: "Copy as run-tool line (y)", onclick: () => this.copyLine() }, icon("copy"),
        "run-tool line"),
      h("button.quiet", { type: "button", testid: "copy-rpc", title: "Copy as JSON-RPC (Y)", onclick: () => this.copyRpc() }, icon("copy"), "JSON-RPC"),
      h("button.quiet", { type: "button", testid: "compare", title: "Compare the revisions (c)", onclick: () => this.compare() }, "Compare"),
      h("button.quiet", { type: "button", testid: "save-test", title: "Save as test (s)", onclick: () => this.saveTest() }, icon("star"), "Save as test"));
    this.optionsRow = h("div.options");
    const task = h("input", { type: "checkbox", testid: "as-task", onchange: () => { this.#options.task = task.checked; } });
    this.task = h("label.option.check", {}, task, h("span", {}, "as a task"));
    this.dialog = compareDialog();
    this.desk = h("section.desk", { "aria-label": "Request", testid: "desk" }, this.head, this.form, this.kept,
      h("footer.desk-foot", {}, this.optionsRow, h("div.buttons", {}, this.run_, this.cancel_, this.again_, h("span.push"), this.task), this.more));
    this.append(h("div.side", {}, this.list), this.desk, this.outcome, this.dialog);
    addShortcuts("Try", [
      ["Mod+Enter", "Run", () => this.run()],
      ["r", "Again with the same arguments", () => this.again()],
      ["Escape, x", "Cancel what runs", () => this.cancel()],
      ["j", "Form or JSON", () => this.current?.form.show(this.current.form.querySelector("[data-testid=mode-form]").checked ? "json" : "form")],
      ["y", "Copy as run-tool line", () => this.copyLine()],
      ["Y", "Copy as JSON-RPC", () => this.copyRpc()],
      ["c", "Compare the revisions", () => this.compare()],
      ["s", "Save as test", () => this.saveTest()],
    ], () => state.panel === "try");
  }

  connected() {
    this.listen(this, "item", ({ detail: { kind, id } }) => {
      this.classList.remove("is-choosing");
      state.go({ item: { kind, id } });
      this.current?.form.focusFirst();
    });
    this.listen(this, "read-resource", ({ detail: uri }) => this.#readResource(uri));
    this.listen(state, "place", () => this.draw());
    this.listen(state, "catalog", () => this.draw());
    this.listen(state, "project", () => this.#drawOptions());
    this.#drawOptions();
    this.draw();
  }

  draw() {
    if (state.panel !== "try") return;
    if (!state.item && state.catalog.tools.length) state.item = { kind: "tool", id: idOf(state.catalog.tools[0].definition) };
    const item = state.item && state.itemOf(state.item);
    this.classList.toggle("has-item", Boolean(item));
    if (!item) {
      this.current = null;
      fill(this.head, h("p.nothing", {}, state.item ? `There is no ${state.item.kind} ${state.item.id} (any more).` : "Nothing can be tried yet."));
      fill(this.form);
      fill(this.kept);
      fill(this.outcome);
      return;
    }
    const { kind } = state.item;
    const { definition } = item;
    const desk = this.#deskOf(kind, definition);
    fill(this.head, h("div", {},
      button("quiet.back", "try-back", () => this.classList.add("is-choosing"), icon("back"), "All items"),
      h("p.eyebrow", {}, kind), h("h2", {}, nameOf(definition)), h("p.subtitle", {}, visible(shortened(descriptionOf(definition) || idOf(definition), 240)))),
      button("quiet", "to-catalog", () => state.go({ panel: "catalog" }), "In the catalog"));
    this.more.querySelector("[data-testid=copy-line]").hidden = this.more.querySelector("[data-testid=save-test]").hidden = kind !== "tool";
    if (state.filledIn) desk.form.value = state.filledIn;
    state.filledIn = null;
    if (this.current === desk) return;
    this.current = desk;
    fill(this.form, desk.form);
    fill(this.outcome, desk.outcome);
    this.#drawKept();
    this.#showButtons();
  }

  /** The form and the answer of an item. After an edit of its schema, what was typed stays as far as it fits. */
  #deskOf(kind, definition) {
    const key = `${kind} ${idOf(definition)}`;
    const target = targetOf(kind, definition);
    const digest = JSON.stringify(target.schema);
    let desk = this.#desks.get(key);
    if (desk && desk.digest === digest) {
      Object.assign(desk, { target, definition });
      return desk;
    }
    const form = new SchemaForm();
    let value;
    if (desk) {
      try {
        ({ value } = desk.form);
      } catch {
        return Object.assign(desk, { target, definition }); // unfinished JSON stays as it is
      }
    }
    form.open(target.schema, value);
    desk = { key, kind, definition, target, digest, form, outcome: desk?.outcome || new OutcomeView(), item: { kind, id: idOf(definition) } };
    if (!desk.outcome.run) desk.outcome.show(null);
    this.#desks.delete(key);
    this.#desks.set(key, desk);
    if (this.#desks.size > MOST_DESKS) this.#desks.delete(this.#desks.keys().next().value);
    return desk;
  }

  /** The request as the form has it now, or null with a message. */
  #request() {
    if (!this.current) return null;
    try {
      return this.current.target.request(this.current.form.value);
    } catch (error) {
      announce(`The arguments are not JSON yet: ${error.message}`, { isError: true });
      return null;
    }
  }

  run(request = this.#request()) {
    const desk = this.current;
    if (!request || !desk) return false;
    if (desk.outcome.run?.isRunning) {
      announce("It is still running. Cancel it first.");
      return true;
    }
    const options = this.#chosenOptions();
    const run = new Interaction({ ...request, ...options });
    run.addEventListener("change", () => desk === this.current && this.#showButtons());
    desk.outcome.show(run, { app: desk.definition._meta?.ui?.resourceUri });
    this.#showButtons();
    if (matchMedia("(width < 900px)").matches) this.outcome.scrollIntoView({ block: "start" });
    run.run().then(() => {
      remember(state.project?.root, desk.item, { at: Date.now() / 1000, params: request.params, options, outcome: run.outcome, ms: run.elapsed });
      if (desk === this.current) this.#drawKept();
    });
    return true;
  }

  again() {
    const last = this.current && (this.current.outcome.run?.body.params || historyOf(state.project?.root, this.current.item)[0]?.params);
    if (!last) return this.run();
    this.#fillIn(last);
    return this.run({ method: this.current.target.request(undefined).method, params: last });
  }

  cancel() {
    if (!this.current?.outcome.run?.isRunning) return false;
    this.current.outcome.run.cancel().catch((error) => announce(error.message, { isError: true }));
    return true;
  }

  #fillIn(params) {
    const { kind, form } = this.current;
    const value = valueOf(kind, params);
    if (value !== undefined && form.modes) form.value = value;
  }

  async #onTool(work) {
    const request = this.#request();
    if (!request || this.current.kind !== "tool") return;
    try {
      await work(request.params);
    } catch (error) {
      announce(error.message, { isError: true });
    }
  }

  copyLine() {
    this.#onTool(({ name, arguments: args }) => copy(shellLine(["mcpgreen", "run-tool", name, "--args", stringify(args),
      "--project-root", state.project.root]), "the run-tool line"));
  }

  copyRpc() {
    const request = this.#request();
    if (request) copy(stringify({ jsonrpc: "2.0", id: 1, ...request }), "the JSON-RPC request");
  }

  compare() {
    const request = this.#request();
    if (request) this.dialog.compare(request.method, request.params, state.project.revisions);
  }

  saveTest() {
    const run = this.current?.outcome.run;
    if (!run?.answer?.frame.result) {
      announce("Run it first: the test expects the same result.");
      return;
    }
    this.#onTool(async () => {
      const { name, arguments: args } = run.body.params;
      const { file } = await saveTest({ tool: name, arguments: args, result: run.answer.frame.result });
      announce(`Written: ${file}`);
    });
  }

  #readResource(uri) {
    const found = ["resource", "skill"].flatMap((kind) => (state.catalog[`${kind}s`] || []).map((item) => ({ kind,
      item }))).find(({ item }) => item.definition.uri === uri);
    if (found) {
      state.go({ item: { kind: found.kind, id: uri } });
      this.run();
    } else {
      this.run({ method: "resources/read", params: { uri } });
    }
  }

  #drawKept() {
    const runs = historyOf(state.project?.root, this.current.item);
    fill(this.kept, runs.length > 0 && [h("h3", {}, "Last calls"), h("ol.kept-list", {}, runs.map((run, index) => h("li", {}, h("button.kept-call", {
      type: "button", testid: `kept-${index}`, title: "Fill in again",
      onclick: () => {
        this.#fillIn(run.params);
        this.current.form.focusFirst();
      },
    }, h("span.dot", { "data-status": run.outcome }), h("code", {}, shortened(argumentsOf(run.params), 90)),
      h("span.when", {}, `${milliseconds(run.ms)} · ${clock(run.at)}`)))))]);
  }

  #showButtons() {
    const run = this.current?.outcome.run;
    this.cancel_.hidden = !run?.isRunning;
    this.cancel_.disabled = Boolean(run?.isCancelling);
    this.run_.disabled = Boolean(run?.isRunning);
    this.again_.disabled = Boolean(run?.isRunning);
    this.outcome.classList.toggle("has-run", Boolean(run));
  }

  #chosenOptions() {
    return { ...this.#options, revision: this.#options.revision || state.project?.revisions.at(-1) };
  }

  #drawOptions() {
    const revisions = [...(state.project?.revisions || [])].reverse();
    const select = h("select", { testid: "revision", onchange: () => { this.#options.revision = select.value; } },
      revisions.map((each) => h("option", { value: each }, each)));
    select.value = this.#options.revision || revisions[0] || "";
    fill(this.optionsRow,
      h("label.option", {}, h("span", {}, "Client of"), h("span.select", {}, select, icon("down"))),
      h("div.option", {}, h("span", {}, "Capabilities"), segmented("Capabilities of the client", [["all", "all"], ["none", "none"]],
        this.#options.capabilities, (value) => { this.#options.capabilities = value; }, "capabilities")));
  }
}

function argumentsOf(params) {
  if (params.uri) return params.uri;
  const text = JSON.stringify(params.arguments ?? {});
  return text === "{}" ? "no arguments" : text.slice(1, -1);
}

customElements.define("try-panel", TryPanel);
