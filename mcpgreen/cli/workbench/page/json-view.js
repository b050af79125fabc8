// JSON as a tree. What is closed has no elements yet, and long lists come in pieces, so that any size can be opened.

import { button, h } from "./dom.js";
import { isObject, keptNumber } from "./exact-json.js";
import { count, shortened, visible } from "./format.js";

const AT_ONCE = 100;
const OPEN_AT_FIRST = 24; // members; what has more begins closed
const LONG_TEXT = 600;

export function jsonView(value, { openTo = 2 } = {}) {
  return h("div.json", { testid: "json-tree" }, nodeOf(null, value, openTo));
}

function nodeOf(name, value, openTo) {
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return h("div.json-leaf", {}, nameOf(name), leaf(value));
  const entries = isList ? value.map((each, index) => [index, each]) : Object.entries(value);
  if (!entries.length) return h("div.json-leaf", {}, nameOf(name), h("span.json-empty", {}, isList ? "[ ]" : "{ }"));
  const members = h("div.json-members");
  const node = h("details.json-node", {},
    h("summary", {}, nameOf(name), h("span.json-size", {}, isList ? count(entries.length, "item") : previewOf(entries))),
    members);
  let shown = 0;
  function showMore() {
    members.querySelector(":scope > .json-more")?.remove();
    const until = Math.min(entries.length, shown + AT_ONCE);
    for (; shown < until; shown += 1) members.append(nodeOf(...entries[shown], openTo - 1));
    if (shown < entries.length) {
      members.append(button("quiet.json-more", "json-more", showMore, `${count(entries.length - shown, "more", "more")}`));
    }
  }
  node.addEventListener("toggle", () => { if (node.open && !shown) showMore(); });
  if (openTo > 0 && entries.length <= OPEN_AT_FIRST) {
    showMore();
    node.open = true;
  }
  return node;
}

function nameOf(name) {
  if (name === null) return null;
  return h("span", { class: typeof name === "number" ? "json-index" : "json-name" }, `${visible(String(name))}`);
}

function leaf(value) {
  const kept = keptNumber(value);
  if (kept !== undefined) return h("span.json-number", {}, kept);
  if (typeof value !== "string") return h(`span.json-${value === null ? "null" : typeof value}`, {}, String(value));
  if (value.length <= LONG_TEXT) return h("span.json-string", {}, visible(value));
  const text = h("span.json-string", {}, `${visible(value.slice(0, LONG_TEXT))}…`);
  const all = button("quiet.json-more", "json-all", () => { text.textContent = visible(value.slice(0, 100_000)); all.remove(); },
    count(value.length, "character"));
  return h("span", {}, text, all);
}

function previewOf(entries) {
  const names = entries.slice(0, 6).map(([name]) => visible(name)).join(", ");
  return shortened(`{ ${names}${entries.length > 6 ? ", …" : ""} }`, 80);
}
