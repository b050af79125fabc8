// What the project offers, what it costs to list it, what could be better, and what was left out and why.

import { button, copy, fill, h, Part } from "./dom.js";
import { clock, count, grouped, visible } from "./format.js";
import { icon } from "./icons.js";
import { descriptionOf, idOf, nameOf } from "./items.js";
import { ItemList } from "./item-list.js";
import { jsonView } from "./json-view.js";
import { fieldOf, kindText } from "./schema-model.js";
import { addShortcuts } from "./shortcuts.js";
import { KINDS, state } from "./state.js";

const ANNOTATIONS = {
  readOnlyHint: ["reads only", "changes things"], destructiveHint: ["may destroy", "destroys nothing"],
  idempotentHint: ["may be repeated", "not to be repeated"], openWorldHint: ["reaches outside", "stays inside"],
};
const CAN_BE_TRIED = new Set(KINDS);

class CatalogPanel extends Part {
  #left = null; // an item that was left out, if one is shown

  build() {
    this.list = new ItemList({ hasLeftOut: true });
    this.detail = h("section.detail", { "aria-label": "Item", testid: "catalog-detail", tabIndex: -1 });
    this.append(h("div.side", {}, this.list), this.detail);
    addShortcuts("Catalog", [["Enter", "Open the item"], ["t", "Try the item", () => this.tryItem()]], () => state.panel === "catalog");
  }

  connected() {
    this.listen(this, "item", ({ detail: { kind, id, left } }) => {
      this.#left = left || null;
      if (left) this.draw();
      else state.go({ item: { kind, id } });
      this.classList.add("is-open");
    });
    this.listen(state, "catalog", () => this.draw());
    this.listen(state, "place", () => {
      this.#left = null;
      if (state.item) this.classList.add("is-open");
      this.draw();
    });
    this.draw();
  }

  tryItem() {
    if (!state.item || this.#left) return false;
    state.go({ panel: "try" });
    return true;
  }

  draw() {
    if (state.panel !== "catalog") return;
    const item = state.item && state.itemOf(state.item);
    if (this.#left) fill(this.detail, this.#back(), leftOutView(this.#left));
    else if (item) fill(this.detail, this.#back(), this.#itemView(state.item.kind, item));
    else if (!state.isLoaded) fill(this.detail);
    else fill(this.detail, state.item && h("p.nothing", {}, `There is no ${state.item.kind} ${state.item.id} (any more).`), overview(this));
  }

  #back() {
    return button("quiet.back", "catalog-back", () => {
      this.#left = null;
      this.classList.remove("is-open");
      state.go({ item: null });
    }, icon("back"), "All items");
  }

  #itemView(kind, { definition, file, tokens, findings }) {
    const { title, inputSchema, outputSchema, annotations = {}, arguments: args } = definition;
    const description = descriptionOf(definition);
    const total = state.catalog[`${kind}s`].reduce((sum, each) => sum + (each.tokens || 0), 0);
    const address = definition.uri || definition.uriTemplate;
    const app = definition._meta?.ui?.resourceUri;
    const hints = Object.entries(ANNOTATIONS).filter(([key]) => key in annotations);
    return [
      h("header.detail-head", {},
        h("div", {}, h("p.eyebrow", {}, kind), h("h2", {}, nameOf(definition)), title && h("p.subtitle", {}, title)),
        CAN_BE_TRIED.has(kind) && button("primary", "try-item", () => this.tryItem(), icon("try"), "Try")),
      description ? h("p.prose", {}, visible(description)) : h("p.nothing", {}, "It has no description, so a model can only go by its name."),
      h("dl.facts", {},
        file && fact("File", h("button.quiet.address", { type: "button", testid: "copy-file", title: "Copy", onclick: () => copy(file, file) }, file)),
        address && fact("URI", h("code", {}, address)),
        definition.mimeType && fact("Type", definition.mimeType),
        Boolean(tokens) && fact("Cost in the list", h("span.cost", {}, `${grouped(tokens)} tokens`, share(tokens / total),
          `${Math.round((100 * tokens) / total)} %`)),
        app && fact("App", h("code", {}, app)),
        hints.length > 0 && fact("Hints", h("span.chips", {}, hints.map(([key, [yes, no]]) => h("span.tag", { title: key }, annotations[key] ? yes : no))))),
      findings.length > 0 && section("Findings", h("div.findings", {}, findings.map(findingView))),
      inputSchema && section("Arguments", argumentsView(inputSchema)),
      args?.length && section("Arguments", argumentsView(schemaOfPrompt(args))),
      outputSchema && section("Structured result", argumentsView(outputSchema)),
      h("details.section", {}, h("summary", { testid: "definition" }, "Definition, as clients get it"), jsonView(definition, { openTo: 3 })),
    ];
  }
}

function overview(panel) {
  const { catalog } = state;
  const found = KINDS.flatMap((kind) => (catalog[`${kind}s`] || []).filter((item) => item.findings.length).map((item) => ({ kind, ...item })));
  const tools = [...catalog.tools].sort((a, b) => (b.tokens || 0) - (a.tokens || 0));
  const total = tools.reduce((sum, each) => sum + (each.tokens || 0), 0);
  const most = tools[0]?.tokens || 1;
  const nothing = !KINDS.some((kind) => catalog[`${kind}s`]?.length) && !catalog.leftOut.length;
  if (nothing) return h("div.empty", {}, h("h2", {}, "Nothing here yet"),
    h("p", {}, "Put an executable script into tools/. It appears here as soon as it is saved."));
  return h("div.overview", {},
    h("p.eyebrow", {}, "catalog"),
    h("h2", {}, state.project?.name || ""),
    h("div.numbers", {},
      KINDS.filter((kind) => catalog[`${kind}s`]?.length).map((kind) => number(grouped(catalog[`${kind}s`].length),
        `${kind}${catalog[`${kind}s`].length === 1 ? "" : "s"}`)),
      number(grouped(total), "tokens to list the tools")),
    catalog.leftOut.length > 0 && section(`Left out: ${catalog.leftOut.length}`, h("div.findings", {}, catalog.leftOut.slice(0, 50).map(leftOutCard))),
    catalog.findings.length > 0 && section("About the project", h("div.findings", {}, catalog.findings.slice(0, 50).map(findingView))),
    found.length > 0 && section("What could be better", h("div.findings", {}, found.slice(0, 100).map((item) => findingsOf(item, panel)))),
    !found.length && !catalog.leftOut.length && !catalog.findings.length && h("p.good", {}, icon("check"), "Nothing was left out, and there is nothing to improve."),
    changesView(),
    tools.length > 0 && section("What the tools cost to list", h("div.costs", {}, tools.slice(0, 12).map((tool) => h("div.cost-row", {},
      h("span.cost-name", {}, tool.definition.name), share((tool.tokens || 0) / most), h("span.cost-tokens", {}, grouped(tool.tokens || 0)))),
    tools.length > 12 && h("p.field-note", {}, `and ${count(tools.length - 12, "more tool")}`))));
}

/** The findings of one item in a line, to be opened. */
function findingsOf({ kind, definition, findings }, panel) {
  const [{ level, message: first }] = findings; // the worst
  return h("details.finding", { class: level, testid: `findings-${nameOf(definition)}` },
    h("summary", {}, h("b", {}, nameOf(definition)), h("span.kind", {}, count(findings.length, "finding")), h("span.finding-first", {}, visible(first))),
    h("ul", {}, findings.slice(0, 50).map(({ message, fix }) => h("li", {}, visible(message), fix && h("p.fix", {}, visible(fix))))),
    button("quiet", `open-${nameOf(definition)}`, () => { panel.classList.add("is-open"); state.go({ item: { kind, id: idOf(definition) } }); },
      `Open the ${kind}`));
}

function share(part) {
  return h("span.share", {}, h("span", { style: { width: `${Math.max(1, 100 * part)}%` } }));
}

/** What has changed on disk since the page was opened, the latest first. */
function changesView() {
  const events = state.isOwnServer ? state.calls.changes.slice(-12).reverse() : [];
  const sentenceOf = ({ kind, source, item, reason, why, ...lists }) => {
    if (kind === "left out") return `${item} left out: ${reason}`;
    const names = ["added", "removed", "changed"].filter((what) => lists[what]?.length).map((what) => `${what} ${lists[what].join(", ")}`);
    return `${source}: ${names.join("; ")}${why ? ` (${why})` : ""}`;
  };
  return events.length > 0 && section("Latest changes", h("ol.notes", {}, events.map((event) => (
    h("li", {}, h("span.when", {}, clock(event.at)), h("span", {}, visible(sentenceOf(event))))))));
}

const number = (value, what) => h("div.number-tile", {}, h("b", {}, value), h("span", {}, what));

function leftOutView(left) {
  return [h("p.eyebrow", {}, `${left.kind} · left out`), h("h2", {}, left.path), h("div.findings", {}, leftOutCard(left))];
}

function leftOutCard({ kind, path, reason, remedy }) {
  return h("article.finding.error", { testid: `left-out-${path}` },
    h("p.finding-head", {}, h("b", {}, path), h("span.kind", {}, kind)), h("p", {}, visible(reason)), remedy && h("p.fix", {}, visible(remedy)));
}

function findingView({ level, code, message, fix, file, line }) {
  return h("article.finding", { class: level, testid: `finding-${code}` },
    h("p.finding-head", {}, h("b", {}, level), h("span.kind", {}, code), file && h("code.place", {}, line ? `${file}:${line}` : file)),
    h("p", {}, visible(message)), fix && h("p.fix", {}, visible(fix)));
}

const section = (title, ...content) => h("section.section", {}, h("h3", {}, title), content);

const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

export function schemaOfPrompt(args) {
  return {
    type: "object",
    properties: Object.fromEntries(args.map(({ name, title, description }) => [name, { type: "string", title, description }])),
    required: args.filter(({ required }) => required).map(({ name }) => name),
  };
}

/** A schema as a table that can be read, objects inside of objects indented. */
function argumentsView(schema) {
  const rows = [];
  function collect(field, depth) {
    for (const { name, field: member, isRequired } of field.properties || []) {
      if (rows.length > 200) return;
      rows.push(h("tr", {},
        h("th", { scope: "row", class: `depth-${Math.min(depth, 5)}` }, h("code", {}, name), isRequired && h("span.required", {}, "required")),
        h("td", {}, h("span.kind", {}, kindText(member), member.isNullable ? " or null" : "")),
        h("td", {}, member.description && visible(member.description),
          member.initial !== undefined && member.kind !== "constant" && h("p.default", {}, "Default: ", h("code", {}, JSON.stringify(member.initial))),
          member.choices && h("p.default", {}, member.choices.slice(0, 12).map(({ label }) => [h("code", {}, label), " "]),
            member.choices.length > 12 && "…"))));
      collect(member, depth + 1);
      if (member.item) collect(member.item, depth + 1);
      for (const variant of member.variants || []) collect(variant, depth + 1);
    }
  }
  const field = fieldOf(schema);
  collect(field, 0);
  if (!rows.length) return field.kind === "object" ? h("p.nothing", {}, "None.") : jsonView(schema, { openTo: 3 });
  const heads = ["Name", "Type", "Meaning"].map((each) => h("th", { scope: "col" }, each));
  return h("div.table-scroll", { tabIndex: 0, role: "region", "aria-label": "Members" },
    h("table.schema", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)));
}

customElements.define("catalog-panel", CatalogPanel);
