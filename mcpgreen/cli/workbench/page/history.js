// The last calls of each item, kept in the browser. Rule: bounded, and never in the way: without storage, they last as long
// as the page.

const KEY = "mcpgreen.calls.";
const MOST_PER_ITEM = 12;
const MOST_ITEMS = 60;
const MOST_CHARACTERS = 20_000; // of the arguments of one call

const inMemory = new Map();

export function historyOf(project, item) {
  return read(keyOf(project, item));
}

/** `run` is {at, params, options, outcome, ms}. What was called again with the same parameters is there once. */
export function remember(project, item, run) {
  if (JSON.stringify(run.params).length > MOST_CHARACTERS) return;
  const key = keyOf(project, item);
  const same = JSON.stringify(run.params);
  const others = read(key).filter((each) => JSON.stringify(each.params) !== same);
  write(key, [run, ...others].slice(0, MOST_PER_ITEM));
}

function keyOf(project, { kind, id }) {
  return `${KEY}${project} ${kind} ${id}`;
}

function read(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) || inMemory.get(key) || [];
  } catch {
    return inMemory.get(key) || [];
  }
}

function write(key, runs) {
  inMemory.set(key, runs);
  try {
    forgetOldest(key);
    localStorage.setItem(key, JSON.stringify(runs));
  } catch {
    // No place, or not allowed.
  }
}

function forgetOldest(key) {
  const keys = Object.keys(localStorage).filter((each) => each.startsWith(KEY));
  if (keys.length < MOST_ITEMS || keys.includes(key)) return;
  keys.sort((a, b) => (read(a)[0]?.at || 0) - (read(b)[0]?.at || 0));
  localStorage.removeItem(keys[0]);
}
