// What a form shows for a JSON Schema: a tree of fields. Pure functions. Rule: this only helps to type; the server decides
// what is valid. Whatever is not understood becomes a field of kind "json", in which everything can be typed.

import { isObject, keptNumber } from "./exact-json.js";

const MAX_DEPTH = 8;
const MAX_FIELDS = 400; // a schema that contains itself has no end
const MAX_CHOICES = 500;
const FORMATS = { date: "date", time: "time", "date-time": "datetime", password: "password" };
const PROSE = /^(text|body|content|message|prompt|query|notes?|description|code|script|sql|input)$/i;

/** {kind, schema, title, description, isNullable, initial} and, by kind: properties, item, variants, choices, value. */
export function fieldOf(schema, { root = schema, name = "", depth = 0, budget = { left: MAX_FIELDS } } = {}) {
  const whole = resolved(schema, root);
  budget.left -= 1;
  const { branches, isNullable } = branchesOf(whole, root);
  const base = {
    schema: whole, isNullable, name,
    title: typeof whole.title === "string" ? whole.title : undefined,
    description: typeof whole.description === "string" ? whole.description : undefined,
    initial: whole.default,
  };
  const below = { root, depth: depth + 1, budget };
  if (depth > MAX_DEPTH || budget.left < 0) return { ...base, kind: "json" };
  if (branches.length > 1) {
    const variants = branches.map((branch, index) => ({ ...fieldOf(branch, { ...below, name }), label: labelOf(branch, index) }));
    return { ...base, kind: "variants", variants };
  }
  const [schemaOfField] = branches;
  return { ...base, schema: schemaOfField, ...kindOf(schemaOfField, below, name) };
}

function kindOf(schema, below, name) {
  if ("const" in schema) return { kind: "constant", value: schema.const, initial: schema.const };
  const choices = choicesOf(schema);
  if (choices) return choices.length <= MAX_CHOICES ? { kind: "choice", choices } : { kind: "json" };
  switch (typeOf(schema)) {
    case "string": return { kind: schema.writeOnly ? "password" : FORMATS[schema.format] || "text", isProse: isProse(schema, name) };
    case "number": case "integer": return { kind: "number" };
    case "boolean": return { kind: "boolean" };
    case "null": return { kind: "constant", value: null, initial: null };
    case "array": return listOf(schema, below);
    case "object": return objectOf(schema, below);
    default: return { kind: "json" };
  }
}

function listOf(schema, below) {
  if (!isObject(schema.items)) return { kind: "json" };
  const items = resolved(schema.items, below.root);
  const choices = choicesOf(items);
  if (choices && choices.length <= 30) return { kind: "choices", choices };
  return { kind: "list", item: fieldOf(items, below) };
}

function objectOf(schema, below) {
  if (!isObject(schema.properties)) return { kind: "json" };
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = Object.entries(schema.properties).map(([name, each]) => ({
    name, isRequired: required.includes(name), field: fieldOf(each, { ...below, name }),
  }));
  return { kind: "object", properties };
}

/** The schema with its $ref followed and its allOf joined, as far as that is simple. */
function resolved(schema, root, seen = []) {
  if (!isObject(schema)) return {};
  let whole = schema;
  if (typeof whole.$ref === "string" && !seen.includes(whole.$ref) && seen.length < MAX_DEPTH) {
    const { $ref, ...beside } = whole;
    whole = { ...resolved(pointedAt($ref, root), root, [...seen, $ref]), ...beside };
  }
  if (!Array.isArray(whole.allOf)) return whole;
  const { allOf, ...beside } = whole;
  return [...allOf.map((each) => resolved(each, root, seen)), beside].reduce(joined, {});
}

function joined(one, other) {
  return {
    ...one, ...other,
    ...(one.properties || other.properties ? { properties: { ...one.properties, ...other.properties } } : {}),
    ...(one.required || other.required ? { required: [...(one.required || []), ...(other.required || [])] } : {}),
  };
}

function pointedAt(reference, root) {
  if (!reference.startsWith("#")) return {};
  const steps = reference.slice(1).split("/").slice(1).map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce((value, step) => (value && Object.hasOwn(value, step) ? value[step] : undefined), root) ?? {};
}

function branchesOf(schema, root) {
  const listed = schema.oneOf || schema.anyOf;
  if (Array.isArray(listed) && listed.length && listed.length <= 12 && !choicesOf(schema)) {
    const { oneOf, anyOf, title, description, default: initial, ...beside } = schema;
    const branches = listed.map((each) => resolved(each, root));
    const others = branches.filter((each) => each.type !== "null" && each.const !== null);
    // Branches that only say which members belong together do not change what there is to fill in.
    if (others.every((each) => Object.keys(each).every((key) => key === "required")) && beside.properties) return { branches: [beside], isNullable: false };
    const isNullable = others.length < branches.length;
    if (others.length) return { branches: others.map((each) => joined(beside, each)), isNullable };
  }
  if (!Array.isArray(schema.type)) return { branches: [schema], isNullable: false };
  const types = schema.type.filter((type) => type !== "null");
  const isNullable = types.length < schema.type.length;
  if (types.length <= 1) return { branches: [{ ...schema, type: types[0] || "null",
    ...(schema.enum ? { enum: schema.enum.filter((each) => each !== null) } : {}) }], isNullable };
  return { branches: types.map((type) => ({ ...schema, type, title: type })), isNullable };
}

/** [{value, label}] of an enum, also where each value has a title. */
function choicesOf(schema) {
  if (Array.isArray(schema.enum) && schema.enum.length) {
    return schema.enum.map((value, index) => ({ value, label: String(schema.enumNames?.[index] ?? textOf(value)) }));
  }
  const listed = schema.oneOf || schema.anyOf;
  if (!Array.isArray(listed) || !listed.length || !listed.every((each) => isObject(each) && "const" in each)) return null;
  return listed.map((each) => ({ value: each.const, label: each.title || textOf(each.const) }));
}

function typeOf(schema) {
  if (schema.type) return schema.type;
  if (schema.properties) return "object";
  if (schema.items) return "array";
  if (schema.pattern || schema.format || schema.maxLength || schema.minLength) return "string";
  return undefined;
}

function isProse(schema, name) {
  return Boolean(schema.contentMediaType) || schema.maxLength > 200 || (!schema.format && !schema.maxLength && PROSE.test(name));
}

function labelOf(branch, index) {
  if (branch.title) return branch.title;
  for (const each of Object.values(branch.properties || {})) if (typeof each?.const === "string") return each.const;
  return branch.type || `Variant ${index + 1}`;
}

const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** In a few words what the schema asks for: "integer 1–500". */
export function kindText({ kind, schema, choices, item }) {
  const type = Array.isArray(schema.type) ? schema.type.filter((each) => each !== "null").join(" or ") : schema.type;
  if (kind === "number") return [type || "number", rangeText(schema.minimum ?? above(schema), schema.maximum ?? below(schema))].filter(Boolean).join(" ");
  if (kind === "text") return [schema.format || "text", rangeText(schema.minLength, schema.maxLength, " characters")].filter(Boolean).join(", ");
  if (kind === "list") return [`list of ${item.schema.type || item.kind}`, rangeText(schema.minItems, schema.maxItems)].filter(Boolean).join(" ");
  if (kind === "choices") return "any of these";
  if (kind === "choice") return choices.length > 6 ? `one of ${choices.length}` : "one of these";
  if (kind === "datetime") return "date and time";
  if (kind === "variants") return "one of these forms";
  if (kind === "json") return type || "any JSON";
  if (kind === "constant") return "always the same";
  return kind;
}

const above = (schema) => (schema.exclusiveMinimum === undefined ? undefined : `>${schema.exclusiveMinimum}`);
const below = (schema) => (schema.exclusiveMaximum === undefined ? undefined : `<${schema.exclusiveMaximum}`);

function rangeText(from, to, unit = "") {
  if (from === undefined && to === undefined) return "";
  if (to === undefined) return String(from).startsWith(">") ? from : `≥ ${from}${unit}`;
  if (from === undefined) return String(to).startsWith("<") ? to : `≤ ${to}${unit}`;
  return `${from}–${to}${unit}`;
}

/** What is probably wrong with a value, as a sentence, or "". */
export function hintOf({ kind, schema }, value, isRequired) {
  if (value === undefined) return isRequired ? "This is required." : "";
  if (kind === "number") {
    if (typeof value !== "number") return keptNumber(value) ? "" : "This is not a number. It is sent as text.";
    if (schema.type === "integer" && !Number.isInteger(value)) return "An integer is expected.";
    if (value < schema.minimum || value <= schema.exclusiveMinimum) return `At least ${schema.minimum ?? schema.exclusiveMinimum} is expected.`;
    if (value > schema.maximum || value >= schema.exclusiveMaximum) return `At most ${schema.maximum ?? schema.exclusiveMaximum} is expected.`;
  }
  if (typeof value === "string") {
    const length = [...value].length;
    if (length < schema.minLength) return `At least ${schema.minLength} characters are expected.`;
    if (length > schema.maxLength) return `At most ${schema.maxLength} characters are expected.`;
    if (schema.pattern && length < 1000 && !fitsPattern(schema.pattern, value)) return `Expected: ${schema.pattern}`;
  }
  if (Array.isArray(value)) {
    if (value.length < schema.minItems) return `At least ${schema.minItems} are expected.`;
    if (value.length > schema.maxItems) return `At most ${schema.maxItems} are expected.`;
  }
  return "";
}

function fitsPattern(pattern, value) {
  // A pattern comes from a file, and JavaScript has no limit for one that never ends: only short and plain ones are tried.
  if (pattern.length > 100 || /[*+}]\)?[*+{]|\\\d/.test(pattern) || (pattern.match(/[*+{]/g) || []).length > 3) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

/** Whether a value can be shown in a field of this kind. */
export function fits(field, value) {
  const { kind, isNullable } = field;
  if (value === undefined || (value === null && isNullable)) return true;
  if (kind === "json") return true;
  if (kind === "constant") return JSON.stringify(value) === JSON.stringify(field.value);
  if (kind === "number") return typeof value === "number" || keptNumber(value) !== undefined;
  if (kind === "boolean") return typeof value === "boolean";
  if (kind === "choice") return field.choices.some((each) => JSON.stringify(each.value) === JSON.stringify(value));
  if (kind === "choices") return Array.isArray(value) && value.every((one) => field.choices.some((each) => each.value === one));
  if (kind === "list") return Array.isArray(value) && value.length <= 200;
  if (kind === "object") return isObject(value);
  if (kind === "variants") return field.variants.some((each) => fits(each, value));
  return typeof value === "string";
}

/** The variant that a value belongs to: the first whose constants it has. */
export function variantFor(field, value) {
  const possible = field.variants.map((each, index) => ({ each, index })).filter(({ each }) => fits(each, value));
  const better = possible.find(({ each }) => each.kind !== "object" || each.properties.every(({ name, field: { kind, value: constant }, isRequired }) => (
    (kind !== "constant" || value[name] === constant) && (!isRequired || name in value)
  )));
  return (better || possible[0] || { index: 0 }).index;
}
