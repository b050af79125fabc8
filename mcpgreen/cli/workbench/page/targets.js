// What can be tried of each kind of item: the form that it needs, and the request that comes of it.

import { schemaOfPrompt } from "./catalog-panel.js";

/** {schema, request(value)} for an item of the catalog. */
export function targetOf(kind, definition) {
  if (kind === "tool") return { schema: definition.inputSchema || {},
    request: (value) => ({ method: "tools/call", params: { name: definition.name, arguments: value ?? {} } }) };
  if (kind === "prompt") {
    return { schema: schemaOfPrompt(definition.arguments || []),
      request: (value) => ({ method: "prompts/get", params: { name: definition.name, arguments: value ?? {} } }) };
  }
  if (kind === "template") {
    return { schema: schemaOfTemplate(definition.uriTemplate),
      request: (value) => ({ method: "resources/read", params: { uri: expand(definition.uriTemplate, value || {}) } }) };
  }
  return { schema: { type: "object", properties: {} }, request: () => ({ method: "resources/read", params: { uri: definition.uri } }) };
}

/** The value for the form that a request was made of: the other way round. */
export function valueOf(kind, params) {
  return kind === "tool" || kind === "prompt" ? params.arguments : undefined;
}

const EXPRESSION = /\{([+#./;?&]?)([^}]+)\}/g;

function schemaOfTemplate(template) {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list]) => list.split(",")).map(plain);
  return { type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: [] };
}

/** RFC 6570, as far as templates of resources need it. */
export function expand(template, values) {
  return template.replace(EXPRESSION, (_, operator, list) => {
    const encode = operator === "+" || operator === "#" ? encodeURI : encodeURIComponent;
    const isNamed = operator === ";" || operator === "?" || operator === "&";
    const given = list.split(",").map(plain).filter((name) => values[name] !== undefined && values[name] !== "");
    if (!given.length) return "";
    const parts = given.map((name) => `${isNamed ? `${name}=` : ""}${encode(values[name])}`);
    const [first, between] = { "": ["", ","], "+": ["", ","], "#": ["#", ","], ".": [".", "."], "/": ["/", "/"], ";": [";", ";"], "?": ["?", "&"],
      "&": ["&", "&"] }[operator];
    return first + parts.join(between);
  });
}

const plain = (name) => name.replace(/(\*|:\d+)$/, "").trim();
