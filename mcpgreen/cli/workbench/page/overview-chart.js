// All calls at a glance: how many began when, which failed, and which part of the list is in view. A click goes there.

import { isFailure } from "./calls-model.js";
import { canvas, columnsPath } from "./charts.js";
import { h, Part } from "./dom.js";
import { clock } from "./format.js";
import { colour } from "./theme.js";

export class OverviewChart extends Part {
  #calls = [];
  #span = [0, 0];
  #window = null;

  build() {
    this.canvas = h("canvas", { role: "img", "aria-label": "Calls over time", testid: "overview" });
    this.from = h("span");
    this.until = h("span");
    this.append(this.canvas, h("div.overview-times", { "aria-hidden": "true" }, this.from, this.until));
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.#point(event);
    });
    this.canvas.addEventListener("pointermove", (event) => { if (event.buttons) this.#point(event); });
  }

  connected() {
    this.listen(window, "theme", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this);
  }

  show(calls, span, window) {
    this.#calls = calls;
    this.#span = span;
    this.#window = window;
    this.draw();
  }

  #point(event) {
    const share = Math.min(1, Math.max(0, event.offsetX / this.canvas.clientWidth));
    const [from, until] = this.#span;
    this.dispatchEvent(new CustomEvent("moment", { detail: from + share * (until - from) }));
  }

  draw() {
    const [context, width, height] = canvas(this.canvas);
    if (!context) return;
    const [from, until] = this.#span;
    const span = until - from || 1;
    if (this.#window) {
      context.fillStyle = colour("accent-faint");
      const left = (width * (this.#window[0] - from)) / span;
      context.fillRect(left, 0, Math.max(3, (width * (this.#window[1] - this.#window[0])) / span), height);
    }
    const bins = Math.max(1, Math.floor(width / 4));
    const ok = new Array(bins).fill(0);
    const failed = new Array(bins).fill(0);
    for (const call of this.#calls) {
      const bin = Math.min(bins - 1, Math.max(0, Math.floor((bins * (call.begin - from)) / span)));
      (isFailure(call) || call.isHung ? failed : ok)[bin] += 1;
    }
    const most = Math.max(1, ...ok.map((each, index) => each + failed[index]));
    const scale = (height - 4) / Math.sqrt(most);
    columnsPath(context, ok.map((each, index) => Math.sqrt(each + failed[index]) * scale), width, height, colour("run"));
    columnsPath(context, failed.map((each) => Math.sqrt(each) * scale), width, height, colour("bad"));
    this.from.textContent = this.#calls.length ? clock(from) : "";
    this.until.textContent = this.#calls.length ? clock(until) : "";
  }
}

customElements.define("overview-chart", OverviewChart);
