// The HTTP interface of `mcpgreen dev`. Rule: a failure is an `ApiError` with a sentence that can be shown.

import { parse, stringify } from "./exact-json.js";

export class ApiError extends Error {}

export const readCatalog = () => get("/api/catalog");
export const readServers = () => get("/api/servers");
export const answerQuestion = (id, key, answer) => post("/api/answer", { id, key, answer });
export const cancelRequest = (id) => post("/api/cancel", { id });
export const saveTest = (test) => post("/api/test", test);
export const appAddress = (uri) => `/api/app?${new URLSearchParams({ uri })}`;

/** The events of a server, until it is closed: {event}, {catalogChanged} or {isOpen, isOver}: the browser gives up. */
export function watchEvents(server, listener) {
  const source = new EventSource(`/api/events?${new URLSearchParams({ server })}`);
  source.onopen = () => listener({ isOpen: true });
  source.onerror = () => listener({ isOpen: false, isOver: source.readyState === EventSource.CLOSED });
  source.onmessage = ({ data }) => listener({ event: JSON.parse(data) });
  source.addEventListener("catalog", () => listener({ catalogChanged: true }));
  return source;
}

/** One interaction: what happens until the answer comes, message by message. */
export async function* request(body, signal) {
  const response = await send("/api/request", { method: "POST", body: stringify(body), signal });
  for await (const data of dataOf(response.body)) yield parse(data);
}

async function* dataOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let searched = 0; // a large answer arrives in many pieces, and each is searched once
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (;;) {
      const end = rest.indexOf("\n\n", searched);
      if (end === -1) break;
      const lines = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data:"));
      rest = rest.slice(end + 2);
      searched = 0;
      if (lines.length) yield lines.map((line) => line.slice(5).trimStart()).join("\n");
    }
    searched = Math.max(0, rest.length - 1);
  }
}

const get = async (path) => parse(await (await send(path)).text());
const post = async (path, body) => parse(await (await send(path, { method: "POST", body: stringify(body) })).text());

async function send(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: options.body ? { "Content-Type": "application/json" } : {} });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("`mcpgreen dev` does not answer. Is it still running?");
  }
  if (response.ok) return response;
  let sentence = `${path} failed with status ${response.status}.`;
  try {
    sentence = JSON.parse(await response.text()).error || sentence;
  } catch {
    // Not from the workbench: the status has to do.
  }
  throw new ApiError(sentence);
}
