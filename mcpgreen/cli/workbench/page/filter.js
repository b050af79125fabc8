// The filter language of calls, the same as in `mcpgreen watch`:
//
//   tool:stats status:error dur:>1s client:cursor some words
//
// Terms are separated by blanks, and all must hold. `-` before a term turns it around; a comma separates alternatives;
// "quotes" keep blanks together. A term without a key is looked for in everything that is known of a call. A key that does
// not exist is a word, too, so that addresses can be searched for; `parse` also names it, as it may be a slip.

import { durationOf, cpuOf, segmentsOf } from "./calls-model.js";

const TEXTS = {
  tool: (call) => call.name,
  name: (call) => call.name,
  client: (call) => call.client,
  method: (call) => call.method,
  way: (call) => call.way,
  reason: (call) => call.reason,
};
const NUMBERS = { call: (call) => call.number, link: (call) => call.link, pid: (call) => call.pid, exit: (call) => call.exit };
const AMOUNTS = {
  dur: (call) => durationOf(call),
  queue: (call) => segmentsOf(call).queue,
  run: (call) => segmentsOf(call).run,
  write: (call) => segmentsOf(call).write,
  cpu: (call) => cpuOf(call),
  bytes: (call) => call.bytes,
  mem: (call) => (call.peakKb === undefined ? undefined : call.peakKb * 1024),
};
const UNITS = { "": 1, ms: 1, s: 1000, min: 60_000, m: 60_000, h: 3_600_000, b: 1, k: 1024, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };
const ERRORS = ["failed", "refused", "timed out"];
const STATUS_WORDS = { timeout: ["timed out"], error: ERRORS, done: ["ok"], open: ["waiting", "running", "asks"] };

export const KEYS = [...Object.keys(TEXTS), "status", ...Object.keys(NUMBERS), ...Object.keys(AMOUNTS)];

/** Returns {matches(call), unknown: [keys that do not exist]}. */
export function parse(text) {
  const unknown = [];
  const tests = [];
  for (const { isNegated, key, value } of termsOf(text)) {
    const test = testOf(key, value);
    if (key && !KEYS.includes(key)) unknown.push(key);
    if (test) tests.push(isNegated ? (call) => !test(call) : test);
  }
  return { matches: (call) => tests.every((test) => test(call)), unknown };
}

export function termsOf(text) {
  const pieces = text.match(/-?(?:[a-z]+:)?(?:"[^"]*"?|[^\s"]+)+/gi) || [];
  return pieces.map((piece) => {
    const isNegated = piece.startsWith("-") && piece.length > 1;
    const [, key, value] = /^(?:([a-z]+):)?(.*)$/is.exec(isNegated ? piece.slice(1) : piece);
    return { isNegated, key: key?.toLowerCase(), value: value.replaceAll('"', "") };
  });
}

function testOf(key, value) {
  if (key && value === "") return null; // somebody is still typing
  const wanted = value.toLowerCase().split(",").filter(Boolean);
  if (TEXTS[key]) return (call) => wanted.some((each) => String(TEXTS[key](call) ?? "").toLowerCase().includes(each));
  if (NUMBERS[key]) return (call) => wanted.some((each) => String(NUMBERS[key](call)) === each);
  if (AMOUNTS[key]) return amountTest(AMOUNTS[key], wanted);
  if (key === "status") return (call) => wanted.some((each) => hasStatus(call, each));
  const word = (key ? `${key}:${value}` : value).toLowerCase();
  return (call) => wordsOf(call).includes(word);
}

function hasStatus(call, wanted) {
  if (wanted === "hung") return call.isHung;
  return (STATUS_WORDS[wanted] || [wanted]).includes(call.status);
}

/** Without a sign, an amount is the least that is wanted: `dur:1s` is `dur:>=1s`. */
function amountTest(amountOf, wanted) {
  const tests = wanted.map((each) => {
    const [, sign, digits, unit] = /^(>=|<=|>|<|=)?(\d+(?:\.\d+)?)([a-z]*)$/.exec(each) || [];
    if (digits === undefined || !(unit in UNITS)) return () => false;
    const limit = Number(digits) * UNITS[unit];
    return { ">": (n) => n > limit, "<": (n) => n < limit, "<=": (n) => n <= limit, "=": (n) => n === limit }[sign]
      || ((n) => n >= limit);
  });
  return (call) => {
    const amount = amountOf(call);
    return amount !== undefined && tests.some((test) => test(amount));
  };
}

function wordsOf(call) {
  const words = [call.name, call.method, call.client, call.status, call.reason, call.arguments && JSON.stringify(call.arguments),
    call.stdout?.tail, call.stderr?.tail];
  return words.filter(Boolean).join("\n").toLowerCase();
}
