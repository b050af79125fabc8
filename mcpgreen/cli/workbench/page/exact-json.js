// JSON in which numbers stay what they were: 12345678901234567890 and 1e400 are kept as they are written. Where the browser
// cannot do that (JSON.rawJSON is missing), they become the nearest numbers, as everywhere in JavaScript.

const MAY_LOSE = /\d{16}|\d[eE][+-]?\d|\.\d{15}/;

export function parse(text) {
  if (!JSON.rawJSON || !MAY_LOSE.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_key, value, { source } = {}) => (
    typeof value === "number" && source !== undefined && isLost(value, source) ? JSON.rawJSON(source) : value
  ));
}

/** Whether the text says more than the number. 1.50 and 1.5 are the same number, in other words. */
function isLost(number, source) {
  if (!Number.isFinite(number)) return true;
  const digits = source.replace(/[eE].*/, "").replace(/\D/g, "").replace(/^0+|0+$/g, "");
  return digits.length > 15 && String(number) !== source;
}

export const stringify = (value, indent) => JSON.stringify(value, null, indent);

/** The number that was kept as text, or undefined. */
export const keptNumber = (value) => (JSON.isRawJSON?.(value) ? value.rawJSON : undefined);

export function numberFrom(text) {
  const number = parse(text);
  if (typeof number !== "number" && keptNumber(number) === undefined) throw new SyntaxError("not a number");
  return number;
}

export const isObject = (value) => (
  typeof value === "object" && value !== null && !Array.isArray(value) && keptNumber(value) === undefined
);
