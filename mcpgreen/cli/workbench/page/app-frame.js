// An MCP App in a sandboxed frame, and the host that talks to it. Rule: the app has an opaque origin and no network but what
// its own policy allows; it gets the call's arguments and result, and may call tools of this project, which is shown.

import { ApiError, appAddress, request } from "./api.js";
import { announce, h, Part } from "./dom.js";
import { isDark } from "./theme.js";

const HIGHEST = 900;
const MOST_CALLS = 100; // of tools, by one app

export class AppFrame extends Part {
  #calls = 0;

  /** The app of a tool, with the call that it shows: {uri, arguments, result, revision}. */
  constructor(call = {}) {
    super();
    this.call = call;
  }

  build() {
    this.frame = h("iframe.app", { title: "MCP App", testid: "app-frame" });
    this.frame.setAttribute("sandbox", "allow-scripts");
    this.frame.src = appAddress(this.call.uri);
    this.log = h("p.app-log", { "aria-live": "polite" });
    this.append(this.frame, this.log);
  }

  connected() {
    this.listen(window, "message", (event) => {
      if (event.source === this.frame.contentWindow && event.data?.jsonrpc === "2.0") this.#receive(event.data);
    });
  }

  #post(message) {
    this.frame.contentWindow?.postMessage({ jsonrpc: "2.0", ...message }, "*"); // its origin is opaque
  }

  async #receive({ id, method, params = {} }) {
    if (method === "ui/notifications/initialized") {
      this.#post({ method: "ui/notifications/tool-input", params: { arguments: this.call.arguments || {} } });
      this.#post({ method: "ui/notifications/tool-result", params: this.call.result });
    } else if (method === "ui/notifications/size-changed" && params.height > 0) {
      this.frame.style.height = `${Math.min(HIGHEST, Math.ceil(params.height) + 2)}px`;
    }
    if (id === undefined || !method) return;
    const answer = ANSWERS[method];
    if (!answer) {
      this.#post({ id, error: { code: -32601, message: "Method not found" } });
      return;
    }
    try {
      this.#post({ id, ...(await answer.call(this, params)) });
    } catch (error) {
      this.#post({ id, error: { code: -32603, message: error instanceof ApiError ? error.message : "The workbench failed." } });
    }
  }

  async ask(method, params) {
    this.#calls += 1;
    if (this.#calls > MOST_CALLS) return { error: { code: -32000, message: `An app may send ${MOST_CALLS} requests here.` } };
    this.log.textContent = `The app sent ${method}${params.name ? ` for ${params.name}` : ""}.`;
    const body = { method, params, revision: this.call.revision, capabilities: "none", task: false };
    for await (const message of request(body)) {
      if (message.type === "answer") return message.frame.error ? { error: message.frame.error } : { result: message.frame.result };
    }
    return { error: { code: -32000, message: "There was no answer." } };
  }
}

const ANSWERS = {
  "ui/initialize": () => ({
    result: {
      protocolVersion: "2026-01-26",
      hostInfo: { name: "mcpgreen dev", version: "1" },
      hostCapabilities: { serverTools: {}, serverResources: {}, openLinks: {} },
      hostContext: { theme: isDark() ? "dark" : "light", displayMode: "inline", availableDisplayModes: ["inline"] },
    },
  }),
  ping: () => ({ result: {} }),
  "tools/call"(params) {
    return this.ask("tools/call", { name: params.name, arguments: params.arguments || {} });
  },
  "resources/read"(params) {
    return this.ask("resources/read", { uri: params.uri });
  },
  "ui/open-link"({ url }) {
    if (!/^https?:\/\//i.test(url)) return { error: { code: -32000, message: "Only http and https can be opened." } };
    if (!window.confirm(`The app wants to open\n\n${url}`)) return { error: { code: -32000, message: "Declined." } };
    window.open(url, "_blank", "noopener,noreferrer");
    return { result: {} };
  },
  "ui/message"() {
    announce("The app sent a message to the chat. There is no chat here.");
    return { result: {} };
  },
  "ui/update-model-context": () => ({ result: {} }),
};

customElements.define("app-frame", AppFrame);
