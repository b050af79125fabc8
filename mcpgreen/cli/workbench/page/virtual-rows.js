// A list of which only the rows in view have elements, so that thousands are no more work than thirty. A listbox for the
// keyboard and for screen readers. `row()` makes an element, `show(element, item, index)` fills it again and again.

import { freshId, h, inNextFrame, Part } from "./dom.js";

const SPARE = 6;

export class VirtualRows extends Part {
  #items = [];
  #pool = [];
  #chosen = -1;
  #isWanted = false;
  #draw = inNextFrame(() => this.draw());
  height = 0;
  rowHeight = 30;

  setUp({ label, row, show, keyOf, open, testid, beforeDraw = () => {}, afterDraw = () => {} }) {
    Object.assign(this, { row, show, keyOf, open, beforeDraw, afterDraw });
    this.classList.add("virtual");
    this.field = h("div.virtual-field", { role: "presentation" });
    this.setAttribute("role", "listbox");
    this.setAttribute("aria-label", label);
    this.dataset.testid = testid;
    this.tabIndex = 0;
    this.append(this.field);
    this.addEventListener("scroll", this.#draw, { passive: true });
    this.addEventListener("keydown", (event) => this.#key(event));
    this.addEventListener("click", (event) => {
      const element = event.target.closest(".virtual-row");
      if (element) this.choose(element.index, { isOpened: true });
    });
  }

  connected() {
    new ResizeObserver(() => {
      this.#measure();
      this.#draw();
    }).observe(this);
    this.listen(this, "focus", this.#draw);
  }

  get items() {
    return this.#items;
  }

  /** Shows other items. `shift` rows were added above, and what is in view stays where it is. */
  replace(items, shift = 0) {
    const key = this.chosenKey;
    this.#items = items;
    this.#chosen = key === undefined ? -1 : items.findIndex((item) => this.keyOf(item) === key);
    this.field.style.height = `${items.length * this.rowHeight}px`; // else there is nowhere to scroll to
    if (this.#isWanted && this.#chosen >= 0) this.#reveal(this.#chosen);
    else if (shift) this.scrollTop += shift * this.rowHeight;
    this.draw();
  }

  get inView() {
    const first = Math.max(0, Math.floor(this.scrollTop / this.rowHeight));
    return { first, last: Math.min(this.#items.length, first + Math.ceil(this.height / this.rowHeight) + 1) };
  }

  // Measured when it changes, not when it is drawn: a question about the layout makes the browser do it there and then.
  #measure() {
    this.height = this.clientHeight;
    this.width = this.clientWidth;
    this.rowHeight = parseFloat(getComputedStyle(this).getPropertyValue("--row")) || 30;
  }

  choose(index, { isOpened = false } = {}) {
    if (index < 0 || index >= this.#items.length) return;
    this.#chosen = index;
    this.chosenKey = this.keyOf(this.#items[index]);
    this.#reveal(index);
    this.#draw();
    if (isOpened) this.open(this.#items[index]);
  }

  chooseKey(key) {
    this.chosenKey = key;
    this.#chosen = this.#items.findIndex((item) => this.keyOf(item) === key);
    this.#isWanted = key !== undefined && this.#chosen < 0; // it may still come
    if (this.#chosen >= 0) this.#reveal(this.#chosen);
    this.#draw();
  }

  #reveal(index) {
    const height = this.rowHeight;
    if (!this.height) return;
    this.#isWanted = false;
    if (index * height < this.scrollTop) this.scrollTop = index * height;
    else if ((index + 1) * height > this.scrollTop + this.height) this.scrollTop = (index + 1) * height - this.height;
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.height / this.rowHeight) - 1);
    const last = this.#items.length - 1;
    const to = {
      ArrowDown: this.#chosen + 1, ArrowUp: Math.max(0, this.#chosen - 1), PageDown: Math.min(last, this.#chosen + page),
      PageUp: Math.max(0, this.#chosen - page), Home: 0, End: last,
    }[event.key];
    if (event.key === "Enter" && this.#chosen >= 0) this.open(this.#items[this.#chosen]);
    else if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    else this.choose(to);
    event.preventDefault();
  }

  draw() {
    if (!this.isConnected || !this.height) return;
    const height = this.rowHeight;
    const { first, last } = this.inView;
    this.field.style.height = `${this.#items.length * height}px`;
    const from = Math.max(0, first - SPARE);
    const until = Math.min(this.#items.length, last + SPARE);
    this.beforeDraw(this.#items.slice(first, last));
    while (this.#pool.length < until - from) {
      const element = this.row();
      element.classList.add("virtual-row");
      element.id = freshId("row");
      element.setAttribute("role", "option");
      this.#pool.push(element);
      this.field.append(element);
    }
    let active = null;
    this.#pool.forEach((element, position) => {
      // A row keeps its element while it is in view, so that a click cannot hit another one.
      const index = from + ((position - (from % this.#pool.length) + this.#pool.length) % this.#pool.length);
      const isUsed = index < until;
      element.hidden = !isUsed;
      if (!isUsed) return;
      if (element.index !== index || element.height !== height) {
        Object.assign(element, { index, height });
        element.style.transform = `translateY(${index * height}px)`;
        element.setAttribute("aria-posinset", String(index + 1));
      }
      put(element, "aria-setsize", String(this.#items.length));
      put(element, "aria-selected", String(index === this.#chosen));
      if (index === this.#chosen) active = element.id;
      this.show(element, this.#items[index], index);
    });
    this.afterDraw({ from, until });
    if (active) this.setAttribute("aria-activedescendant", active);
    else this.removeAttribute("aria-activedescendant");
  }
}

/** Changes an attribute or a text only if it is another one: even the same one would cost a frame something. */
export function put(element, name, value) {
  const kept = (element.kept ||= {});
  if (kept[name] === value) return;
  kept[name] = value;
  if (name === "text") element.textContent = value;
  else element.setAttribute(name, value);
}

customElements.define("virtual-rows", VirtualRows);
