// Light, dark, or as the system has it.

import { assign, fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { keep, kept } from "./storage.js";

const KEY = "mcpgreen.theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SIGN = { auto: "auto", light: "sun", dark: "moon" };
const NAME = { auto: "as the system", light: "light", dark: "dark" };
const system = matchMedia("(prefers-color-scheme: dark)");

let chosen = "auto";

export function isDark() {
  return chosen === "dark" || (chosen === "auto" && system.matches);
}

export function themeButton() {
  const button = h("button.icon-button", { type: "button", testid: "theme", onclick: () => choose(NEXT[chosen]) });
  function choose(theme) {
    chosen = theme;
    document.documentElement.dataset.theme = theme;
    keep(KEY, theme, localStorage);
    const label = `Colours: ${NAME[theme]}. Change to: ${NAME[NEXT[theme]]}`;
    fill(assign(button, { title: label, "aria-label": label }), icon(SIGN[theme]));
    tell();
  }
  const earlier = kept(KEY, localStorage);
  choose(NEXT[earlier] ? earlier : "auto");
  return button;
}

/** Charts are drawn with colours that they have to ask for. */
function tell() {
  colours.clear();
  window.dispatchEvent(new Event("theme"));
}
system.addEventListener("change", tell);

const colours = new Map();
const probe = h("span", { hidden: true });

/** A colour of theme.css as a canvas takes it: light-dark() is decided only where it is used. */
export function colour(name) {
  if (!colours.has(name)) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${name})`;
    colours.set(name, getComputedStyle(probe).color);
  }
  return colours.get(name);
}
