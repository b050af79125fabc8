// The same request in each revision, side by side. Lines that not all answers have are marked.

import { dialogOf, fill, h } from "./dom.js";
import { stringify } from "./exact-json.js";
import { milliseconds, shortened, visible } from "./format.js";
import { Interaction } from "./interaction.js";

const MOST_LINES = 300;

export function compareDialog() {
  const body = h("div.compare");
  const note = h("p.field-note", {}, "The tool runs once for each revision. Marked lines are not in all answers.");
  const dialog = dialogOf("In each revision", "compare", note, body);
  dialog.classList.add("wide");
  dialog.compare = async (method, params, revisions) => {
    const answers = [];
    dialog.showModal();
    for (const revision of revisions) {
      fill(body, columns(answers), h("p.nothing", {}, `Running as a client of ${revision} …`));
      const run = await new Interaction({ method, params, revision, capabilities: "none", task: false }).run();
      if (!dialog.open) return;
      answers.push({ revision, ms: run.elapsed, frame: run.answer?.frame || { error: { message: run.sentence } } });
    }
    fill(body, columns(answers));
  };
  return dialog;
}

function columns(answers) {
  const lists = answers.map((answer) => ({ ...answer, lines: linesOf(answer.frame) }));
  const inHowMany = new Map();
  for (const { lines } of lists) for (const line of new Set(lines.map(bare))) inHowMany.set(line, (inHowMany.get(line) || 0) + 1);
  return lists.map(({ revision, ms, frame, lines }) => h("section", { testid: `compare-${revision}`, "aria-label": revision, tabIndex: 0 },
    h("h3", {}, revision, h("span.status", { "data-status": frame.error ? "error" : frame.result?.isError ? "failed" : "ok" }, milliseconds(ms))),
    h("pre.code", {}, lines.slice(0, MOST_LINES).map((line) => h("span.line", { class: inHowMany.get(bare(line)) < lists.length ? "is-other" : "" },
      `${line}\n`)),
      lines.length > MOST_LINES && `… ${lines.length - MOST_LINES} more lines`)));
}

function linesOf(frame) {
  const { result, error } = frame;
  return stringify(error ? { error } : { result }, 2).split("\n").map((line) => shortened(visible(line), 400));
}

const bare = (line) => line.trim().replace(/,$/, "");
