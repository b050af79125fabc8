// The filter language of calls, the same as that of `mcpgreen watch`:
//
//   tool:stats status:error dur:>1s -client:cursor some words
//
// All terms must hold; `-` turns one around; "quotes" keep blanks together; with a star, a whole text has to match. What
// has no key, or one that does not exist, is looked for in everything that is known of a call. Here, `status:hung` also
// finds the calls without a sign of life.

import { durationOf, isFailure } from "./calls-model.js";

const TERM = /(-?)(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/g;
const DURATION = /^(>=|<=|>|<|=)?(\d+(?:\.\d+)?)(us|ms|s|m|h)?$/;
const MS_OF = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const COMPARE = {
  ">": (one, other) => one > other, ">=": (one, other) => one >= other, "<": (one, other) => one < other,
  "<=": (one, other) => one <= other, "=": (one, other) => one === other,
};
const TEXTS = {
  tool: (call) => (call.method === "tools/call" ? call.name : ""),
  name: (call) => call.name,
  method: (call) => call.method,
  client: (call) => call.client,
  server: (_call, server) => `${server?.name} ${server?.project}`,
  task: (call) => call.task,
  reason: (call) => call.reason,
};
const NUMBERS = {
  call: (call) => [call.number, call.interaction],
  id: (call) => [call.id],
  pid: (call, server) => [server?.pid, call.pid],
  link: (call) => [call.link],
};

export const KEYS = [...Object.keys(TEXTS), ...Object.keys(NUMBERS), "status", "dur"];

/** A function that says whether a call of a server is wanted. */
export function parse(text) {
  const tests = [...text.matchAll(TERM)].map(([, minus, key = "", quoted, plain = ""]) => {
    const value = (quoted || plain).toLowerCase();
    const test = testOf(key, value) || wordTest(key ? `${key}:${value}` : value);
    return minus ? (call, server) => !test(call, server) : test;
  });
  return (call, server) => tests.every((test) => test(call, server));
}

function testOf(key, value) {
  if (Object.hasOwn(TEXTS, key)) return textTest(TEXTS[key], value);
  if (Object.hasOwn(NUMBERS, key)) return (call, server) => NUMBERS[key](call, server).some((each) => String(each) === value);
  if (key === "status") return statusTest(value.replaceAll("-", " "));
  const [, sign = ">=", number, unit = "s"] = (key === "dur" && DURATION.exec(value)) || [];
  if (number === undefined) return null;
  return (call) => COMPARE[sign](durationOf(call), Number(number) * MS_OF[unit]);
}

function textTest(textOf, value) {
  const found = (call, server) => String(textOf(call, server) ?? "").toLowerCase();
  if (!value.includes("*")) return (call, server) => found(call, server).includes(value);
  const pattern = new RegExp(`^${value.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".")}$`, "s");
  return (call, server) => found(call, server) !== "" && pattern.test(found(call, server));
}

function statusTest(wanted) {
  if (wanted === "error") return isFailure;
  if (wanted === "hung") return (call) => Boolean(call.isHung);
  return (call) => call.status.startsWith(wanted);
}

function wordTest(word) {
  return (call) => [call.method, call.name, call.client, call.status, call.reason, call.task, call.arguments && JSON.stringify(call.arguments)]
    .filter(Boolean).join(" ").toLowerCase().includes(word);
}
