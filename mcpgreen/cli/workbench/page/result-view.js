// The answer to a request: blocks of content, structured content, contents of resources, messages of prompts, errors.

import { AppFrame } from "./app-frame.js";
import { button, h, tabs } from "./dom.js";
import { isObject, parse, stringify } from "./exact-json.js";
import { bytes, shortened, visible } from "./format.js";
import { jsonView } from "./json-view.js";
import { rowsIn, tableView } from "./table-view.js";
import { copyButton, textView } from "./text-view.js";

const MOST_BLOCKS = 200;

/** `frame` is a JSON-RPC response. `app` is the call for the MCP App of the tool, if it has one. */
export function resultView(frame, { app = null } = {}) {
  const { result, error } = frame;
  if (error) return errorView(error);
  const pages = [];
  const structured = result?.structuredContent;
  const blocks = blocksOf(result || {});
  if (app) pages.push({ id: "app", label: "App", build: () => new AppFrame(app) });
  const rows = rowsIn(structured);
  if (rows) pages.push({ id: "table", label: "Table", build: () => tableView(rows) });
  if (blocks.length) pages.push({ id: "content", label: "Content", count: blocks.length > 1 ? blocks.length : undefined, build: () => contentView(blocks) });
  if (structured !== undefined) pages.push({ id: "tree", label: "Structured", build: () => jsonView(structured) });
  if (!pages.length) pages.push({ id: "content", label: "Content", build: () => emptyView(result) });
  pages.push({ id: "raw", label: "Whole answer", build: () => h("div.raw", {}, copyButton(() => stringify(frame, 2), "the answer", "copy-answer"),
    jsonView(frame, { openTo: 4 })) });
  return tabs("Result as", pages, { testid: "result-tab" });
}

function emptyView(result) {
  const what = result && Object.keys(result).some((key) => !["content", "isError", "_meta", "resultType"].includes(key))
    ? "The answer has no content of a known kind. See the whole answer." : "It ran, and returned no content.";
  return h("p.nothing", { testid: "empty-result" }, what);
}

function errorView({ code, message, data }) {
  return h("div.rpc-error", { testid: "rpc-error" },
    h("p.rpc-code", {}, `Error ${code}`),
    h("p", {}, visible(String(message))),
    data === undefined ? null : jsonView(data, { openTo: 3 }));
}

/** [{role?, block}] of whatever method the result belongs to. */
function blocksOf(result) {
  if (Array.isArray(result.content)) return result.content.filter(isObject).map((block) => ({ block }));
  if (Array.isArray(result.contents)) return result.contents.filter(isObject).map((resource) => ({ block: { type: "resource", resource } }));
  if (Array.isArray(result.messages)) {
    return result.messages.filter(isObject).flatMap(({ role, content }) => [content].flat().filter(isObject).map((block) => ({ role, block })));
  }
  return [];
}

function contentView(blocks) {
  return h("div.blocks", {}, blocks.slice(0, MOST_BLOCKS).map(({ role, block }) => h("div.block", { testid: `block-${block.type}` },
    role && h("p.role", {}, role), (BLOCKS[block.type] || unknown)(block))),
  blocks.length > MOST_BLOCKS && h("p.field-note", {}, `${blocks.length - MOST_BLOCKS} more blocks are in the whole answer.`));
}

const BLOCKS = {
  text: ({ text }) => textOrJson(String(text ?? "")),
  image: ({ data, mimeType }) => picture(data, mimeType),
  audio: ({ data, mimeType }) => sound(data, mimeType),
  resource_link: ({ uri, name, title, description, mimeType, size }) => h("div.link-card", {},
    h("div", {}, h("b", {}, visible(title || name || uri)), h("span.kind", {}, mimeType), size !== undefined && h("span.kind", {}, bytes(size))),
    description && h("p", {}, visible(description)),
    button("quiet.address", "read-link", ({ target }) => readResource(target, uri), visible(String(uri)))),
  resource: ({ resource = {} }) => h("div", {},
    h("p.resource-head", {}, h("code", {}, visible(String(resource.uri))), resource.mimeType && h("span.kind", {}, resource.mimeType)),
    resource.blob !== undefined ? blob(resource) : textOrJson(String(resource.text ?? ""))),
};

function readResource(target, detail) {
  target.dispatchEvent(new CustomEvent("read-resource", { bubbles: true, detail }));
}

function unknown(block) {
  return jsonView(block);
}

/** A text that is JSON can also be seen as a tree or as a table. */
export function textOrJson(text) {
  if (text === "") return h("p.nothing", {}, "An empty text.");
  const value = jsonIn(text);
  if (value === undefined) return textView(text, { testid: "text" });
  const rows = rowsIn(value);
  return tabs("Text as", [
    { id: "text", label: "Text", build: () => textView(text) },
    { id: "tree", label: "Tree", build: () => jsonView(value) },
    ...(rows ? [{ id: "table", label: "Table", build: () => tableView(rows) }] : []),
  ], { testid: "text-tab" });
}

function jsonIn(text) {
  if (text.length > 2_000_000 || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function picture(data, mimeType) {
  const size = h("span");
  const image = h("img", { alt: "The picture of the result", testid: "picture" });
  image.onload = () => { size.textContent = `${image.naturalWidth} × ${image.naturalHeight}, `; };
  image.onerror = () => { size.textContent = "The browser cannot show it: "; };
  return media("image", image, data, mimeType, size);
}

function sound(data, mimeType) {
  return media("audio", h("audio", { controls: true, testid: "sound" }), data, mimeType);
}

function media(type, element, data, mimeType, size = null) {
  if (!mimeType?.startsWith(`${type}/`) || !/^[\w.+/-]+$/.test(mimeType)) return unknown({ type, mimeType });
  element.src = `data:${mimeType};base64,${data}`;
  return h("figure", {}, element, h("figcaption", {}, size, `${mimeType}, ${bytes(Math.floor(String(data).length * 0.75))}`));
}

function blob({ blob: data, mimeType = "" }) {
  if (mimeType.startsWith("image/")) return picture(data, mimeType);
  if (mimeType.startsWith("audio/")) return sound(data, mimeType);
  return h("p.nothing", {}, `${bytes(Math.floor(data.length * 0.75))} of ${mimeType || "data"}: ${shortened(data, 60)}`);
}
