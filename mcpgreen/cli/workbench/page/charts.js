// Charts on a canvas. Rule: each has a sentence for those who cannot see it, set by whoever draws it.

import { colour } from "./theme.js";
import { niceStep } from "./statistics.js";

const MARGIN = { left: 54, right: 10, top: 10, bottom: 20 };

/** A canvas as sharp as the screen: [context, width, height], or nothing while it is not visible. */
export function canvas(element, [width, height] = [element.clientWidth, element.clientHeight]) {
  if (!width || !height) return [];
  const ratio = Math.min(3, devicePixelRatio || 1);
  if (element.width !== Math.round(width * ratio) || element.height !== Math.round(height * ratio)) {
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
  }
  const context = element.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width, height];
}

export function columnsPath(context, heights, width, height, fill) {
  const step = width / heights.length;
  context.fillStyle = fill;
  heights.forEach((each, index) => {
    if (each > 0) context.fillRect(index * step + 0.5, height - Math.max(2, each), Math.max(1, step - 1), Math.max(2, each));
  });
}

/** The frame of a chart: grid, marks, and functions from values to pixels. `y` may be logarithmic. */
export function axes(element, { from, until, low = 0, high, isLog = false, text, timeText }) {
  const [context, width, height] = canvas(element);
  if (!context) return null;
  const inner = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom };
  const x = (at) => inner.left + ((at - from) / (until - from || 1)) * (inner.right - inner.left);
  const scaled = isLog ? Math.log10 : (value) => value;
  const y = (value) => inner.bottom - ((scaled(Math.max(low, value)) - scaled(low)) / (scaled(high) - scaled(low) || 1)) * (inner.bottom - inner.top);
  context.font = "11px ui-monospace, monospace";
  context.fillStyle = colour("soft");
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of marksOf(low, high, isLog)) {
    const at = Math.round(y(value)) + 0.5;
    context.beginPath();
    context.moveTo(inner.left, at);
    context.lineTo(inner.right, at);
    context.stroke();
    context.fillText(text(value), inner.left - 6, at);
  }
  context.textBaseline = "alphabetic";
  const marks = Math.max(2, Math.floor((inner.right - inner.left) / 110));
  for (let index = 0; index <= marks; index += 1) {
    context.textAlign = index === 0 ? "left" : index === marks ? "right" : "center";
    const at = from + ((until - from) * index) / marks;
    context.fillText(timeText(at), x(at), height - 5);
  }
  return { context, x, y, inner };
}

function marksOf(low, high, isLog) {
  if (isLog) {
    const marks = [];
    for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high) + 0.001; power += 1) marks.push(10 ** power);
    return marks;
  }
  const step = niceStep(high - low, 4) || 1;
  return Array.from({ length: Math.floor((high - low) / step + 1.001) }, (_, index) => low + index * step);
}

/** A line through [at, value] points, with the room below it filled if wanted. */
export function line({ context, x, y, inner }, points, stroke, { fill = null, isStepped = false } = {}) {
  if (!points.length) return;
  context.beginPath();
  points.forEach(([at, value], index) => {
    if (!index) context.moveTo(x(at), y(value));
    else {
      if (isStepped) context.lineTo(x(at), y(points[index - 1][1]));
      context.lineTo(x(at), y(value));
    }
  });
  context.strokeStyle = stroke;
  context.lineWidth = 1.5;
  context.lineJoin = "round";
  context.stroke();
  if (!fill) return;
  context.lineTo(x(points.at(-1)[0]), inner.bottom);
  context.lineTo(x(points[0][0]), inner.bottom);
  context.closePath();
  context.fillStyle = fill;
  context.fill();
}
