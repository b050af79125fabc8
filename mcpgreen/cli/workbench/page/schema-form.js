// A form for a JSON Schema, and the same value as JSON. Rule: going from one to the other and back loses nothing.

import { fill, h, Part, segmented } from "./dom.js";
import { isObject, parse, stringify } from "./exact-json.js";
import { makeField } from "./form-fields.js";
import { fieldOf } from "./schema-model.js";

export class SchemaForm extends Part {
  #form = null;
  #mode = "form";
  #schema = {};

  build() {
    this.text = h("textarea.code", { rows: 6, spellcheck: false, "aria-label": "Arguments as JSON", testid: "json-text", oninput: () => this.#checkText() });
    this.problem = h("p.field-hint.bad", { role: "alert", testid: "json-problem" });
    this.page = h("div.form-page");
    this.modes = segmented("Fill in as", [["form", "Form"], ["json", "JSON"]], "form", (mode) => this.show(mode), "mode");
    fill(this, h("div.form-bar", {}, h("h3", {}, this.heading || "Arguments"), this.modes), this.page, this.problem);
  }

  /** The schema, and what is filled in at first. */
  open(schema, value) {
    this.prepare();
    this.#schema = isObject(schema) ? schema : {};
    this.#form = makeField(fieldOf(this.#schema), { edited: () => this.#edited() });
    this.#form.node.classList.add("whole");
    this.value = value ?? initialOf(this.#schema, this.#form);
    this.#mode = "form";
    this.modes.choose("form");
    this.#draw();
  }

  /** Throws SyntaxError if the JSON is not finished. */
  get value() {
    if (this.#mode === "json") return this.text.value.trim() ? parse(this.text.value) : undefined;
    return this.#form.read();
  }

  set value(value) {
    this.#form.write(value);
    this.text.value = value === undefined ? "" : stringify(value, 2);
    this.problem.textContent = "";
  }

  show(mode) {
    if (mode === this.#mode) return;
    if (mode === "json") {
      this.text.value = stringify(this.#form.read() ?? {}, 2);
    } else {
      if (!this.#checkText()) {
        this.modes.choose("json");
        return;
      }
      this.#form.write(this.value);
    }
    this.#mode = mode;
    this.#draw();
  }

  focusFirst() {
    this.page.querySelector("textarea, input, select, button")?.focus();
  }

  #checkText() {
    let problem = "";
    try {
      this.#mode === "json" && this.text.value.trim() && parse(this.text.value);
    } catch (error) {
      problem = `This is not JSON yet: ${error.message}`;
    }
    this.problem.textContent = problem;
    this.#edited();
    return !problem;
  }

  #draw() {
    const hasFields = this.#form.node.querySelector("textarea, input, select, button.add, .constant");
    const isOpen = hasFields && fieldOf(this.#schema).kind === "json";
    if (this.#mode === "json") fill(this.page, this.text);
    else if (!hasFields) fill(this.page, h("p.nothing", {}, "It takes no arguments."));
    else fill(this.page, isOpen && h("p.nothing", {}, "It names no arguments. What you want to send can be typed as JSON."), this.#form.node);
  }

  #edited() {
    this.dispatchEvent(new CustomEvent("edit", { bubbles: true }));
  }
}

function initialOf(schema, form) {
  if (schema.default !== undefined) return schema.default;
  form.write(undefined);
  return form.read();
}

customElements.define("schema-form", SchemaForm);
