// What the panels share: the project, its catalog, the servers, where the user is. The address bar shows the place, so that
// it can be copied: `/?call=12&server=4711#calls`, `/#try/tool/stats`.

import { readCatalog, readServers, watchEvents } from "./api.js";
import { CallsModel } from "./calls-model.js";
import { announce } from "./dom.js";
import { idOf } from "./items.js";

export const PANELS = ["catalog", "try", "calls", "figures"];
export const KINDS = ["tool", "resource", "template", "prompt", "skill"];
const SERVERS_EVERY_MS = 5000;
const HUNG_EVERY_MS = 1000;
const AGAIN_AFTER_MS = 3000; // the command may have been started again, on the same port

class State extends EventTarget {
  catalog = { tools: [], resources: [], templates: [], prompts: [], skills: [], findings: [], leftOut: [] };
  servers = [];
  calls = new CallsModel();
  server = "own";
  isLive = false;
  isLoaded = false; // whether there is a catalog
  panel = "catalog";
  item = null; // {kind, id}
  call = null; // number
  filledIn = null; // arguments for the form of the item
  filter = "";
  #source = null;

  async begin() {
    this.#readAddress();
    window.addEventListener("popstate", () => this.#readAddress());
    window.addEventListener("hashchange", () => this.#readAddress());
    this.watch();
    setInterval(() => document.hidden || this.readServers(), SERVERS_EVERY_MS);
    setInterval(() => this.calls.markHung(), HUNG_EVERY_MS);
    await Promise.all([this.readCatalog(), this.readServers()]);
  }

  readCatalog = () => this.#load("catalog", readCatalog);
  readServers = () => this.#load("servers", readServers, { isQuiet: true });

  async #load(name, read, { isQuiet = false } = {}) {
    try {
      this[name] = await read();
      if (name === "catalog" && !this.isLoaded) {
        this.isLoaded = true;
        this.tell("project");
      }
      this.tell(name);
    } catch (error) {
      if (!isQuiet) announce(error.message, { isError: true });
    }
  }

  watch() {
    this.#source?.close();
    this.calls.clear();
    const source = watchEvents(this.server, ({ event, catalogChanged, isOpen, isOver }) => {
      if (source !== this.#source) return;
      if (isOver && this.isOwnServer) setTimeout(() => source === this.#source && this.watch(), AGAIN_AFTER_MS);
      if (event) this.calls.apply(event);
      else if (catalogChanged) this.readCatalog();
      else if (isOpen !== this.isLive) {
        this.isLive = isOpen;
        this.tell("live");
      }
    });
    this.#source = source;
  }

  chooseServer(id) {
    if (id === this.server) return;
    this.server = id;
    this.call = null;
    this.watch();
    this.tell("server");
    this.tell("place");
    this.#writeAddress();
  }

  /** Goes somewhere: {panel, item, call, filter}; what is not named stays. */
  go(place, { isReplaced = false } = {}) {
    Object.assign(this, place);
    this.#writeAddress(isReplaced);
    this.tell("place");
  }

  tell(name) {
    this.dispatchEvent(new Event(name));
  }

  /** {name, root, revisions}, when there is a catalog. */
  get project() {
    return this.catalog.project;
  }

  get isOwnServer() {
    return this.server === "own";
  }

  itemOf({ kind, id }) {
    return this.catalog[`${kind}s`]?.find((item) => idOf(item.definition) === id);
  }

  address() {
    const query = new URLSearchParams();
    if (this.call !== null && this.panel === "calls") query.set("call", this.call);
    if (this.server !== "own") query.set("server", this.server);
    if (this.filter && this.panel === "calls") query.set("filter", this.filter);
    const hash = [this.panel, ...(this.item && this.panel !== "calls" && this.panel !== "figures" ? [this.item.kind, this.item.id] : [])];
    return `/${query.size ? `?${query}` : ""}#${hash.map(encodeURIComponent).join("/")}`;
  }

  #writeAddress(isReplaced) {
    const address = this.address();
    if (address === location.pathname + location.search + location.hash) return;
    history[isReplaced ? "replaceState" : "pushState"](null, "", address);
  }

  #readAddress() {
    const query = new URLSearchParams(location.search);
    const [panel, kind, id] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const call = Number(query.get("call"));
    this.call = query.has("call") && Number.isInteger(call) ? call : null;
    this.filter = query.get("filter") || "";
    this.panel = PANELS.includes(panel) ? panel : this.call === null ? "catalog" : "calls";
    if (KINDS.includes(kind) && id) this.item = { kind, id };
    const server = query.get("server") || "own";
    if (server !== this.server) {
      this.server = server;
      if (this.#source) this.watch();
      this.tell("server");
    }
    this.tell("place");
  }
}

export const state = new State();
