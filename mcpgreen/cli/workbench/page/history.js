// The last calls of each item, kept as long as the tab: they may have secrets. Rule: everything has a bound.

import { keep, kept } from "./storage.js";

const KEY = "mcpgreen.calls.";
const MOST_PER_ITEM = 12;
const MOST_ITEMS = 60;
const MOST_CHARACTERS = 20_000; // of the arguments of one call

export function historyOf(project, item) {
  return kept(keyOf(project, item)) ?? [];
}

/** `run` is {at, params, options, outcome, ms}. What was called again with the same parameters is there once. */
export function remember(project, item, run) {
  if (JSON.stringify(run.params).length > MOST_CHARACTERS) return;
  const key = keyOf(project, item);
  const same = JSON.stringify(run.params);
  const others = (kept(key) ?? []).filter((each) => JSON.stringify(each.params) !== same);
  forgetOldest(key);
  keep(key, [run, ...others].slice(0, MOST_PER_ITEM));
}

function keyOf(project, { kind, id }) {
  return `${KEY}${project} ${kind} ${id}`;
}

function forgetOldest(newKey) {
  const keys = Object.keys(sessionStorage).filter((each) => each.startsWith(KEY));
  if (keys.length < MOST_ITEMS || keys.includes(newKey)) return;
  keys.sort((a, b) => (kept(a)?.[0]?.at || 0) - (kept(b)?.[0]?.at || 0));
  sessionStorage.removeItem(keys[0]);
}
