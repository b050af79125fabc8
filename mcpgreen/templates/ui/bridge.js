"use strict";
// What every template shares: the conversation with the host (JSON-RPC over postMessage, as MCP Apps define it) and a
// few helpers for the document. Whatever comes from outside becomes text nodes, never markup.
const page = (() => {
  const config = JSON.parse(document.getElementById("config").textContent);
  const status = document.getElementById("status");
  const waiting = new Map();
  const listeners = new Map();
  let lastId = 0;
  let lastSize = "";
  let locale;

  function post(message) {
    // The page cannot know the origin of its host, which may be a file or an opaque origin.
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  function notify(method, params) {
    post({ method, params });
  }

  function request(method, params) {
    lastId += 1;
    const id = lastId;
    post({ id, method, params });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  function settle({ id, result, error }) {
    const request = waiting.get(id);
    if (!request) return;
    waiting.delete(id);
    if (error) request.reject(new Error(String(error.message || "The client rejected the request.")));
    else request.resolve(result || {});
  }

  function answer(id, method) {
    if (method === "ping" || method === "ui/resource-teardown") post({ id, result: {} });
    else post({ id, error: { code: -32601, message: "Method not found" } });
  }

  function receive(event) {
    const message = event.data;
    if (event.source !== window.parent || !message || message.jsonrpc !== "2.0") return;
    if (message.method === undefined) settle(message);
    else if (message.id !== undefined) answer(message.id, message.method);
    else emit(message.method, message.params || {});
  }

  function on(method, listener) {
    listeners.set(method, [...(listeners.get(method) || []), listener]);
  }

  function emit(method, params) {
    for (const listener of listeners.get(method) || []) listener(params);
  }

  function adopt(context) {
    const root = document.documentElement;
    if (context.theme === "light" || context.theme === "dark") root.style.colorScheme = context.theme;
    for (const [name, value] of Object.entries(context.styles?.variables || {})) {
      if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
    }
    for (const side of ["top", "right", "bottom", "left"]) {
      const inset = context.safeAreaInsets?.[side];
      if (Number.isFinite(inset)) document.body.style.setProperty(`padding-${side}`, `${inset}px`);
    }
    if (typeof context.locale === "string" && /^[A-Za-z0-9-]+$/.test(context.locale)) locale = context.locale;
  }

  function tellSize() {
    const root = document.documentElement;
    const size = { width: root.scrollWidth, height: Math.ceil(root.getBoundingClientRect().height) };
    if (JSON.stringify(size) === lastSize) return;
    lastSize = JSON.stringify(size);
    notify("ui/notifications/size-changed", size);
  }

  function textOf(result) {
    const blocks = Array.isArray(result?.content) ? result.content : [];
    return blocks.filter((block) => block?.type === "text").map((block) => String(block.text)).join("\n");
  }

  // What a result says as data: structuredContent, else its text if that is JSON. Results of the SDKs are wrapped.
  function dataOf(result) {
    let data = result?.structuredContent;
    if (data === undefined || data === null) {
      try {
        data = JSON.parse(textOf(result));
      } catch {
        return undefined;
      }
    }
    return data && data.success === true && data.result !== undefined ? data.result : data;
  }

  function say(text, hasFailed = false) {
    status.textContent = text;
    status.classList.toggle("failed", hasFailed);
  }

  async function callTool(name, args) {
    const result = await request("tools/call", { name, arguments: args });
    if (result.isError) throw new Error(textOf(result) || `${name} failed.`);
    return result;
  }

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
    }
    made.append(...children.map(nodeOf));
    return made;
  }

  function nodeOf(child) {
    return child instanceof Node ? child : document.createTextNode(shown(child));
  }

  function shown(value) {
    if (value === undefined || value === null) return "";
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  }

  // Where an array may stand: the value itself, or one of these members of it.
  function arrayIn(data, ...names) {
    if (Array.isArray(data)) return data;
    for (const name of names) if (Array.isArray(data?.[name])) return data[name];
    return undefined;
  }

  async function start({ onData, onInput = () => {}, onCancelled = () => {}, onProgress = () => {} }) {
    on("ui/notifications/host-context-changed", adopt);
    on("ui/notifications/tool-input", (params) => onInput(params.arguments || {}));
    on("notifications/progress", onProgress);
    on("ui/notifications/tool-cancelled", (params) => {
      say(params.reason ? `Cancelled: ${params.reason}` : "Cancelled.");
      onCancelled(params);
    });
    on("ui/notifications/tool-result", (result) => {
      if (result.isError) say(textOf(result) || "The tool failed.", true);
      else say("");
      onData(result.isError ? undefined : dataOf(result), result);
    });
    if (config.data !== undefined) onData(config.data, {});
    if (window.parent === window) return;
    window.addEventListener("message", receive);
    try {
      const agreed = await request("ui/initialize", {
        protocolVersion: "2026-01-26",
        appInfo: { name: document.title || "page", version: "1" },
        appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      });
      adopt(agreed.hostContext || {});
      notify("ui/notifications/initialized", {});
      new ResizeObserver(tellSize).observe(document.documentElement);
    } catch (error) {
      say(`The client does not show this page: ${error.message}`, true);
    }
  }

  return {
    config, start, say, callTool, notify, element, shown, arrayIn, dataOf, textOf,
    openLink: (url) => request("ui/open-link", { url }),
    locale: () => locale,
  };
})();
