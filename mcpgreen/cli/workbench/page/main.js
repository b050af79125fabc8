// Starts the page: the frame around the panels, the keyboard, the address.

import "./calls-panel.js";
import "./catalog-panel.js";
import "./figures-panel.js";
import "./server-chooser.js";
import "./try-panel.js";
import { fill, h, setAttribute } from "./dom.js";
import { icon } from "./icons.js";
import { addShortcuts, helpDialog, startKeyboard } from "./shortcuts.js";
import { PANELS, state } from "./state.js";
import { themeButton } from "./theme.js";

const NAMES = { catalog: "Catalog", try: "Try", calls: "Calls", figures: "Figures" };

const help = helpDialog();
const badge = h("span.badge", { hidden: true });
const links = PANELS.map((panel) => h("a", {
  href: `#${panel}`, testid: `panel-${panel}`, onclick: (event) => { event.preventDefault(); state.go({ panel }); },
}, icon(panel), h("span", {}, NAMES[panel]), panel === "calls" && badge));
const live = h("span.live", { role: "status", testid: "live" });
const panels = Object.fromEntries(PANELS.map((panel) => [panel, h(`${panel}-panel`, { class: "panel", testid: `${panel}-panel` })]));
const main = h("main", { id: "main", tabIndex: -1 }, Object.values(panels));

fill(document.body,
  h("a.skip", { href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the content"),
  h("header.top", {},
    h("span.brand", {}, h("img", { src: "/icon.svg", alt: "mcpgreen", width: 24, height: 24 })),
    h("server-chooser"),
    h("nav.panels", { "aria-label": "Panels" }, links),
    h("span.push"),
    live,
    themeButton(),
    h("button.icon-button", { type: "button", title: "Keyboard (?)", "aria-label": "Keyboard", testid: "help", onclick: () => help.open_() }, icon("help"))),
  main, help);

function showPlace() {
  PANELS.forEach((panel, index) => {
    panels[panel].hidden = panel !== state.panel;
    setAttribute(links[index], "aria-current", panel === state.panel ? "page" : null);
  });
  const what = state.panel === "calls" || state.panel === "figures" ? "" : state.item?.id;
  document.title = [what, NAMES[state.panel], state.project?.name || "mcpgreen"].filter(Boolean).join(" · ");
}
function showLive() {
  live.textContent = state.isLive ? "live" : state.isOwnServer ? "reconnecting" : "it has ended";
  live.classList.toggle("is-off", !state.isLive);
}
function showBadge() {
  const open = state.calls.list.filter((call) => call.endedAt === undefined).length;
  badge.hidden = !open;
  badge.textContent = String(open);
}
setInterval(showBadge, 500);

state.addEventListener("place", showPlace);
state.addEventListener("project", showPlace);
state.addEventListener("live", showLive);

addShortcuts("Everywhere", [
  ["g c", "Catalog", () => state.go({ panel: "catalog" })],
  ["g t", "Try", () => state.go({ panel: "try" })],
  ["g l", "Calls", () => state.go({ panel: "calls" })],
  ["g f", "Figures", () => state.go({ panel: "figures" })],
  ["/", "Search or filter", () => focusIn("[data-search]")],
  ["?", "This help", () => help.open_()],
]);

function focusIn(selector) {
  const found = panels[state.panel].querySelector(selector);
  found?.focus();
  found?.select?.();
  return Boolean(found);
}

startKeyboard();
showLive();
state.begin();
showPlace();
