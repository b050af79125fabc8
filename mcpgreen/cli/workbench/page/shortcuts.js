// The keyboard: one table, from which keys are understood and the help dialog is made.

import { dialogOf, fill, h } from "./dom.js";

const groups = [];
let isWaitingForSecond = false;

/** `rows` are [keys, what it does, action]. Keys: "g c" is one after the other; "Mod+Enter" also works while typing. */
export function addShortcuts(title, rows, isActive = () => true) {
  groups.push({ title, rows, isActive });
}

export function startKeyboard() {
  document.addEventListener("keydown", (event) => {
    const key = nameOf(event);
    if (event.defaultPrevented || (isTyping(event.target) && !key.startsWith("Mod+") && key !== "Escape")) return;
    if (event.altKey || (document.querySelector("dialog:modal") && key !== "?")) return;
    const wanted = isWaitingForSecond ? `g ${key}` : key;
    isWaitingForSecond = !isWaitingForSecond && key === "g";
    const row = groups.filter(({ isActive }) => isActive()).flatMap(({ rows }) => rows).find(([keys, , action]) => action && keys.split(", ").includes(wanted));
    if (!row) return;
    if (row[2]() === false) return; // not here, not now
    event.preventDefault();
  });
}

export function helpDialog() {
  const body = h("div.help-groups");
  const dialog = dialogOf("Keyboard", "help", body);
  dialog.open_ = () => {
    fill(body, [groups.at(-1), ...groups.slice(0, -1)].map(({ title, rows }) => h("section", {}, h("h3", {}, title),
      h("dl", {}, rows.map(([keys, what]) => [h("dt", {}, keys.split(", ").map(keysOf)), h("dd", {}, what)])))));
    if (!dialog.open) dialog.showModal();
  };
  return dialog;
}

const isMac = /mac|iphone|ipad/i.test(navigator.userAgent);

export function keysOf(keys) {
  return h("span.keys", {}, keys.split(/[+ ]/).map((key) => h("kbd", {}, key === "Mod" ? (isMac ? "⌘" : "Ctrl") : SIGNS[key] || key)));
}
const SIGNS = { Enter: "⏎", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

function nameOf(event) {
  return `${event.ctrlKey || event.metaKey ? "Mod+" : ""}${event.key}`;
}

function isTyping(target) {
  return target.isContentEditable || (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && !/^(checkbox|radio|button)$/.test(target.type));
}
