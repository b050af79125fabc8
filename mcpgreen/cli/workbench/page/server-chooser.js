// Which server is looked at: the project in front of you, or one that a client has started.

import { fill, h, Part } from "./dom.js";
import { count, since } from "./format.js";
import { icon } from "./icons.js";
import { state } from "./state.js";

class ServerChooser extends Part {
  build() {
    this.name = h("span.server-name");
    this.detail = h("span.server-detail");
    this.list = h("div.server-list", { role: "menu", "aria-label": "Servers" });
    this.menu = h("div.menu", { popover: "auto", id: "servers", testid: "server-menu" },
      h("p.menu-title", {}, "Running servers of yours"), this.list,
      h("p.menu-note", {}, "Catalog and Try belong to the project in front of you. Calls and Figures show the server that is chosen here."));
    this.button = h("button.server-button", { type: "button", testid: "server-chooser", popovertarget: "servers", "aria-haspopup": "menu" },
      h("span.server-text", {}, this.name, this.detail), icon("down"));
    this.append(this.button, this.menu);
  }

  connected() {
    for (const name of ["project", "servers", "server"]) this.listen(state, name, () => this.#draw());
    this.listen(this.menu, "toggle", (event) => {
      if (event.newState !== "open") return;
      state.readServers();
      const { left, bottom } = this.button.getBoundingClientRect();
      this.menu.style.left = `${Math.max(8, left)}px`;
      this.menu.style.top = `${bottom + 6}px`;
      this.list.querySelector("[aria-checked=true]")?.focus();
    });
    this.listen(this.menu, "keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by) return;
      const buttons = [...this.list.children];
      buttons[(buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length]?.focus();
      event.preventDefault();
    });
    this.#draw();
  }

  #draw() {
    const shown = state.servers.find(({ id }) => id === state.server);
    this.name.textContent = shown && shown.id !== "own" ? shown.name : state.project?.name || "…";
    this.detail.textContent = shown && shown.id !== "own" ? `${shown.client || "no client yet"} · pid ${shown.pid}` : state.project?.root || "";
    this.detail.title = shown?.project || state.project?.root || "";
    const hadFocus = this.list.contains(document.activeElement) && document.activeElement.dataset.testid;
    fill(this.list, state.servers.map((server) => h("button.server", {
      type: "button", role: "menuitemradio", "aria-checked": String(server.id === state.server), testid: `server-${server.id}`,
      onclick: () => {
        state.chooseServer(server.id);
        this.menu.hidePopover();
        this.button.focus();
      },
    },
    h("span.server-head", {}, h("b", {}, server.name), server.id === "own" && h("span.chip", {}, "this project")),
    h("span.server-detail", {}, server.project),
    h("span.server-facts", {},
      h("span", {}, server.client || "no client yet"), h("span", {}, server.transport), h("span", {}, `for ${since(server.started_at)}`),
      h("span", {}, count(server.calls, "call")), server.failures > 0 && h("span.bad", {}, `${server.failures} failed`)))));
    if (hadFocus) this.list.querySelector(`[data-testid="${hadFocus}"]`)?.focus();
  }
}

customElements.define("server-chooser", ServerChooser);
