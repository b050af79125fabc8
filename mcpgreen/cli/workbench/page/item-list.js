// The list of what the project offers, with a search and the kinds as switches. Used by Catalog and Try.

import { fill, h, Part } from "./dom.js";
import { count, grouped } from "./format.js";
import { icon } from "./icons.js";
import { descriptionOf, idOf, nameOf } from "./items.js";
import { KINDS, state } from "./state.js";
import { put } from "./virtual-rows.js";

const PLURAL = { tool: "Tools", resource: "Resources", template: "Templates", prompt: "Prompts", skill: "Skills", "left out": "Left out" };

export class ItemList extends Part {
  #kind = "";

  constructor({ hasLeftOut = false, panel = "catalog" } = {}) {
    super();
    this.hasLeftOut = hasLeftOut;
    this.panel = panel;
  }

  build() {
    this.search = h("input", {
      type: "search", placeholder: "Search", "aria-label": "Search the catalog", testid: `${this.panel}-search`, "data-search": "",
      oninput: () => this.draw(), onkeydown: (event) => this.#key(event),
    });
    this.kinds = h("div.kinds", { role: "group", "aria-label": "Kinds" });
    this.rows = h("virtual-rows");
    this.rows.setUp({
      label: "Items", testid: `${this.panel}-items`, keyOf: keyOfEntry, row: makeRow, show: showRow,
      open: (entry) => this.dispatchEvent(new CustomEvent("item", { bubbles: true, detail: entry })),
    });
    this.foot = h("p.list-foot");
    this.append(h("div.search", {}, icon("search"), this.search), this.kinds, this.rows, this.foot);
  }

  connected() {
    this.listen(state, "catalog", () => this.draw());
    this.listen(state, "place", () => this.mark());
    this.draw();
  }

  draw() {
    const all = entriesOf(state.catalog, this.hasLeftOut);
    const kinds = [...KINDS, "left out"].map((kind) => [kind, all.filter((entry) => entry.kind === kind).length]).filter(([, number]) => number);
    if (this.#kind && !kinds.some(([kind]) => kind === this.#kind)) this.#kind = "";
    fill(this.kinds, [["", all.length], ...kinds].map(([kind, number]) => h("button.chip", {
      type: "button", "aria-pressed": String(kind === this.#kind), testid: `${this.panel}-kind-${kind.replace(" ", "-") || "all"}`,
      onclick: () => { this.#kind = kind; this.draw(); this.kinds.querySelector("[aria-pressed=true]").focus(); },
    }, kind ? PLURAL[kind] : "All", h("span.count", {}, grouped(number)))));
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.rows.replace(all.filter((entry) => (!this.#kind || entry.kind === this.#kind) && words.every((word) => entry.words.includes(word))));
    this.foot.textContent = this.rows.items.length === all.length ? count(all.length, "item")
      : `${grouped(this.rows.items.length)} of ${count(all.length, "item")}`;
    this.mark();
  }

  mark() {
    if (state.item) this.rows.chooseKey(`${state.item.kind} ${state.item.id}`);
  }

  #key(event) {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      if (this.rows.chosenKey === undefined || !this.rows.items.some((entry) => keyOfEntry(entry) === this.rows.chosenKey)) this.rows.choose(0);
      this.rows.focus();
      if (event.key === "Enter") this.rows.open(this.rows.items.find((entry) => keyOfEntry(entry) === this.rows.chosenKey) || this.rows.items[0]);
      event.preventDefault();
    } else if (event.key === "Escape" && this.search.value) {
      this.search.value = "";
      this.draw();
    }
  }
}

function entriesOf(catalog, hasLeftOut) {
  const entries = KINDS.flatMap((kind) => (catalog[`${kind}s`] || []).map((item) => ({
    kind, item, id: idOf(item.definition), name: nameOf(item.definition),
      text: item.definition.title || descriptionOf(item.definition) || idOf(item.definition),
    worst: item.findings[0]?.level,
    words: [nameOf(item.definition), item.definition.title, descriptionOf(item.definition), idOf(item.definition), item.file].join(" ").toLowerCase(),
  })));
  if (!hasLeftOut) return entries;
  return [...entries, ...catalog.leftOut.map((left) => ({
    kind: "left out", left, id: left.path, name: left.path, text: left.reason, worst: "error", words: `${left.path} ${left.reason} left out`.toLowerCase(),
  }))];
}

const keyOfEntry = (entry) => `${entry.kind} ${entry.id}`;

function makeRow() {
  const row = h("div.item-row");
  row.parts = { sign: h("span.kind-sign"), name: h("span.item-name"), mark: h("span.mark"), text: h("span.item-text"), tokens: h("span.item-tokens") };
  row.append(row.parts.sign, row.parts.name, row.parts.mark, row.parts.tokens, row.parts.text);
  return row;
}

const SIGN = { tool: "T", resource: "R", template: "{ }", prompt: "P", skill: "S", "left out": "–" };

function showRow(row, entry) {
  const { sign, name, mark, text, tokens } = row.parts;
  put(row, "data-kind", entry.kind);
  put(row, "data-testid", `item-${entry.kind}-${entry.name}`);
  put(sign, "text", SIGN[entry.kind]);
  put(sign, "title", entry.kind);
  put(name, "text", entry.name);
  put(text, "text", entry.text);
  put(mark, "class", `mark ${entry.worst || ""}`);
  put(mark, "text", { error: "✗", warning: "!", info: "·" }[entry.worst] || "");
  put(mark, "title", entry.worst ? `has ${{ error: "an error", warning: "a warning", info: "a note" }[entry.worst]}` : "");
  put(tokens, "text", entry.item?.tokens ? `${grouped(entry.item.tokens)} tok` : "");
}

customElements.define("item-list", ItemList);
