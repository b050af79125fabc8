// The four parts of a call as a bar: waiting, starting, running, writing. The same everywhere in the page.

import { segmentsOf, statusOf } from "./calls-model.js";
import { h } from "./dom.js";
import { milliseconds } from "./format.js";

export const PARTS = ["queue", "start", "run", "write"];

export function makeBar() {
  const bar = h("span.bar", { "aria-hidden": "true" });
  bar.pieces = PARTS.map((part) => h("span", { class: part }));
  bar.append(...bar.pieces);
  return bar;
}

/** `placeOf(ms)` says where a moment after the call's begin is, in percent of the room. */
export function showBar(bar, call, now, placeOf) {
  const segments = segmentsOf(call, now);
  let at = 0;
  PARTS.forEach((part, index) => {
    const left = placeOf(at);
    at += segments[part];
    const width = placeOf(at) - left;
    const { style } = bar.pieces[index];
    style.left = `${left}%`;
    style.width = part === "run" ? `max(2px, ${width}%)` : `${width}%`;
  });
  bar.dataset.status = statusOf(call);
}

/** The bar of one call with its legend, as wide as there is room. */
export function anatomy(call, now) {
  const bar = makeBar();
  const segments = segmentsOf(call, now);
  const total = PARTS.reduce((sum, part) => sum + segments[part], 0) || 1;
  showBar(bar, call, now, (ms) => (100 * ms) / total);
  const text = PARTS.map((part) => `${part} ${milliseconds(segments[part])}`).join(", ");
  return h("div.anatomy", { role: "img", "aria-label": text, testid: "anatomy" }, bar,
    h("ul.legend", { "aria-hidden": "true" }, PARTS.map((part) => h("li", { class: part }, part, h("b", {}, milliseconds(segments[part]))))));
}
