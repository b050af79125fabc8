// Objects as the rows of a table that can be sorted. Used for results, where nobody knows what they look like.

import { button, fill, h } from "./dom.js";
import { isObject, keptNumber } from "./exact-json.js";
import { count, grouped, shortened, visible } from "./format.js";

const MOST_COLUMNS = 30;
const ROWS_AT_ONCE = 100;

/** The rows in a value: itself, or the only list in an object. Null if it is not a table. */
export function rowsIn(value) {
  const isRows = (each) => Array.isArray(each) && each.length > 0 && each.slice(0, 200).every(isObject);
  if (isRows(value)) return value;
  if (!isObject(value)) return null;
  const lists = Object.values(value).filter(isRows);
  return lists.length === 1 ? lists[0] : null;
}

export function tableView(rows) {
  const columns = [...new Set(rows.slice(0, 500).flatMap(Object.keys))].slice(0, MOST_COLUMNS);
  const isNumeric = Object.fromEntries(columns.map((column) => [column,
    rows.slice(0, 50).every((row) => row[column] === undefined || typeof row[column] === "number")]));
  let sorted = rows;
  let order = { column: null, isDown: false };
  let shown = ROWS_AT_ONCE;
  const body = h("tbody");
  const heads = columns.map((column) => h("th", { scope: "col", class: isNumeric[column] ? "number" : "" },
    button("sort", `sort-${column}`, () => sortBy(column), visible(column))));
  const more = button("quiet", "table-more", () => { shown += ROWS_AT_ONCE * 5; draw(); });
  const node = h("div.table-view", {},
    h("div.table-scroll", { tabIndex: 0, role: "region", "aria-label": "Table" }, h("table", { testid: "table" }, h("thead", {}, h("tr", {}, heads)), body)),
    h("div.text-foot", {}, h("span", {}, count(rows.length, "row")), more));

  function sortBy(column) {
    order = { column, isDown: order.column === column && !order.isDown };
    const sign = order.isDown ? -1 : 1;
    sorted = [...rows].sort((a, b) => sign * compared(a[column], b[column]));
    heads.forEach((head, index) => head.setAttribute("aria-sort", columns[index] !== column ? "none" : order.isDown ? "descending" : "ascending"));
    draw();
  }
  function draw() {
    fill(body, sorted.slice(0, shown).map((row) => h("tr", {},
      columns.map((column) => h("td", { class: isNumeric[column] ? "number" : "" }, cell(row[column]))))));
    more.hidden = shown >= rows.length;
    more.textContent = `Show ${grouped(Math.min(rows.length - shown, ROWS_AT_ONCE * 5))} more`;
  }
  draw();
  return node;
}

function cell(value) {
  if (value === undefined) return "";
  if (typeof value === "string") return shortened(visible(value), 300);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return keptNumber(value) ?? shortened(JSON.stringify(value), 120);
}

function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return cell(a).localeCompare(cell(b), undefined, { numeric: true });
}
