// The fields of a form: {node, read(), write(value)}. `read` gives undefined if nothing is to be sent, which is not the same
// as an empty text. Rule: what was typed stays, even if it is not what the schema asks for; it is then sent as it is.

import { button, fill, freshId, h, segmented } from "./dom.js";
import { isObject, keptNumber, numberFrom, parse, stringify } from "./exact-json.js";
import { icon } from "./icons.js";
import { fits, hintOf, kindText, variantFor } from "./schema-model.js";

/** A field with its name, its description, and what may be wrong. `edited` is called after each change by hand. */
export function makeField(field, { name = "", isRequired = true, path = name, edited = () => {} } = {}) {
  const id = freshId("field");
  const hint = h("p.field-hint", { id: `${id}-hint`, "aria-live": "polite" });
  const place = h("div.field-control");
  const clear = smallButton("Do not send", "close", () => change(undefined), `clear-${path}`);
  const nothing = field.isNullable && h("button.chip", {
    type: "button", "aria-pressed": "false", testid: `null-${path}`,
    onclick: () => change(nothing.getAttribute("aria-pressed") === "true" ? undefined : null),
  }, "null");
  const isGroup = GROUPS.has(field.kind);
  const label = h(isGroup ? "span" : "label", { class: "field-name", id: `${id}-label`, ...(isGroup ? {} : { for: id }) }, name || field.label || "value");
  const node = h("div.field", { testid: `field-${path}`, "data-kind": field.kind, ...(isGroup ? { role: "group", "aria-labelledby": `${id}-label` } : {}) },
    h("div.field-head", {},
      label,
      isRequired && h("span.required", {}, "required"),
      h("span.kind", {}, kindText(field)),
      h("span.push"), nothing, clear),
    field.title && field.title !== name && h("p.field-title", {}, field.title),
    field.description && h("p.field-description", {}, field.description),
    place, hint);

  const parts = { id, path, isRequired, hintId: hint.id, edited: onEdit, label: `${id}-label` };
  const own = CONTROLS[field.kind](field, parts);
  let raw = null; // for a value that the field cannot show
  let control = own;
  let isNull = false;

  function onEdit() {
    isNull = false;
    refresh();
    edited();
  }
  function change(value) {
    write(value);
    edited();
    if (value === undefined) node.querySelector("textarea, input, select, button.add")?.focus();
  }
  function write(value) {
    isNull = value === null && field.isNullable;
    if (!isNull && !fits(field, value)) {
      raw ||= CONTROLS.json(field, { ...parts, note: "The field cannot show this value, so it is shown as JSON." });
      control = raw;
    } else {
      control = own;
    }
    control.write(isNull ? undefined : value);
    refresh();
  }
  function read() {
    return isNull ? null : control.read();
  }
  function refresh() {
    const value = read();
    if (place.firstChild !== control.node) fill(place, control.node);
    node.classList.toggle("is-set", value !== undefined);
    node.classList.toggle("is-null", isNull);
    if (nothing) nothing.setAttribute("aria-pressed", String(isNull));
    clear.hidden = value === undefined || field.kind === "constant" || (isRequired && isGroup);
    const isUntouched = value === undefined && !node.classList.contains("was-left");
    hint.textContent = isNull || isUntouched ? "" : hintOf(field, value, isRequired) || (value === "" ? "An empty text is sent." : "");
  }
  node.addEventListener("focusout", () => {
    node.classList.add("was-left");
    refresh();
  });
  write(undefined);
  return { node, read, write };
}

const GROUPS = new Set(["boolean", "choices", "list", "object", "variants", "constant"]);

const CONTROLS = {
  text(field, parts) {
    const input = textArea(parts, { rows: field.isProse ? 3 : 1, placeholder: exampleOf(field) });
    let isTouched = false;
    input.addEventListener("input", () => {
      isTouched = true;
      parts.edited();
    });
    return {
      node: input,
      read: () => (isTouched ? input.value : undefined),
      write(value) {
        isTouched = value !== undefined;
        input.value = value ?? "";
      },
    };
  },

  number(field, parts) {
    const input = h("input", { ...named(parts), type: "text", inputMode: "decimal", autocomplete: "off", placeholder: exampleOf(field),
      oninput: parts.edited });
    return {
      node: input,
      read() {
        const text = input.value.trim();
        if (text === "") return undefined;
        try {
          return numberFrom(text);
        } catch {
          return input.value;
        }
      },
      write(value) {
        input.value = value === undefined ? "" : keptNumber(value) ?? String(value);
      },
    };
  },

  boolean(field, parts) {
    let value;
    const options = [[true, "true"], [false, "false"]];
    const node = segmented(field.name || "value", options, undefined, (chosen) => {
      value = chosen;
      parts.edited();
    }, `input-${parts.path}`);
    node.setAttribute("aria-describedby", parts.hintId);
    return { node, read: () => value, write: (written) => { value = written; node.choose(written); } };
  },

  choice(field, parts) {
    const select = h("select", { ...named(parts), onchange: parts.edited },
      h("option", { value: "" }, "–"),
      field.choices.map(({ label }, index) => h("option", { value: String(index) }, label)));
    return {
      node: h("span.select", {}, select, icon("down")),
      read: () => (select.value === "" ? undefined : field.choices[Number(select.value)].value),
      write(value) {
        const index = value === undefined ? -1 : field.choices.findIndex((each) => stringify(each.value) === stringify(value));
        select.value = index === -1 ? "" : String(index);
      },
    };
  },

  choices(field, parts) {
    let isTouched = false;
    const boxes = field.choices.map(({ label }, index) => h("input", {
      type: "checkbox", testid: `input-${parts.path}-${index}`, "aria-label": label,
      onchange: () => { isTouched = true; parts.edited(); },
    }));
    return {
      node: h("div.checks", {}, boxes.map((box, index) => h("label.check", {}, box, h("span", {}, field.choices[index].label)))),
      read: () => (isTouched ? field.choices.filter((_, index) => boxes[index].checked).map((each) => each.value) : undefined),
      write(value) {
        isTouched = value !== undefined;
        boxes.forEach((box, index) => { box.checked = Boolean(value?.includes(field.choices[index].value)); });
      },
    };
  },

  date: (_field, parts) => native(parts, "date"),
  time: (_field, parts) => native(parts, "time"),
  password: (_field, parts) => native(parts, "password"),

  datetime(_field, parts) {
    const input = h("input", { ...named(parts), type: "datetime-local", step: "1" });
    let kept; // as it was written, until somebody changes it: another notation of the same moment is another text
    input.addEventListener("input", () => {
      kept = input.value ? withOffset(input.value) : undefined;
      parts.edited();
    });
    return {
      node: input,
      read: () => kept,
      write(value) {
        kept = value;
        const date = new Date(value);
        input.value = value === undefined || Number.isNaN(date.getTime()) ? "" : localTime(date);
      },
    };
  },

  list(field, parts) {
    let items = [];
    let isSet = false;
    const rows = h("ol.items");
    const add = button("add.quiet", `add-${parts.path}`, () => addItem(true), icon("plus"), "Add an item");
    function addItem(isByHand, value) {
      const at = items.length;
      const item = makeField(field.item, { name: String(at + 1), path: `${parts.path}.${at}`, edited: parts.edited });
      item.write(value === undefined ? field.item.initial : value);
      items.push(item);
      isSet = true;
      draw();
      if (!isByHand) return;
      item.node.querySelector("textarea, input, select, button.add")?.focus();
      parts.edited();
    }
    function move(index, by) {
      const [moved] = items.splice(index, 1);
      if (by) items.splice(index + by, 0, moved);
      draw();
      parts.edited();
      (by ? rows.children[index + by].querySelector("button") : add).focus();
    }
    function draw() {
      fill(rows, items.map((item, index) => h("li", {}, item.node, h("div.item-buttons", {},
        smallButton(`Move item ${index + 1} up`, "up", () => move(index, -1), `up-${parts.path}-${index}`, index === 0),
        smallButton(`Move item ${index + 1} down`, "down", () => move(index, 1), `down-${parts.path}-${index}`, index === items.length - 1),
        smallButton(`Remove item ${index + 1}`, "close", () => move(index, 0), `remove-${parts.path}-${index}`)))));
    }
    return {
      node: h("div", {}, rows, add),
      // An item that nothing was typed into is not there yet, but its place is kept.
      read: () => (isSet ? items.map((item) => item.read()).filter((value) => value !== undefined) : undefined),
      write(value) {
        items = [];
        isSet = value !== undefined;
        for (const each of value || []) addItem(false, each);
        draw();
      },
    };
  },

  object(field, parts) {
    const members = field.properties.map(({ name, isRequired, field: member }) => ({
      name, isRequired, initial: member.initial,
      part: makeField(member, { name, isRequired, path: parts.path ? `${parts.path}.${name}` : name, edited: parts.edited }),
    }));
    let others = {}; // members that the form does not know
    let isSet = false;
    const more = h("p.field-note", { hidden: true });
    const body = h("div.members", {}, members.map(({ part }) => part.node), more);
    return optional(parts, body, {
      read() {
        const value = {};
        for (const { name, part } of members) {
          const each = part.read();
          if (each !== undefined) value[name] = each;
        }
        return isSet ? { ...value, ...others } : undefined;
      },
      write(value) {
        isSet = value !== undefined;
        others = isObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => !members.some((member) => member.name === name))) : {};
        for (const { name, part } of members) part.write(value?.[name]);
        const names = Object.keys(others);
        more.hidden = !names.length;
        more.textContent = `Also sent, and shown under JSON: ${names.join(", ")}`;
      },
      begin() {
        return Object.fromEntries(members.filter(({ initial }) => initial !== undefined).map(({ name, initial }) => [name, initial]));
      },
    });
  },

  variants(field, parts) {
    let chosen = 0;
    let isSet = false;
    const all = field.variants.map((variant, index) => ({
      control: CONTROLS[variant.kind](variant, { ...parts, id: freshId("field"), path: parts.path, isRequired: true }), index, isFresh: true,
    }));
    const page = h("div.variant");
    const bar = segmented(`Form of ${field.name || "the value"}`, field.variants.map(({ label }, index) => [String(index), label]), "0", (value) => {
      show(Number(value));
      parts.edited();
    }, `variant-${parts.path || "root"}`);
    function show(index) {
      chosen = index;
      bar.choose(String(index));
      const each = all[index];
      if (each.isFresh) each.control.write(startOf(field.variants[index], each.control));
      each.isFresh = false;
      fill(page, each.control.node);
    }
    return optional(parts, h("div", {}, bar, page), {
      read: () => (isSet ? all[chosen].control.read() : undefined),
      write(value) {
        isSet = value !== undefined;
        if (!isSet) return;
        const index = variantFor(field, value);
        all[index].control.write(value);
        all[index].isFresh = false;
        show(index);
      },
      begin() {
        show(chosen);
        return all[chosen].control.read() ?? startOf(field.variants[chosen], all[chosen].control);
      },
    });
  },

  constant(field) {
    let isSent = false;
    return {
      node: h("code.constant", {}, stringify(field.value)),
      read: () => (isSent ? field.value : undefined),
      write: (value) => { isSent = value !== undefined; },
    };
  },

  json(field, parts) {
    const input = textArea(parts, { rows: 2, placeholder: exampleOf(field) || "JSON" });
    input.classList.add("code");
    input.addEventListener("input", parts.edited);
    return {
      node: h("div", {}, parts.note && h("p.field-note", {}, parts.note), input),
      read() {
        if (input.value.trim() === "") return undefined;
        try {
          return parse(input.value);
        } catch {
          return input.value; // a text is JSON, too
        }
      },
      write(value) {
        input.value = value === undefined ? "" : stringify(value, 2);
      },
    };
  },
};

/** What a variant or an optional object begins with. */
function startOf(field, control) {
  if (control.begin) return control.begin();
  return field.kind === "boolean" ? field.initial ?? false : field.initial ?? { text: "", list: [] }[field.kind];
}

/** An object that need not be there is added by a button, so that its own required members do not seem to be required. */
function optional(parts, body, control) {
  const add = button("add.quiet", `add-${parts.path || "root"}`, () => {
    write(control.begin());
    parts.edited();
    body.querySelector("textarea, input, select")?.focus();
  }, icon("plus"), "Add");
  const node = h("div.optional");
  function write(value) {
    control.write(value === undefined && parts.isRequired ? control.begin() : value);
    fill(node, value === undefined && !parts.isRequired ? add : body);
  }
  return { ...control, node, write };
}

function native(parts, type) {
  const input = h("input", { ...named(parts), type, autocomplete: "off" });
  if (type === "time") input.step = "1";
  let kept; // a value that the browser's control cannot show
  input.addEventListener("input", () => {
    kept = undefined;
    parts.edited();
  });
  return {
    node: input,
    read: () => kept ?? (input.value || undefined),
    write(value) {
      input.value = value ?? "";
      kept = value === input.value ? undefined : value;
    },
  };
}

const textArea = (parts, options) => h("textarea", { ...named(parts), spellcheck: false, autocomplete: "off", ...options });

const named = ({ id, path, hintId }) => ({ id, testid: `input-${path}`, "aria-describedby": hintId });

function smallButton(label, sign, onclick, testid, disabled = false) {
  return h("button.small", { type: "button", title: label, "aria-label": label, onclick, testid, disabled }, icon(sign));
}

function exampleOf({ schema, initial }) {
  const example = schema.examples?.[0] ?? initial;
  if (example === undefined) return "";
  return typeof example === "string" ? example : stringify(example);
}

function localTime(date) {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

function withOffset(local) {
  const minutes = -new Date(local).getTimezoneOffset();
  const text = local.length === 16 ? `${local}:00` : local;
  if (!minutes) return `${text}Z`;
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map((each) => String(each).padStart(2, "0"));
  return `${text}${minutes < 0 ? "-" : "+"}${hours}:${rest}`;
}
