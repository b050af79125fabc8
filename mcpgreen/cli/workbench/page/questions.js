// Questions of a server, answered where they are asked: a form, an address to open, a model that is played by hand, or JSON.

import { announce, button, fill, h } from "./dom.js";
import { isObject, parse, stringify } from "./exact-json.js";
import { visible } from "./format.js";
import "./schema-form.js";
import { textView } from "./text-view.js";

/** `reply(answer)` gets {result} or {error}. */
export function questionView({ key, method, params }, reply) {
  const make = method === "elicitation/create" ? (params.mode === "url" ? address : form) : method === "sampling/createMessage" ? sampling : anything;
  const node = h("section.question", { "aria-label": "Question", tabIndex: -1, testid: "question", "data-key": key });
  const send = async (answer) => {
    for (const each of node.querySelectorAll("button")) each.disabled = true;
    try {
      await reply(answer);
    } catch (error) {
      announce(error.message, { isError: true });
      for (const each of node.querySelectorAll("button")) each.disabled = false;
    }
  };
  return fill(node, h("p.eyebrow", {}, `asks · ${method}`), make(params, send, method));
}

function refusals(send) {
  return [
    button("", "decline", () => send({ result: { action: "decline" } }), "Decline"),
    button("", "dismiss", () => send({ result: { action: "cancel" } }), "Cancel"),
  ];
}

function form({ message, requestedSchema }, send) {
  const fields = Object.assign(h("schema-form"), { heading: "Answer" });
  fields.open(requestedSchema || {});
  const accept = () => {
    try {
      send({ result: { action: "accept", content: fields.value ?? {} } });
    } catch (error) {
      announce(`This is not JSON yet: ${error.message}`, { isError: true });
    }
  };
  return [h("p.prose", {}, visible(String(message ?? ""))), fields, h("div.buttons", {}, button("primary", "accept", accept, "Accept"), refusals(send))];
}

function address({ message, url }, send) {
  const parsed = URL.canParse(String(url)) ? new URL(url) : null;
  const isWeb = parsed && /^https?:$/.test(parsed.protocol);
  return [
    h("p.prose", {}, visible(String(message ?? ""))),
    h("p.url", { testid: "question-url" }, isWeb ? [`${parsed.protocol}//`, h("b", {}, parsed.host), visible(parsed.href.slice(parsed.origin.length))]
      : visible(String(url))),
    isWeb ? null : h("p.field-note", {}, "This is no address of the web, so it cannot be opened here."),
    h("div.buttons", {},
      isWeb && h("a.button", { href: parsed.href, target: "_blank", rel: "noopener noreferrer", testid: "open-url" }, "Open in a new tab"),
      button("primary", "accept", () => send({ result: { action: "accept" } }), "Accept"), refusals(send)),
  ];
}

function sampling({ messages = [], systemPrompt, maxTokens, modelPreferences }, send) {
  const text = h("textarea", { rows: 3, "aria-label": "What the model says", placeholder: "What the model says", testid: "sampling-text" });
  const answer = () => send({ result: { role: "assistant", content: { type: "text", text: text.value }, model: "workbench", stopReason: "endTurn" } });
  const hints = (modelPreferences?.hints || []).map(({ name }) => name).join(", ");
  return [
    h("p.prose", {}, "The server wants a model to go on. Here you are the model."),
    h("div.chat", {}, systemPrompt && turn("system", systemPrompt), messages.slice(-20).map(({ role, content }) => turn(role, content))),
    h("p.field-note", {}, [maxTokens && `at most ${maxTokens} tokens`, hints && `wants ${hints}`].filter(Boolean).join(", ")),
    text,
    h("div.buttons", {},
      button("primary", "accept", answer, "Answer"),
      button("", "decline", () => send({ error: { code: -1, message: "The user rejected the request." } }), "Reject")),
  ];
}

function turn(role, content) {
  const parts = [content].flat().map((part) => (isObject(part) ? (part.type === "text" ? part.text : stringify(part, 2)) : part));
  return h("div.turn", {}, h("p.role", {}, role), textView(String(parts.join("\n")), { label: role, testid: "turn" }));
}

function anything(params, send, method) {
  const text = h("textarea.code", { rows: 5, spellcheck: false, "aria-label": "Result as JSON", testid: "question-json" });
  text.value = method === "roots/list" ? '{\n  "roots": []\n}' : "{}";
  const answer = () => {
    try {
      send({ result: parse(text.value) });
    } catch (error) {
      announce(`This is not JSON yet: ${error.message}`, { isError: true });
    }
  };
  return [
    h("p.prose", {}, "The result of this request, as JSON:"), textView(stringify(params ?? {}, 2), { label: "Parameters" }), text,
    h("div.buttons", {}, button("primary", "accept", answer, "Answer"),
      button("", "decline", () => send({ error: { code: -32601, message: "Method not found" } }), "Reject")),
  ];
}
