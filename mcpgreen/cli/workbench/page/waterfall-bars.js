// The bars of the calls in view, on one canvas that moves with their rows.

import { PARTS } from "./call-bar.js";
import { isFailure, segmentsOf } from "./calls-model.js";
import { canvas } from "./charts.js";
import { colour } from "./theme.js";

const HEIGHT = { queue: 4, start: 8, run: 12, write: 8 };

/** `placesOf(call)` gives a function from milliseconds after its begin to percent of the width. */
export function drawBars(element, { calls, from, row, left, width, now, placesOf }) {
  Object.assign(element.style, { left: `${left}px`, width: `${width}px`, height: `${calls.length * row}px`, transform: `translateY(${from * row}px)` });
  const [context] = canvas(element, [width, calls.length * row]);
  if (!context) return;
  calls.forEach((call, index) => {
    const segments = segmentsOf(call, now);
    const placeOf = placesOf(call);
    const middle = (index + 0.5) * row;
    let at = 0;
    for (const part of PARTS) {
      const begin = (placeOf(at) * width) / 100;
      at += segments[part];
      const length = Math.min(width, (placeOf(at) * width) / 100) - begin;
      if (part === "run") runBar(context, call, begin, middle - HEIGHT.run / 2, Math.max(2, length));
      else if (length > 0) {
        context.fillStyle = colour(part);
        context.fillRect(begin, middle - HEIGHT[part] / 2, length, HEIGHT[part]);
      }
    }
  });
}

function runBar(context, call, left, top, width) {
  const isOpenStill = call.endedAt === undefined;
  context.fillStyle = colour(isFailure(call) ? "bad" : call.status === "cancelled" ? "queue" : call.isHung ? "start" : "run");
  context.globalAlpha = call.isHung ? 0.35 : isOpenStill ? 0.7 : 1;
  context.beginPath();
  context.roundRect(left, top, width, HEIGHT.run, 2);
  context.fill();
  context.globalAlpha = 1;
  if (!call.isHung) return;
  context.strokeStyle = colour("start");
  context.setLineDash([4, 3]);
  context.strokeRect(left + 0.5, top + 0.5, width - 1, HEIGHT.run - 1);
  context.setLineDash([]);
}
